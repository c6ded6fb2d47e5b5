"""Prefill by groups: a prompt's share of the slice's time, and the time that its own group takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.costs import decode, prefill, shared_prefill

SECONDS, GROUPS = st.floats(1e-6, 10.0), st.integers(1, 64)


def test_views_differ_by_what_hides_behind_what() -> None:
    flops, load, ici = 2.0, 3.0, 4.0
    assert shared_prefill.prefill_roofline_s(flops, load) == 3.0
    assert shared_prefill.prefill_overlapped_s(flops, load, ici) == 4.0
    assert shared_prefill.prefill_serial_s(flops, load, ici) == 7.0


@given(flops_s=SECONDS, load_s=SECONDS, ici_s=SECONDS)
def test_one_group_of_all_chips_is_plain_prefill(flops_s: float, load_s: float, ici_s: float) -> None:
    busy = shared_prefill.prefill_busy_ici_s(ici_s, 1)
    assert shared_prefill.prefill_param_load_s(load_s, 1, 1, 1.0, 1) == load_s
    assert shared_prefill.prefill_roofline_s(flops_s, load_s) == prefill.prefill_roofline_s(flops_s, load_s)
    assert shared_prefill.prefill_overlapped_s(flops_s, load_s, busy) == prefill.prefill_overlapped_s(
        flops_s, load_s, ici_s
    )
    assert shared_prefill.prefill_serial_s(flops_s, load_s, busy) == prefill.prefill_serial_s(flops_s, load_s, ici_s)
    assert shared_prefill.ttft_s(flops_s, 1) == flops_s


@given(n_bytes=st.floats(1.0, 1e13), tp=GROUPS, dp=GROUPS, pp=GROUPS)
def test_a_prompt_waits_for_the_weights_of_its_own_group(n_bytes: float, tp: int, dp: int, pp: int) -> None:
    """Each chip reads its share; the stages of a group do so one after the other, while other groups do the same."""
    n_chips, chip_bytes, rate = tp * dp * pp, n_bytes, 4.8e12
    share_s = shared_prefill.prefill_param_load_s(chip_bytes * n_chips, pp, n_chips, rate, dp * pp)
    alone_s = shared_prefill.ttft_s(share_s, dp * pp)
    assert alone_s == pytest.approx(pp * chip_bytes / rate)
    if pp == dp == 1:
        assert share_s == pytest.approx(decode.param_load_s(chip_bytes * n_chips, n_chips, rate))


@given(ici_s=SECONDS, in_flight=GROUPS)
def test_a_prompts_collectives_are_its_groups_own(ici_s: float, in_flight: int) -> None:
    share_s = shared_prefill.prefill_busy_ici_s(ici_s, in_flight)
    assert shared_prefill.ttft_s(share_s, in_flight) == pytest.approx(ici_s)


def test_where_the_phases_are_split_the_hand_off_joins_the_groups_own_time() -> None:
    assert shared_prefill.ttft_split_s(0.8, 0.2) == pytest.approx(1.0)
