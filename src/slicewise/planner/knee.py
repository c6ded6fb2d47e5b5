"""The knee: up to which batch a further sequence costs only its own cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slicewise.derive import Derivation
from slicewise.planner.deployment import Deployment

TOLERANCE = 0.01
MOST_SEQUENCES = 10**12
"""Farther than any batch goes."""

_POINTS = 65

Holds = Callable[[NDArray[np.float64]], NDArray[np.bool_]]


def largest_batch(holds: Holds, most: int = MOST_SEQUENCES) -> int | None:
    """The largest batch up to `most` at which a condition holds, where it holds up to some batch and never after.

    Returns:
        The batch; 0 where it holds nowhere; None where it still holds at `most`.
    """
    if most < 1:
        return 0
    low, high = 0, most + 1
    if holds(np.array([float(most)]))[0]:
        return None
    while high - low > 1:
        grid = np.array(sorted(set(np.geomspace(low + 1, high, _POINTS).round().tolist())))
        good = holds(grid)
        low = int(grid[good][-1]) if good.any() else low
        high = int(grid[~good][0]) if not good.all() else high
    return low


def knee_batch(deployment: Deployment) -> int | None:
    """The largest batch whose shared time is within 1 % of that of one sequence; None where there is no such limit."""
    limit_s = (1 + TOLERANCE) * deployment.value("shared_s", batch=1.0)
    return largest_batch(lambda batch: np.asarray(deployment.value("shared_s", batch=batch) <= limit_s))


def explain_knee(deployment: Deployment) -> Derivation:
    """The derivation of the knee: the shared time at one sequence, at the knee, and one beyond."""
    knee = knee_batch(deployment)
    parts = [
        replace(deployment.explain("shared_s", batch=batch), name=f"shared_s at batch {batch}")
        for batch in ([1, knee, knee + 1] if knee else [1])
    ]
    return Derivation(
        name="knee_batch",
        value=knee,
        unit="",
        meaning="Largest batch at which a further sequence costs only its own cache",
        formula=f"largest batch with shared_s <= {1 + TOLERANCE:g} × shared_s at batch 1",
        numbers=f"{1 + TOLERANCE:g} × shared_s at batch 1 = {(1 + TOLERANCE) * parts[0].value:.6g} s",
        computed_by="slicewise.planner.knee.knee_batch",
        parts=tuple(parts),
    )
