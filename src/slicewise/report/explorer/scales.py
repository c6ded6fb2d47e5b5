"""Axes that hold still: their ends are round, so that they change only where what is drawn leaves them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from slicewise.report.placement import LogScale

_ROUND = (1.0, 2.0, 5.0)
_ROUNDING = 1e-10
_ROOM = 0.04
"""Of a decade, kept between what is drawn and an end."""


def log_frame(values: Iterable[float], pixels: float) -> LogScale:
    """A log axis over the values whose ends are 1, 2 or 5 times a power of ten, at least a factor of five apart."""
    drawn = [value for value in values if value > 0]
    low, high = below(min(drawn) / 10**_ROOM), above(max(drawn) * 10**_ROOM)
    while high < 5 * low:
        low, high = below(low * 0.99), above(high * 1.01)
    return LogScale(low, high, pixels)


def powers_of_two(most: float, pixels: float) -> LogScale:
    """A log axis from one up to the power of two that holds the most."""
    return LogScale(1.0, float(2 ** max(2, math.ceil(math.log2(max(most, 1.0)) - _ROUNDING))), pixels)


def steps_to(top: float) -> list[float]:
    """Ticks from zero to a round number: four or five steps.

    >>> steps_to(20.0), steps_to(0.05)
    ([0.0, 5.0, 10.0, 15.0, 20.0], [0.0, 0.01, 0.02, 0.03, 0.04, 0.05])
    """
    steps = 5 if f"{top:e}"[0] in "15" else 4
    return [float(f"{top * i / steps:.6g}") for i in range(steps + 1)]


def above(value: float) -> float:
    """The least round number that is no less.

    >>> above(3.1), above(5.0)
    (5.0, 5.0)
    """
    exponent = math.floor(math.log10(value))
    found = [digit * 10.0**e for e in (exponent, exponent + 1) for digit in _ROUND]
    return float(f"{next(each for each in found if each >= value * (1 - _ROUNDING)):.6g}")


def below(value: float) -> float:
    """The greatest round number that is no more.

    >>> below(3.1), below(5.0)
    (2.0, 5.0)
    """
    exponent = math.floor(math.log10(value))
    found = [digit * 10.0**e for e in (exponent - 1, exponent) for digit in _ROUND]
    return float(f"{next(each for each in reversed(found) if each <= value * (1 + _ROUNDING)):.6g}")
