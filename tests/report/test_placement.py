"""Log axes and where labels stand."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.report.placement import Label, along, log_scale, place, spread

positive = st.floats(1e-9, 1e9)


@given(st.lists(positive, min_size=1, max_size=20), st.floats(0, 50), st.floats(0, 50))
def test_log_scale_holds_its_values_and_inverts(values, before, after):
    scale = log_scale(values, 400, before=before, after=after)
    for value in values:
        assert before - 1e-6 <= scale.at(value) <= 400 - after + 1e-6
        assert scale.value(scale.at(value)) == pytest.approx(value)


@given(positive, st.floats(1, 1e6))
def test_ticks_lie_within_the_axis_and_are_enough_to_read_it(low, ratio):
    scale = log_scale([low, low * ratio], 400)
    ticks = scale.ticks(10)
    assert 2 <= len(ticks) <= 10
    assert all(scale.low <= tick <= scale.high for tick in ticks)


def test_ticks_are_those_of_the_books_figure_or_nearly():
    assert log_scale([0.005, 0.042], 600).ticks(9) == [0.005, 0.007, 0.01, 0.015, 0.02, 0.03]


@given(st.lists(st.floats(0, 400), min_size=1, max_size=12).map(sorted), st.floats(1, 30))
def test_spread_keeps_order_gap_and_middle(wanted, gap):
    placed = spread(wanted, gap)
    assert all(b - a >= gap - 1e-6 for a, b in pairwise(placed))
    assert sum(placed) == pytest.approx(sum(wanted), abs=1e-6)


def test_spread_leaves_alone_what_stands_apart():
    assert spread([0.0, 20.0, 40.0], 16.0) == [0.0, 20.0, 40.0]


def test_place_avoids_lines_and_drops_what_finds_no_room():
    line = along([(100, 0), (100, 200)])
    first, second = (Label("16", (100.0, 100.0), {"batch": 16.0}) for _ in range(2))
    (label, spot), *rest = place([first, second], line, 200)
    left, _, right, _ = label.box(spot)
    assert right < 100 or left > 100
    assert rest == []


def test_along_is_dense():
    points = along([(0, 0), (30, 40), (30, 100)])
    assert np.hypot(*np.diff(points, axis=0).T).max() <= 2 + 1e-9
    assert along([(5, 5)]).tolist() == [[5, 5]]
