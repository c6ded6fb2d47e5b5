"""What steps and prompts take, as tables that an engine looks up: the planner's own times, in any view."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Times:
    """Tables of one server.

    Attributes:
        knots: tokens that a sequence holds, rising, from 0; between two of them a step's time is a line. Shape (k,).
        steps_s: a decode step by batch (row 0 is of none, and unused) and by knot. [s] Shape (b + 1, k).
        prefills_s: prefill of a prompt by its tokens; at 0 what even the shortest takes. [s] Shape (t + 1,).
    """

    knots: NDArray[np.float64]
    steps_s: NDArray[np.float64]
    prefills_s: NDArray[np.float64]

    @property
    def most_sequences(self) -> int:
        """The largest batch of the table."""
        return len(self.steps_s) - 1

    @cached_property
    def lists(self) -> tuple[list[float], list[list[float]], list[float]]:
        """Knots, steps and prefills as lists, faster to look single values up in; one copy for all servers."""
        return self.knots.tolist(), self.steps_s.tolist(), self.prefills_s.tolist()

    @cached_property
    def least_step_s(self) -> float:
        """No step takes less. [s]"""
        return float(self.steps_s[1:].min())

    def step_s(self, batch: int, held_tokens: float) -> float:
        """A decode step of a batch that holds so many tokens in all, evenly as it were. [s]"""
        mean = held_tokens / batch
        at = min(max(bisect_right(self.knots, mean) - 1, 0), len(self.knots) - 2)
        low, high = float(self.knots[at]), float(self.knots[at + 1])
        row = self.steps_s[batch]
        return float(row[at] + (row[at + 1] - row[at]) * ((mean - low) / (high - low)))

    def chunk_s(self, done: int, tokens: int) -> float:
        """What further tokens of a prompt add once some are done. [s]"""
        return float(self.prefills_s[done + tokens] - self.prefills_s[done])

    def prefill_s(self, tokens: int, cached: int = 0) -> float:
        """A prompt alone, of which some tokens are cached. [s]"""
        return float(self.prefills_s[0]) + self.chunk_s(cached, tokens - cached)
