"""Tables of times: what lies between their entries, and what they add up to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.traffic import LONGEST, MOST_SEQS, uneven_tables
from slicewise.traffic.times import Times

TIMES = Times(
    knots=np.array([0.0, 100.0, 300.0]),
    steps_s=np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 6.0], [2.0, 2.0, 4.0]]),
    prefills_s=np.array([0.5, 1.0, 1.25, 2.0]),
)


@pytest.mark.parametrize(
    ("batch", "held_tokens", "step_s"),
    [(1, 0, 1), (1, 50, 1.5), (1, 100, 2), (1, 200, 4), (1, 300, 6), (2, 100, 2), (2, 400, 3), (1, 400, 8)],
)
def test_a_step_is_on_the_line_of_the_mean(batch: int, held_tokens: int, step_s: float) -> None:
    assert TIMES.step_s(batch, held_tokens) == pytest.approx(step_s)  # and beyond the last knot the line goes on


def test_a_prompt_is_its_chunks_and_what_even_the_shortest_takes() -> None:
    assert TIMES.most_sequences == 2
    assert TIMES.prefill_s(3) == 2.0
    assert TIMES.chunk_s(1, 2) == 1.0
    assert TIMES.prefill_s(3, cached=2) == 0.5 + 0.75


@given(uneven_tables(), st.integers(1, MOST_SEQS), st.floats(0, 2 * LONGEST))
def test_steps_are_numpys_interpolation(times: Times, batch: int, mean: float) -> None:
    if mean <= times.knots[-1]:
        right_s = np.interp(mean, times.knots, times.steps_s[batch])
        assert times.step_s(batch, mean * batch) == pytest.approx(right_s, rel=1e-9)


@given(uneven_tables(), st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_chunks_add_up_to_the_prompt(times: Times, chunks: list[int]) -> None:
    done = np.cumsum([0, *chunks])
    added_s = sum(times.chunk_s(int(at), chunk) for at, chunk in zip(done, chunks, strict=False))
    assert times.rest_s(sum(chunks)) + added_s == pytest.approx(times.prefill_s(sum(chunks)))
