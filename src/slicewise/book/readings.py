"""Numbers that compose a planner's result: nothing here knows what was printed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from slicewise.catalog.slices import load_slice
from slicewise.planner.frontier import Frontier
from slicewise.planner.memory import Memory
from slicewise.planner.step import Step


def chips_needed(step: Step) -> float:
    """Whole chips that hold the bytes of a step, standard slice or not. []"""
    return math.ceil(step.total_bytes / step.deployment.hbm_bytes_per_chip)


def smallest_slice_chips(memory: Memory) -> float:
    """Chips of the smallest standard slice that fits; infinite where none does. []"""
    return load_slice(memory.smallest).n_chips if memory.smallest else math.inf


def gain_at_twice_the_step(frontier: Frontier) -> float:
    """Tokens a second at the last batch whose step is at most twice that of one sequence, over those of one. []"""
    batch, step_s = np.array(frontier.columns["batch"]), np.array(frontier.columns["step_s"])
    slowest = int(np.flatnonzero(step_s <= 2 * step_s[0])[-1])
    return float(batch[slowest] / step_s[slowest] * step_s[0])


READINGS: dict[str, Callable[[Any], float]] = {
    function.__name__: function for function in (chips_needed, smallest_slice_chips, gain_at_twice_the_step)
}
"""The readings by name."""

RESTS_ON = {
    "chips_needed": ("total_bytes", "hbm_bytes_per_chip"),
    "smallest_slice_chips": ("total_bytes", "hbm_bytes"),
}
"""What a reading is made of, where its result derives that."""
