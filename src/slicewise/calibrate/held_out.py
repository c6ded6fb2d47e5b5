"""How well a fit holds on what it never saw: a model, a source or a chip is left out, and then told from the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slicewise.calibrate.fit import Fit, fit, measured_s
from slicewise.calibrate.terms import Point
from slicewise.spec.efficiency import GROUPS, LARGE_BATCHES, Error, group_of, on_one_chip

COVERED = 0.8
"""Share of the measurements that lie in a range."""
ROUNDING = float(np.sqrt(np.finfo(float).eps))
ENOUGH = 8
"""Rows from which a group has a range of its own."""
SEVERAL = 3
"""Models from which a group's rows tell how far off another model may be, whatever its neighbours say."""

Fitter = Callable[[Sequence[Point], Sequence[str]], Fit]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Told:
    """Measurements with what a fit said that never saw them.

    Attributes:
        points: the measurements.
        expected_s: by a fit without the like of them; nan where nothing was left to fit. Shape (n,).
        low_s: lower end of the range, from rows that the fit never saw either. Shape (n,).
        high_s: upper end. Shape (n,).
    """

    points: tuple[Point, ...]
    expected_s: Floats
    low_s: Floats
    high_s: Floats

    @property
    def ratio(self) -> Floats:
        """Measured over expected. Shape (n,)."""
        return measured_s(self.points) / self.expected_s

    @property
    def is_covered(self) -> NDArray[np.bool_]:
        """Whether the measurement lies in the range. Shape (n,)."""
        truth = measured_s(self.points)
        return (truth >= self.low_s) & (truth <= self.high_s)


def groups_of(point: Point) -> tuple[str, ...]:
    """The groups whose range a row tells: its phase's; an end-to-end time tells those of both."""
    phases = ("decode", "prefill") if point.phase == "end_to_end" else (point.phase,)
    return tuple(group_of(phase, point.n_chips, point.measurement.batch) for phase in phases)


def left_out(points: Sequence[Point], groups: Sequence[str], left: Sequence[str], fitter: Fitter = fit) -> Floats:
    """Expected seconds of each by a fit that saw none of its kind. Shape (n,).

    Args:
        points: measurements.
        groups: the group of coefficients of each.
        left: what is left out together: the model, or the source of each.
        fitter: fits the rest.
    """
    found = np.full(len(points), np.nan)
    for name in dict.fromkeys(left):
        seen = [i for i, other in enumerate(left) if other != name]
        rest = fitter([points[i] for i in seen], [groups[i] for i in seen]) if seen else None
        asked = [i for i, other in enumerate(left) if other == name and rest and groups[i] in rest.groups]
        if rest and asked:
            found[asked] = rest.expected_s([points[i] for i in asked], [groups[i] for i in asked])
    return found


def ranges(points: Sequence[Point], expected_s: Floats, fewest: int = ENOUGH) -> dict[str, Error]:
    """Error and range of each group of at least so many rows, whatever the chip, around expected times."""
    ratio = measured_s(points) / expected_s
    own: dict[str, list[int]] = {}
    for i, point in enumerate(points):
        for name in groups_of(point) if np.isfinite(ratio[i]) else ():
            own.setdefault(name, []).append(i)
    return {
        name: error_of(ratio[rows], len({points[i].model for i in rows}))
        for name, rows in own.items()
        if len(rows) >= fewest
    }


def family_ranges(points: Sequence[Point], expected_s: Floats, families: Sequence[str]) -> dict[str, dict[str, Error]]:
    """Error and range of each family's groups, as far as anything tells them.

    A family's own rows tell the range of a group where there are enough of several models. Else it reaches at least as
    far as that of the same group on all families and, of large batches, as that of the family's large batches on one
    chip: few models tell little of another one.
    """
    together, found = ranges(points, expected_s), {}
    for family in dict.fromkeys(families):
        rows = [i for i, name in enumerate(families) if name == family]
        seen = ranges([points[i] for i in rows], expected_s[rows], fewest=1)
        told_of = {name: _range_of(name, seen, together) for name in GROUPS}
        found[family] = {name: error for name, error in told_of.items() if error}
    return found


def _range_of(name: str, seen: Mapping[str, Error], together: Mapping[str, Error]) -> Error | None:
    """The error of a group by a family's own rows, widened by its neighbours where these are few."""
    own = seen.get(name)
    if own and own.n_rows >= ENOUGH and own.n_models >= SEVERAL:
        return own
    beside = [own, together.get(name), *([seen.get(on_one_chip(name))] if name.endswith(LARGE_BATCHES) else [])]
    told = [error for error in beside if error and error.n_rows >= ENOUGH]
    if not told:
        return None
    widest = max(told, key=lambda error: error.high)
    return replace(own or widest, low=widest.low, high=widest.high, range_rows=widest.range_rows)


def error_of(ratio: Floats, n_models: int, weights: Floats | None = None) -> Error:
    """Median error and range of measured over expected. Shape of `ratio` and `weights` (n,).

    The range reaches as far up as down, for few models tell how far, and none which way the next one lies. It takes in
    a row more than the percentile of so few rows does, for the next row is none of them.
    """
    off = np.abs(np.log(ratio))
    order = np.argsort(off)
    share = np.ones(len(off)) if weights is None else weights[order] * len(off) / weights.sum()
    at = int(np.searchsorted(np.cumsum(share), COVERED * (len(off) + 1) - ROUNDING))
    reach = float(np.exp(off[order][min(at, len(off) - 1)]))
    return Error(
        n_rows=len(ratio),
        n_models=n_models,
        range_rows=len(ratio),
        median=_median(np.abs(1 / ratio - 1), weights),
        low=1 / reach,
        high=reach,
    )


def _median(sizes: Floats, weights: Floats | None) -> float:
    if weights is None:
        return float(np.median(sizes))
    order = np.argsort(sizes)
    return float(sizes[order][np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)])


def told(points: Sequence[Point], groups: Sequence[str], left: Sequence[str], fitter: Fitter = fit) -> Told:
    """Leave one out, ranges included: those of a row come from a second leaving-out among the rows that were seen.

    Args:
        points: measurements.
        groups: the group of coefficients of each, which is that of its range too: its family.
        left: what is left out together.
        fitter: fits the rest.
    """
    expected_s = left_out(points, groups, left, fitter)
    low_s, high_s = np.full(len(points), np.nan), np.full(len(points), np.nan)
    for name in dict.fromkeys(left):
        seen = [i for i, other in enumerate(left) if other != name]
        rest = [points[i] for i in seen]
        of_rest = [groups[i] for i in seen]
        known = family_ranges(rest, left_out(rest, of_rest, [left[i] for i in seen], fitter), of_rest)
        for i in (i for i, other in enumerate(left) if other == name):
            error = known.get(groups[i], {}).get(groups_of(points[i])[0])
            if error:
                low_s[i] = max(expected_s[i] * error.low, points[i].bound_s)
                high_s[i] = expected_s[i] * error.high
    return Told(points=tuple(points), expected_s=expected_s, low_s=low_s, high_s=high_s)
