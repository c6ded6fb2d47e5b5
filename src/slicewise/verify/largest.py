"""The largest batch that compiles, by doubling steps from the plan's own and then bisection."""

from __future__ import annotations

from collections.abc import Callable


def largest(fits: Callable[[int], bool], guess: int) -> int:
    """The largest whole number from 1 on that fits, 0 where none does.

    >>> tried = []
    >>> largest(lambda n: tried.append(n) or n <= 47, 48), tried
    (47, [48, 47])

    Args:
        fits: whether a number fits; what is larger than one that does not, does not either.
        guess: where to begin.
    """
    low, high = 0, 0  # low fits (0 always does), high does not (0: not known)
    step, at = 1, max(guess, 1)
    while True:
        if fits(at):
            low = at
            if high:
                break
            at += step
        else:
            high = at
            if low or at == 1:
                break
            at = max(at - step, 1)
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
