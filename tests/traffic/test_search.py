"""Searches against brute force, on made-up rules of which counts do."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.traffic.search import Counts, Search, shared_search, split_search


def answered(search: Search, does: Callable[[Counts], bool]) -> tuple[Counts | None, dict[Counts, bool]]:
    """What a search comes to, and what it asked for."""
    asked: dict[Counts, bool] = {}
    try:
        counts = next(search)
        while True:
            asked[counts] = does(counts)
            counts = search.send(asked[counts])
    except StopIteration as stop:
        return stop.value, asked


@given(least=st.integers(1, 300), start=st.integers(-3, 400), most=st.integers(1, 256))
def test_the_fewest_servers(least: int, start: int, most: int) -> None:
    found, asked = answered(shared_search(start, most), lambda counts: counts[0] >= least)
    assert found == ((least, 0) if least <= most else None)
    assert all(1 <= n <= most and none == 0 for n, none in asked)
    # What is answered was seen to do, and one fewer not to.
    if found:
        assert asked[found]
        assert least == 1 or not asked[(least - 1, 0)]


@pytest.mark.parametrize(("least", "start", "most"), [(12, 10, 6), (100, 100, 3), (999, 900, 20), (1, 1, 1)])
def test_a_start_near_the_answer_saves_questions(least: int, start: int, most: int) -> None:
    _, asked = answered(shared_search(start, 1024), lambda counts: counts[0] >= least)
    assert len(asked) <= most


N = 14


@st.composite
def _staircases(draw: st.DrawFn) -> list[int]:
    """The fewest prefill servers that do beside so many decode servers, from 1 on: never rising. Above N, none do."""
    return sorted(draw(st.lists(st.integers(1, N + 3), min_size=N, max_size=N)), reverse=True)


COSTS = st.tuples(st.sampled_from([1.0, 2.0, 3.3, 10.0, 40.0]), st.sampled_from([1.0, 2.0, 3.3, 10.0, 40.0]))


@given(stairs=_staircases(), costs=COSTS, start=st.tuples(st.integers(1, N), st.integers(1, N)))
def test_the_cheapest_pair(stairs: list[int], costs: tuple[float, float], start: Counts) -> None:
    def key(counts: Counts) -> tuple[float, int]:
        return counts[0] * costs[0] + counts[1] * costs[1], counts[0]

    def does(counts: Counts) -> bool:
        return counts[1] >= stairs[counts[0] - 1]

    found, asked = answered(split_search(start, N, key), does)
    right = min((pair for pair in product(range(1, N + 1), repeat=2) if does(pair)), key=key, default=None)
    assert found == right
    if found:
        assert asked[found]
        below = [(found[0] - 1, found[1]), (found[0], found[1] - 1)]
        assert not any(asked[pair] for pair in below if min(pair))


def test_sides_that_do_not_bear_on_each_other_take_few_questions() -> None:
    found, asked = answered(split_search((50, 20), 1024, sum), lambda counts: counts[0] >= 61 and counts[1] >= 23)
    assert found == (61, 23)
    assert len(asked) <= 20


@given(does=st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=6, max_size=6), start=st.integers(1, 6))
def test_where_more_servers_hurt_each_neighbour_below_is_still_rejected(does: list[list[bool]], start: int) -> None:
    for search in (shared_search(start, 6), split_search((start, start), 6, sum)):
        found, asked = answered(search, lambda counts: does[counts[0] - 1][counts[1] - 1])
        if found:
            assert asked[found]
            below = [(found[0] - 1, found[1])] + [(found[0], found[1] - 1)] * bool(found[1])
            assert all(asked[pair] is False for pair in below if pair[0] and (pair[1] or not found[1]))
