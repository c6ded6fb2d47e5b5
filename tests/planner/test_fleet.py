"""Fleets: the servers cover the rate, and fewer would not."""

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
    if option.step.usd_per_hour is None:
        assert fleet.replicas_usd_per_hour is fleet.split_usd_per_hour is None
    else:
        each = option.step.usd_per_hour / chips
        assert fleet.replicas_usd_per_hour == pytest.approx(fleet.replicas_chips * each)
        assert fleet.split_usd_per_hour == pytest.approx(fleet.split_chips * each)
