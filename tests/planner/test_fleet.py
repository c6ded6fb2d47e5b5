"""Fleets: the servers cover the rate, and fewer would not."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise


@given(st.floats(0.01, 1e5), st.sampled_from(["v5e:2x4", "v5e:4x4", "h100:8", "v6e:2x2"]), st.integers(1, 60))
def test_servers_cover_the_rate(rate: float, slice_: str, batch: int) -> None:
    plan = slicewise.plan("llama-3-8b", slice=slice_, rate=rate, batch=batch, isl=2048, osl=256)
    fleet, option = plan.fleet, plan.recommended
    assert fleet
    assert option
    decode_s = 256 * option.tpot_s / batch
    for servers, each_s in (
        (fleet.replicas, option.prefill_s + decode_s),
        (fleet.prefill_servers, option.prefill_s),
        (fleet.decode_servers, decode_s),
    ):
        assert servers >= 1
        assert servers / each_s >= rate * (1 - 1e-9)
        assert (servers - 1) / each_s < rate * (1 + 1e-9)
    chips = option.step.n_chips
    assert fleet.replicas_chips == fleet.replicas * chips
    assert fleet.split_chips == (fleet.prefill_servers + fleet.decode_servers) * chips
    assert (fleet.replicas_tpot_s, fleet.replicas_ttft_s) == (option.tpot_shared_s, option.ttft_s)
    assert fleet.split_tpot_s == option.tpot_s
    handoff_s = 2048 * 131_072 / (chips * (option.step.deployment.slice.chip.dcn_bytes_per_s or math.inf))
    assert fleet.split_ttft_s == pytest.approx(option.ttft_s + handoff_s)
    assert fleet.replicas_meet_limits
    assert fleet.split_meets_limits
    if option.step.usd_per_hour is None:
        assert fleet.replicas_usd_per_hour is fleet.split_usd_per_hour is None
    else:
        each = option.step.usd_per_hour / chips
        assert fleet.replicas_usd_per_hour == pytest.approx(fleet.replicas_chips * each)
        assert fleet.split_usd_per_hour == pytest.approx(fleet.split_chips * each)


@given(st.floats(0.001, 0.2), st.floats(0.05, 5.0))
def test_a_fleet_says_which_way_keeps_the_limits(tpot: float, ttft: float) -> None:
    plan = slicewise.plan("llama-3-8b", slice="v5e:2x4", rate=10, tpot=tpot, ttft=ttft, isl=2048, osl=256)
    json.dumps(plan.to_dict(), allow_nan=False)
    if plan.fleet is None:
        return
    fleet = plan.fleet
    assert fleet.replicas_meet_limits == (fleet.replicas_tpot_s <= tpot and fleet.replicas_ttft_s <= ttft)
    assert fleet.split_meets_limits == (fleet.split_tpot_s <= tpot and fleet.split_ttft_s <= ttft)


@pytest.mark.parametrize(
    "name",
    ["replicas", "replicas_chips", "replicas_usd_per_hour", "prefill_servers", "decode_servers", "split_chips",
     "split_usd_per_hour", "replicas_tpot_s", "replicas_ttft_s", "split_tpot_s", "split_ttft_s"],
)  # fmt: skip
def test_numbers_of_a_fleet_are_explained(name: str) -> None:
    plan = slicewise.plan("llama-3-8b", slice="v5e:2x4", rate=100)
    assert plan.fleet
    assert plan.explain(name).value == pytest.approx(getattr(plan.fleet, name))
