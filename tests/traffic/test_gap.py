"""Why a simulation differs from the closed form: what is said, and when nothing is."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.plans import simulated
from slicewise.traffic.gap import Seen, gap_between
from slicewise.traffic.load import decode_waits_s
from slicewise.traffic.server import CHUNKED, PREFILL_FIRST, STATIC, Policy
from slicewise.traffic.simulation import Simulation
from slicewise.units import show


def parts(found: Simulation) -> dict[str, Any]:
    assert found.metrics is not None
    assert found.shares is not None
    assert found.steady is not None
    assert found.outcome is not None
    seen = Seen(found.metrics, found.shares, decode_waits_s(found.outcome), found.n_servers)
    return {"seen": seen, "formula": found.steady, "profile": found.requests}


def said(found: Simulation, policy: str = PREFILL_FIRST, **changed: Any) -> str:
    return " ".join(gap_between(**{**parts(found), **changed}, policy=Policy(kind=policy)))


CALM = simulated(rate=0.01, requests=40)
BUSY = simulated(rate=60, requests=300)
# Longer than a request takes, so that the run has a steady state within.
LONG = simulated(rate=30, requests=900, osl=30)


def test_a_load_above_capacity_is_said_first_as_the_closed_forms() -> None:
    assert LONG.steady is not None
    assert LONG.steady.load > 1
    first = LONG.gap[0]
    assert first.startswith(f"By the closed form the load is {LONG.steady.load:.0%} of what the servers can finish.")
    assert f"{LONG.shares.queued:.3g} requests wait in the mean, {LONG.shares.most_queued:,} at most" in first
    assert f"{LONG.metrics.requests_per_s:.3g} a second finish of" in first


def test_growing_queues_are_claimed_only_where_the_run_has_them() -> None:
    formula = replace(parts(CALM)["formula"], load=1.4)
    text = said(CALM, formula=formula)
    assert "By the closed form the load is 140% of what the servers can finish." in text
    assert "grow" not in text
    assert "wait in the mean" not in text
    # Where the drain is part of the rates, they do not say whether more comes than goes.
    assert "grow" in BUSY.gap[0]
    seen = parts(BUSY)["seen"]
    text = said(BUSY, seen=replace(seen, metrics=replace(seen.metrics, includes_drain=True)))
    assert "grow" not in text
    assert "wait in the mean" in text


def test_a_load_near_capacity_is_said() -> None:
    formula = parts(CALM)["formula"]
    assert "By the closed form" not in said(CALM, formula=replace(formula, load=0.9))
    assert "the load is 97% of what the servers can finish." in said(CALM, formula=replace(formula, load=0.97))


@pytest.mark.parametrize("policy", [STATIC, CHUNKED])
def test_rules_that_the_formula_does_not_know_are_named(policy: str) -> None:
    formula = replace(parts(CALM)["formula"], load=1.4)
    assert f"can finish; it does not know {policy} servers." in said(CALM, policy, formula=formula)
    assert "does not know" not in said(CALM, policy, formula=replace(formula, prefill_load=0.2))


def test_each_side_of_a_split_fleet_is_named() -> None:
    formula = replace(parts(CALM)["formula"], load=1.5, prefill_load=2.0)
    text = said(CALM, formula=formula)
    assert "150% of what the decode servers can finish and 200% of what the prefill servers can finish" in text
    text = said(CALM, formula=replace(formula, load=0.5))
    assert "200% of what the prefill servers can finish" in text
    assert "decode servers can" not in text


def test_hits_of_prefixes_are_told() -> None:
    seen = parts(CALM)["seen"]
    hits = replace(seen, metrics=replace(seen.metrics, cached_prompt_share=0.4))
    assert "40% of the prompts' tokens were found cached; the formula knows no such hits." in said(CALM, seen=hits)
    assert "cached" not in said(CALM)


def test_where_nobody_waits_the_ttft_is_the_formulas_and_is_not_spoken_of() -> None:
    assert not any("TTFT" in sentence for sentence in CALM.gap)


def test_waiting_alone_is_no_longer_prompt() -> None:
    (ttft,) = (sentence for sentence in BUSY.gap if sentence.startswith("TTFT"))
    assert ttft.endswith("is waiting in the queue.")
    assert "takes" not in ttft


def test_what_prompts_take_more_than_a_mean_one_is_told() -> None:
    run, formula = BUSY.metrics, parts(BUSY)["formula"]
    shorter = replace(formula, ttft_s=formula.ttft_s / 2)
    assert "a prompt takes" in said(BUSY, formula=shorter)
    assert "longer than one of mean length" in said(BUSY, formula=shorter)
    assert "less than one of mean length" in said(BUSY, formula=replace(formula, ttft_s=formula.ttft_s * 2))
    # What is waited for and what is not add up to the difference.
    assert run.ttft_s.mean - run.queueing_s.mean == pytest.approx(formula.ttft_s, rel=1e-9)


def test_a_longer_tpot_names_what_the_run_shows() -> None:
    found, seen = parts(LONG)["formula"], parts(LONG)["seen"]
    itl = replace(seen.metrics.itl_s, p50=0.01, p99=0.5)
    shorter = replace(found, tpot_s=seen.metrics.tpot_s.mean / 2, batch=seen.batch * 2)
    mixed = replace(seen, metrics=replace(seen.metrics, itl_s=itl, preemptions_per_request=0.25))
    text = said(LONG, seen=mixed, formula=shorter)
    assert "requests lose their cache 0.25 times in the mean" in text
    assert "where prompts are computed in between, gaps are longer: 10 ms at p50, 500 ms at p99" in text
    assert "sequences decode at once" not in text
    even = replace(seen, metrics=replace(seen.metrics, itl_s=replace(itl, p99=0.011)))
    plain = said(LONG, seen=even, formula=shorter)
    assert " in between" not in plain
    assert "lose their cache" not in plain
    assert " in between" not in said(LONG, STATIC, seen=mixed, formula=shorter)
    fuller = said(LONG, seen=even, formula=replace(shorter, batch=seen.batch / 2))
    assert f"about {seen.batch:.3g} sequences decode at once on a server, {seen.batch / 2:.3g} by the formula" in fuller


def test_a_shorter_tpot_names_no_cause_of_a_longer_one() -> None:
    found, seen = parts(LONG)["formula"], parts(LONG)["seen"]
    itl = replace(seen.metrics.itl_s, p50=0.01, p99=0.5)
    mixed = replace(seen, metrics=replace(seen.metrics, itl_s=itl, preemptions_per_request=0.25))
    longer = replace(found, tpot_s=seen.metrics.tpot_s.mean * 2, batch=seen.batch * 2)
    text = said(LONG, seen=mixed, formula=longer)
    assert "lose their cache" not in text
    assert " in between" not in text
    assert f"about {seen.batch:.3g} sequences decode at once on a server" in text
    bare = said(LONG, seen=mixed, formula=replace(longer, batch=seen.batch / 2))
    assert bare.count("sequences decode") == 0
    assert " by the formula." in bare


def test_waiting_for_a_decode_server_is_told_where_it_is() -> None:
    words = {"prefill_servers": 4, "decode_servers": 1, "rate": 30, "requests": 200, "batch": 8}
    found = simulated(**words)
    waits_s = found.outcome.decode_start_s - found.outcome.first_token_s
    assert waits_s.mean() > 0.01
    (tpot,) = (sentence for sentence in found.gap if sentence.startswith("TPOT"))
    assert f"requests wait {show(waits_s.mean(), 's', 3)} in the mean for a place on a decode server" in tpot
    calm = simulated(**{**words, "rate": 0.1, "requests": 20})
    assert not any("for a place" in sentence for sentence in calm.gap)


def test_the_batch_that_decodes_is_that_of_the_steps() -> None:
    seen = parts(LONG)["seen"]
    outcome = LONG.outcome
    decoding_s = (outcome.finish_s - outcome.first_token_s).sum()
    span_s = outcome.finish_s.max() - outcome.first_token_s.min()
    assert seen.batch == pytest.approx(decoding_s / span_s, rel=0.1)


def test_small_differences_are_not_worth_a_sentence() -> None:
    run, formula = CALM.metrics, parts(CALM)["formula"]
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
