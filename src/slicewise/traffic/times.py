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
        works_s: the part of it that adds up over the prompts of an iteration: FLOPs and network, but not the loading of
            weights that all of them share; None for all that exceeds `prefills_s[0]`. [s] Shape (t + 1,).
    """

    knots: NDArray[np.float64]
    steps_s: NDArray[np.float64]
    prefills_s: NDArray[np.float64]
    works_s: NDArray[np.float64] | None = None

    @property
    def most_sequences(self) -> int:
        """The largest batch of the table."""
        return len(self.steps_s) - 1

    @cached_property
    def lists(self) -> tuple[list[float], list[list[float]], list[float], list[float]]:
        """Knots, steps, works and rests as lists, faster to look single values up in; one copy for all servers."""
        return self.knots.tolist(), self.steps_s.tolist(), self.works.tolist(), self.rests.tolist()

    @cached_property
    def works(self) -> NDArray[np.float64]:
        """`works_s`, or what stands in for it. [s] Shape (t + 1,)."""
        return self.prefills_s - self.prefills_s[0] if self.works_s is None else self.works_s

    @cached_property
    def rests(self) -> NDArray[np.float64]:
        """What an iteration of so many prompt tokens takes beside their work. [s] Shape (t + 1,)."""
        return self.prefills_s - self.works

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
        """The work of further tokens of a prompt once some are done. [s]"""
        return float(self.works[done + tokens] - self.works[done])

    def rest_s(self, tokens: int) -> float:
        """What an iteration of so many prompt tokens takes beside their work, where nobody decodes. [s]"""
        return float(self.rests[min(tokens, len(self.rests) - 1)])

    def prefill_s(self, tokens: int, cached: int = 0) -> float:
        """A prompt alone, of which some tokens are cached. [s]"""
        return self.rest_s(tokens - cached) + self.chunk_s(cached, tokens - cached)
