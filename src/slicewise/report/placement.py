"""Where labels stand in a picture: log axes in pixels, and texts that lie neither on each other nor on a line.

Vega has no label placement that survives every export, so it is done here, for a plot of fixed size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Points: TypeAlias = NDArray[np.float64]
"""Pixels, shape (points, 2): x to the right, y down."""
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom. [px]"""
Spot: TypeAlias = tuple[str, float, float]
"""Alignment, dx and dy of a text from its point, as Vega understands them."""

BESIDE: tuple[Spot, ...] = (
    ("right", -9, 0),
    ("left", 9, 0),
    ("right", -7, -9),
    ("left", 7, 9),
    ("center", 0, -14),
    ("center", 0, 14),
)
AT_END: tuple[Spot, ...] = (
    ("left", 10, 0),
    *(("left", 10, dy) for dy in (-6, 6, -10, 10)),
    *(("left", 24, dy) for dy in (-16, 16, -24, 24, -32, 32)),
)
_TICK_DIGITS = ("1", "1 2 5", "1 1.5 2 3 5 7", "1 1.2 1.5 2 2.5 3 4 5 6 7 8 9")
_GAP = 3.0  # between a text and what stands beside it [px]
_TWIN_GAP = 24.0  # between equal texts, which would be read as one [px]


@dataclass(frozen=True, slots=True)
class LogScale:
    """A log axis that runs from `low` at pixel 0 to `high` at pixel `pixels`."""

    low: float
    high: float
    pixels: float

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.pixels * math.log(value / self.low) / math.log(self.high / self.low)

    def value(self, pixel: float) -> float:
        """The value at a pixel."""
        return float(self.low * (self.high / self.low) ** (pixel / self.pixels))

    def ticks(self, at_most: int) -> list[float]:
        """Round values within the axis, the most that are allowed."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        every = [[float(f"{digit}e{k}") for k in decades for digit in digits.split()] for digits in _TICK_DIGITS]
        within = [[value for value in values if self.low <= value <= self.high] for values in every]
        return max((values for values in within if len(values) <= at_most), key=len, default=within[0])


def log_scale(values: Iterable[float], pixels: float, *, before: float = 0, after: float = 0) -> LogScale:
    """A log axis over the values, at least a factor of two wide, with room before and after them, in pixels."""
    values = list(values)
    low, high = min(values), max(values)
    if high < 2 * low:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(2), middle * math.sqrt(2)
    per_pixel = math.log(high / low) / (pixels - before - after)
    return LogScale(low * math.exp(-before * per_pixel), high * math.exp(after * per_pixel), pixels)


@dataclass(frozen=True, slots=True)
class Label:
    """A text that wants to stand beside a point, at the first of its spots that is free; `row` is what it names."""

    text: str
    point: tuple[float, float]
    row: dict[str, Any]
    spots: Sequence[Spot] = BESIDE
    size: float = 11

    def box(self, spot: Spot) -> Box:
        """The room that the text takes at a spot; its width is guessed generously."""
        align, dx, dy = spot
        width, half = 0.6 * self.size * len(self.text), 0.6 * self.size
        left = self.point[0] + dx - width * {"left": 0.0, "center": 0.5, "right": 1.0}[align]
        middle = self.point[1] + dy
        return left, middle - half, left + width, middle + half


def place(labels: Iterable[Label], lines: Points, height: float) -> list[tuple[Label, Spot]]:
    """The labels that find room, each with its spot; the rest is left out.

    Args:
        labels: the wanted ones, most important first.
        lines: points along whatever a label must not cover.
        height: of the plot, which labels leave to the right only. [px]
    """
    placed: list[tuple[Label, Spot]] = []
    for label in labels:
        taken = [(other.text, other.box(spot)) for other, spot in placed]
        free = (spot for spot in label.spots if _is_free(label.text, label.box(spot), taken, lines, height))
        if spot := next(free, None):
            placed.append((label, spot))
    return placed


def _is_free(text: str, box: Box, taken: Iterable[tuple[str, Box]], lines: Points, height: float) -> bool:
    left, top, right, bottom = box
    if left < 0 or top < 0 or bottom > height:
        return False
    for other, (left_, top_, right_, bottom_) in taken:
        across, along_ = (_TWIN_GAP, _TWIN_GAP) if other == text else (_GAP, 0.0)
        if left < right_ + across and right > left_ - across and top < bottom_ + along_ and bottom > top_ - along_:
            return False
    x, y = lines.T
    return not np.any((left - _GAP < x) & (x < right + _GAP) & (top < y) & (y < bottom))


def along(corners: Iterable[tuple[float, float]]) -> Points:
    """Points along a line through the corners, 2 px apart or less, shape (points, 2)."""
    ends = np.asarray(list(corners), dtype=float)
    pieces = np.diff(ends, axis=0)
    steps = np.maximum(1, np.ceil(np.hypot(pieces[:, 0], pieces[:, 1]) / 2)).astype(int)
    piece = np.repeat(np.arange(len(steps)), steps)
    # How far along its piece each point lies: 1/n, 2/n, ... 1.
    share = (np.arange(1, len(piece) + 1) - np.repeat(np.cumsum(steps) - steps, steps)) / steps[piece]
    return np.concatenate([ends[:1], ends[piece] + share[:, None] * pieces[piece]])


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """The positions nearest to `wanted` (ascending) that stand `gap` pixels apart or more.

    >>> spread([10.0, 12.0, 50.0], 16.0)
    [3.0, 19.0, 50.0]
    """
    blocks: list[tuple[float, int]] = []  # mean of wanted[i] - i * gap, and how many share it
    for i, position in enumerate(wanted):
        mean, count = position - i * gap, 1
        while blocks and blocks[-1][0] > mean:
            other, n = blocks.pop()
            mean, count = (other * n + mean * count) / (n + count), n + count
        blocks.append((mean, count))
    means = [mean for mean, count in blocks for _ in range(count)]
    return [mean + i * gap for i, mean in enumerate(means)]
