"""Why a simulation differs from the closed form: what is said, and when nothing is."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.plans import simulated
from slicewise.traffic.gap import gap_between
from slicewise.traffic.server import CHUNKED, PREFILL_FIRST, STATIC
from slicewise.traffic.simulation import Simulation


def parts(found: Simulation) -> dict[str, Any]:
    assert found.metrics is not None
    assert found.steady is not None
    return {"found": found.metrics, "formula": found.steady, "profile": found.requests}


def said(found: Simulation, policy: str = PREFILL_FIRST, **changed: Any) -> str:
    return " ".join(gap_between(**{**parts(found), **changed}, policy=policy))


CALM = simulated(rate=0.01, requests=40)
BUSY = simulated(rate=60, requests=300)


def test_a_load_above_capacity_is_said_first() -> None:
    assert BUSY.steady is not None
    assert BUSY.steady.load > 1
    assert BUSY.gap[0] == (
        f"The load is {BUSY.steady.load:.0%} of what the servers can finish: queues and latencies grow for as long as"
        " it lasts."
    )


def test_a_load_near_capacity_is_said() -> None:
    formula = parts(CALM)["formula"]
    assert "capacity" not in said(CALM, formula=replace(formula, load=0.9))
    assert "At 97% of capacity a queue is seldom empty." in said(CALM, formula=replace(formula, load=0.97))


def test_each_side_of_a_split_fleet_is_named() -> None:
    formula = replace(parts(CALM)["formula"], load=1.5, prefill_load=2.0)
    text = said(CALM, formula=formula)
    assert "150% of what the decode servers can finish and 200% of what the prefill servers can finish" in text
    text = said(CALM, formula=replace(formula, load=0.5))
    assert "200% of what the prefill servers can finish" in text
    assert "decode servers can" not in text


def test_where_nobody_waits_the_ttft_is_the_formulas_and_is_not_spoken_of() -> None:
    assert not any("TTFT" in sentence for sentence in CALM.gap)


def test_waiting_alone_is_no_longer_prompt() -> None:
    (ttft,) = (sentence for sentence in BUSY.gap if sentence.startswith("TTFT"))
    assert ttft.endswith("is waiting in the queue.")
    assert "takes" not in ttft


def test_what_prompts_take_more_than_a_mean_one_is_told() -> None:
    run, formula = parts(BUSY)["found"], parts(BUSY)["formula"]
    shorter = replace(formula, ttft_s=formula.ttft_s / 2)
    assert "a prompt takes" in said(BUSY, formula=shorter)
    assert "longer than one of mean length" in said(BUSY, formula=shorter)
    assert "less than one of mean length" in said(BUSY, formula=replace(formula, ttft_s=formula.ttft_s * 2))
    # What is waited for and what is not add up to the difference.
    assert run.ttft_s.mean - run.queueing_s.mean == pytest.approx(formula.ttft_s, rel=1e-9)


@pytest.mark.parametrize(
    ("policy", "prefill_load", "why"),
    [
        (PREFILL_FIRST, None, "prompts that come together stop one for longer"),
        (CHUNKED, None, "chunks of prompts lengthen the steps"),
        (STATIC, None, "a static batch keeps its slots"),
        (PREFILL_FIRST, 0.5, "some wait for a place before their second token"),
    ],
)
def test_the_reason_of_a_tpot_is_the_policys(policy: str, prefill_load: float | None, why: str) -> None:
    formula = replace(parts(BUSY)["formula"], prefill_load=prefill_load, tpot_s=1.0)
    assert why in said(BUSY, policy, formula=formula)


def test_small_differences_are_not_worth_a_sentence() -> None:
    run, formula = parts(CALM)["found"], parts(CALM)["formula"]
    assert "TPOT" not in said(CALM, formula=replace(formula, tpot_s=run.tpot_s.mean * 1.01))
    assert "TPOT" in said(CALM, formula=replace(formula, tpot_s=run.tpot_s.mean * 1.05))


def test_bursts_are_told_where_a_minute_is_fuller_than_the_mean() -> None:
    profile = CALM.requests
    assert "The busiest minute brings 3 times" in said(CALM, profile=replace(profile, busiest_minute_ratio=3.0))
    for ratio in (None, 1.01):
        assert "busiest" not in said(CALM, profile=replace(profile, busiest_minute_ratio=ratio))


def test_outputs_of_one_token_have_no_tpot_to_speak_of() -> None:
    found = simulated(osl=1)
    assert found.metrics is not None
    assert found.metrics.tpot_s is None
    assert not any("TPOT" in sentence for sentence in found.gap)
