"""A step of layers that differ: idle towers, stages one after another, and collectives counted layer by layer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.costs import decode, layered_step, prefill

H200 = 4.8e12
COUNT, TIME = st.integers(0, 500), st.floats(0.0, 1e-3)


def test_towers_are_held_and_not_read() -> None:
    # Gemma 3-27B: a vision tower of 423,060,336 parameters in bf16 that text leaves idle.
    tower = 2 * sum(load_model("gemma-3-27b").towers.values())
    assert tower == 2 * 423_060_336
    read = layered_step.param_read_bytes(54_864_125_152, tower)
    assert read == layered_step.prefill_param_read_bytes(54_864_125_152, tower) == 2 * 27_009_002_240


def test_weights_of_all_chips_are_read_at_once_where_there_is_one_stage() -> None:
    assert layered_step.param_load_s(671e9, 1, 8, H200) == decode.param_load_s(671e9, 8, H200)


@given(n_bytes=st.floats(1.0, 1e13), pp=st.integers(1, 16), tp=st.integers(1, 16))
def test_stages_read_one_after_the_other(n_bytes: float, pp: int, tp: int) -> None:
    """So a step takes as long as if the chips of one stage read it all."""
    staged = layered_step.param_load_s(n_bytes, pp, tp * pp, H200)
    assert staged == pytest.approx(decode.param_load_s(n_bytes, tp, H200))


@given(n_layers=st.integers(1, 200), gather_s=TIME, exchange_s=TIME)
def test_layers_that_are_alike_take_what_the_plain_formula_says(
    n_layers: int, gather_s: float, exchange_s: float
) -> None:
    counted = layered_step.ici_s(4 * n_layers, gather_s, 2 * n_layers, exchange_s)
    assert counted == pytest.approx(decode.ici_s(n_layers, gather_s, exchange_s))
    assert layered_step.prefill_ici_s(4 * n_layers, gather_s) == pytest.approx(
        prefill.prefill_ici_s(n_layers, gather_s)
    )


@given(gathers=COUNT, exchanges=COUNT, gather_s=TIME, exchange_s=TIME)
def test_layers_without_a_part_collect_nothing_for_it(
    gathers: int, exchanges: int, gather_s: float, exchange_s: float
) -> None:
    both = layered_step.ici_s(gathers, gather_s, exchanges, exchange_s)
    alone = layered_step.ici_s(gathers, gather_s, 0, exchange_s) + layered_step.ici_s(
        0, gather_s, exchanges, exchange_s
    )
    assert both == pytest.approx(alone)
