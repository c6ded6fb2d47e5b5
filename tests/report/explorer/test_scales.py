"""Ends of axes: round, outside of what is drawn, and the same for what is nearly the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.report.explorer.scales import above, below, log_frame, powers_of_two

VALUES = st.floats(1e-9, 1e12)


@given(VALUES)
def test_round_numbers_enclose(value: float) -> None:
    low, high = below(value), above(value)
    assert low <= value * (1 + 1e-6)
    assert high >= value * (1 - 1e-6)
    assert high / low <= 2.5 * (1 + 1e-6)
    assert {f"{low:.5e}"[0], f"{high:.5e}"[0]} <= {"1", "2", "5"}
    assert above(high) == high
    assert below(low) == low


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_frame_holds_its_values(values: list[float]) -> None:
    frame = log_frame(values, 500)
    assert frame.low < min(values)
    assert max(values) < frame.high
    assert frame.high >= 5 * frame.low


@pytest.mark.parametrize(("most", "end"), [(1, 4), (4, 4), (5, 8), (554, 1024), (1024, 1024)])
def test_powers_of_two_end_where_the_most_fits(most: int, end: int) -> None:
    assert (powers_of_two(most, 100).low, powers_of_two(most, 100).high) == (1, end)
