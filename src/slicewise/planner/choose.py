"""The choice among searched candidates: the best objective, then the 1 % rule. And which of many are not dominated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slicewise.planner.search import Searched

TOLERANCE = 0.01
"""Plans within 1 % of the best objective count as equally good."""


def choose(found: Sequence[Searched]) -> tuple[Searched, int] | None:
    """Of plans within 1 % of the best objective the lowest step, then the fewest chips.

    Returns:
        The candidate and the index of its batch; None where nothing is feasible.
    """
    live = [searched for searched in found if searched.batches.size]
    if not live:
        return None
    best = min(float(searched.score.min()) for searched in live)
    limit = best + abs(best) * TOLERANCE
    picks = []
    for searched in live:
        good = np.flatnonzero(searched.score <= limit)
        if good.size:
            index = int(good[np.argmin(searched.step_s[good])])
            picks.append((float(searched.step_s[index]), searched.deployment.slice.n_chips, index, searched))
    step_s, n_chips, index, searched = min(picks, key=lambda pick: pick[:2])
    del step_s, n_chips
    return searched, index


def pareto(latency_s: NDArray[np.float64], throughput: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which points no other dominates: none is as fast with more throughput, nor faster with as much. Shape (n,).

    Of equal points the first is kept.
    """
    order = np.lexsort((-throughput, latency_s))
    best_before = np.concatenate([[-np.inf], np.maximum.accumulate(throughput[order])[:-1]])
    kept = np.zeros(latency_s.shape, dtype=bool)
    kept[order] = throughput[order] > best_before
    return kept
