"""The fit: few coefficients, the same terms for every chip, found on the logarithm of measured over expected times.

Coefficients are of a group (a family of chips, say) or shared by all. The loss is soft: a row that lies far off, for a
reason that no term has, does not bend the rest. Coefficients that the rows do not tell stay near where they start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slicewise.calibrate.terms import SLOWED, TERMS, Point, matrix
from slicewise.errors import InputError
from slicewise.units import US

try:
    from scipy.optimize import least_squares
except ModuleNotFoundError:
    raise InputError("calibrate needs scipy; install it with: pip install 'slicewise[calibrate]'") from None

SHARED = ("kv", "flops", "tokens", "prefill_tokens")
"""Of all chips alike: their own rows would not tell them apart from the other terms."""

Coefficients = Mapping[str, float]
"""By term: 1 over an efficiency, seconds a layer, or passes through HBM."""

START: Coefficients = {
    "weights": 1 / 0.8,
    "kv": 1 / 0.8,
    "flops": 1 / 0.4,
    "network": 1 / 0.8,
    "layers": 50 * US,
    "sync": 10 * US,
    "tokens": 10.0,
    "prefill16": 1 / 0.4,
    "prefill8": 1 / 0.4,
    "prefill_tokens": 1.0,
}
"""Where a fit starts, and where what the rows do not tell remains: round figures, chosen before any row was seen."""

_LEAST = {"layers": 0.01 * US, "sync": 0.01 * US, "tokens": 0.01, "prefill_tokens": 0.01}
_ROUNDING = float(np.finfo(float).eps) * 100
_SOFT = 0.03
"""Relative error from which a row pulls less than its square."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Coefficients by group; a group that was not fitted has none.

    Attributes:
        groups: the coefficients of each group, shared ones included.
    """

    groups: Mapping[str, Coefficients]

    def expected_s(self, points: Sequence[Point], groups: Sequence[str]) -> NDArray[np.float64]:
        """Expected seconds, never below the bound. Shape (n,)."""
        rows = np.array([[self.groups[group][term] for term in TERMS] for group in groups])
        sums: NDArray[np.float64] = (matrix(points) * rows.reshape(len(points), len(TERMS))).sum(axis=1)
        return np.maximum(sums, bounds_s(points))


def bounds_s(points: Sequence[Point]) -> NDArray[np.float64]:
    """The bound of each. Shape (n,)."""
    return np.array([point.bound_s for point in points])


def measured_s(points: Sequence[Point]) -> NDArray[np.float64]:
    """What was measured. Shape (n,)."""
    return np.array([point.measurement.seconds for point in points])


def fit(
    points: Sequence[Point],
    groups: Sequence[str],
    *,
    start: Coefficients = START,
    shared: Sequence[str] = SHARED,
    hold: float = 0.01,
) -> Fit:
    """Fit the coefficients of every group at once.

    Args:
        points: measurements with their terms.
        groups: the group of each.
        start: where coefficients start, and what they are held to.
        shared: terms with one coefficient for all groups.
        hold: how strongly a coefficient is held to where it starts, in rows that it outweighs when it is e times off.
    """
    names = sorted(set(groups))
    keys = [("", term) for term in TERMS if term in shared]
    keys += [(name, term) for name in names for term in TERMS if term not in shared]
    columns = {key: index for index, key in enumerate(keys)}
    terms, truth = matrix(points), measured_s(points)
    spread = np.zeros((len(points), len(keys)))
    for row, group in enumerate(groups):
        for place, term in enumerate(TERMS):
            spread[row, columns["" if term in shared else group, term]] += terms[row, place]
    first = np.array([start[term] for _, term in keys])
    least = np.array([1.0 if term in SLOWED else _LEAST[term] for _, term in keys])
    held = np.sqrt(hold) * _SOFT
    # Coefficients differ by eight orders of magnitude: their logarithms do not.
    found = least_squares(
        lambda logs: np.concatenate([np.log(spread @ np.exp(logs) / truth), held * (logs - np.log(first))]),
        np.log(np.maximum(first, least * 1.001)),
        jac=lambda logs: np.concatenate(
            [
                spread * np.exp(logs) / (spread @ np.exp(logs))[:, None],
                held * np.eye(len(keys)),
            ]
        ),
        bounds=(np.log(least) - _ROUNDING, np.inf),
        loss="soft_l1",
        f_scale=_SOFT,
    )
    fitted = dict(zip(keys, np.exp(found.x).tolist(), strict=True))
    return Fit(groups={name: {t: fitted["" if t in shared else name, t] for t in TERMS} for name in names})


def told_by_rows(points: Sequence[Point], coefficients: Coefficients, hold: float) -> dict[str, float]:
    """How much of each coefficient the rows tell, from 0 (all of it is where it started) to 1: the fit's resolution.

    A coefficient that another one can stand in for is told little, even though its term is there.

    Args:
        points: measurements of one group.
        coefficients: what was fitted to them.
        hold: how strongly they were held to where they started.
    """
    parts = matrix(points) * np.array([coefficients[term] for term in TERMS])
    slopes = parts / parts.sum(axis=1, keepdims=True)
    rows = slopes.T @ slopes
    tie = hold * _SOFT**2 * np.eye(len(TERMS))
    return dict(zip(TERMS, np.diag(np.linalg.solve(rows + tie, rows)).tolist(), strict=True))
