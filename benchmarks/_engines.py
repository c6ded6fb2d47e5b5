"""How far engines lie apart: each source is left out in turn, and told from the others on the same family of chips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from _published import ENGINES, source_of
from numpy.typing import NDArray

from slicewise.calibrate.fit import measured_s
from slicewise.calibrate.held_out import Floats, error_of, groups_of, left_out
from slicewise.calibrate.terms import Point
from slicewise.catalog.load import chips
from slicewise.spec.efficiency import GROUPS, Error

FEW = 2
"""Models that other sources must have on a family of chips for its source to be left out."""
Errors = Mapping[str, Error]


@dataclass(frozen=True, kw_only=True)
class OtherEngines:
    """Measurements of engines, with what a fit of the other engines said of them.

    Attributes:
        points: the measurements.
        engines: the engine of each.
        expected_s: by a fit that saw no row of its engine; nan where the others have too few rows. Shape (n,).
        in_narrow: whether it lies in the range of the engine that the shipped figures are of. Shape (n,).
        in_wide: whether it lies in the range of other engines, told without its own. Shape (n,).
        errors: by GROUPS, of all of them: what ships.
    """

    points: tuple[Point, ...]
    engines: tuple[str, ...]
    expected_s: Floats
    in_narrow: NDArray[np.bool_]
    in_wide: NDArray[np.bool_]
    errors: Errors

    @property
    def told(self) -> tuple[str, ...]:
        """The engines that could be told from the others."""
        found = {engine for engine, s in zip(self.engines, self.expected_s, strict=True) if np.isfinite(s)}
        return tuple(sorted(found))

    def held(self, is_covered: NDArray[np.bool_], phase: str = "") -> float:
        """Share that a range held, each engine counted alike: of all rows, or of steps or prefills."""
        shares = []
        for engine in self.told:
            rows = [
                i
                for i, point in enumerate(self.points)
                if self.engines[i] == engine and np.isfinite(self.expected_s[i]) and phase in ("", _ends(point))
            ]
            shares += [float(np.mean(is_covered[rows]))] if rows else []
        return float(np.mean(shares))


def family(point: Point) -> str:
    """The architecture of a point's chip."""
    return chips()[point.chip].family


def source(point: Point) -> str:
    """The source of a point."""
    return source_of({"id": point.measurement.where})


def other_engines(found: Sequence[Point], narrow: Mapping[str, Errors]) -> OtherEngines:
    """Every engine told from the others, and the range of an engine that nobody measured.

    Args:
        found: all measurements.
        narrow: by family, the errors of the engine that the shipped figures are of.
    """
    expected_s = of_other_sources(found)
    in_narrow, in_wide = np.zeros(len(found), dtype=bool), np.zeros(len(found), dtype=bool)
    for name in dict.fromkeys(map(source, found)):
        # The range as well is one that never saw the engine: that of the rest, each left out of the rest.
        rest = [point for point in found if source(point) != name]
        wide = _errors(rest, of_other_sources(rest))
        for i, point in enumerate(found):
            own = narrow.get(family(point), {})
            if source(point) == name and own:
                in_narrow[i] = _holds(point, expected_s[i], own)
                in_wide[i] = _holds(point, expected_s[i], {key: own[key].widened(wide[key]) for key in GROUPS})
    told = OtherEngines(
        points=tuple(found),
        engines=tuple(ENGINES[source(point)] for point in found),
        expected_s=expected_s,
        in_narrow=in_narrow,
        in_wide=in_wide,
        errors={},
    )
    held = {phase: told.held(in_wide, phase) for phase in ("decode", "prefill")}
    errors = _errors(found, expected_s)
    return replace(told, errors={key: replace(errors[key], held=held[key.partition(" ")[0]]) for key in GROUPS})


def of_other_sources(found: Sequence[Point]) -> Floats:
    """What a fit of all other sources says of each row; nan where these have few models on such chips. Shape (n,)."""
    sources, families = [source(point) for point in found], [family(point) for point in found]
    expected_s = left_out(found, families, sources)
    for i, (own, name) in enumerate(zip(sources, families, strict=True)):
        others = {p.model for p, s, f in zip(found, sources, families, strict=True) if s != own and f == name}
        if len(others) < FEW:
            expected_s[i] = np.nan
    return expected_s


def _ends(point: Point) -> str:
    """The phase whose range a row is held to: an end-to-end time is mostly steps."""
    return groups_of(point)[0].partition(" ")[0]


def _telling(phase: str) -> tuple[str, ...]:
    """Phases of the rows that tell one: an end-to-end time, which is mostly steps, tells both."""
    return (phase, "end_to_end") if phase else ("decode", "prefill", "end_to_end")


def _errors(found: Sequence[Point], expected_s: Floats) -> dict[str, Error]:
    """Error of each group: that of all rows, or of its phase where this reaches farther; each engine counts alike.

    Engines are few, and hardly one was measured in both phases: how far they lie apart in one tells of the other.
    """
    whole, errors = _error(found, expected_s), {}
    for phase in ("decode", "prefill"):
        own = _error(found, expected_s, phase)
        errors[phase] = own.widened(whole) if whole.high > own.high else own
    return {key: errors[key.partition(" ")[0]] for key in GROUPS}


def _error(found: Sequence[Point], expected_s: Floats, phase: str = "") -> Error:
    told = zip(found, expected_s, strict=True)
    rows = [i for i, (p, s) in enumerate(told) if np.isfinite(s) and p.phase in _telling(phase)]
    own = [found[i] for i in rows]
    counts = Counter(map(source, own))
    weights = np.array([1 / counts[source(point)] for point in own])
    return error_of(measured_s(own) / expected_s[rows], len({point.model for point in own}), weights)


def _holds(point: Point, expected_s: float, errors: Errors) -> bool:
    """Whether a row lies in the range of its group; an end-to-end one in that of its steps."""
    error = errors[groups_of(point)[0]]
    low_s = max(expected_s * error.low, point.bound_s)
    return bool(low_s <= point.measurement.seconds <= expected_s * error.high)
