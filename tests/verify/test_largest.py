"""The search for the largest batch: it is right whatever the guess, and a good guess is cheap."""

import math

from hypothesis import given
from hypothesis import strategies as st

from slicewise.verify.largest import largest

NUMBERS = st.integers(0, 3) | st.integers(0, 100) | st.integers(0, 10**6)


def search(most: int, guess: int) -> tuple[int, list[int]]:
    tried: list[int] = []

    def fits(number: int) -> bool:
        tried.append(number)
        return number <= most

    return largest(fits, guess), tried


@given(most=NUMBERS, guess=st.integers(-5, 10**6) | NUMBERS)
def test_it_finds_the_last_that_fits_whatever_the_guess(most: int, guess: int) -> None:
    found, tried = search(most, guess)
    assert found == most
    assert min(tried) >= 1
    assert len(tried) == len(set(tried))


@given(most=NUMBERS, guess=NUMBERS)
def test_tries_grow_with_the_logarithm_of_how_far_off_the_guess_is(most: int, guess: int) -> None:
    _, tried = search(most, guess)
    off = abs(most - max(guess, 1))
    assert len(tried) <= 2 * math.log2(off + 1) + 2


@given(most=st.integers(1, 10**6))
def test_a_right_guess_takes_two_tries(most: int) -> None:
    assert search(most, most) == (most, [most, most + 1])
    assert search(most, most + 1) == (most, [most + 1, most])


def test_where_nothing_fits_there_is_none() -> None:
    assert search(0, 1) == (0, [1])
