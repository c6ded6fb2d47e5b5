"""Load curves: `simulate` at several rates, with several seeds, each a run of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner.record import record
from slicewise.spec.model import Model
from slicewise.traffic.read import read_trace
from slicewise.traffic.requests import Requests
from slicewise.traffic.run import places_of, simulate
from slicewise.traffic.simulation import Simulation
from slicewise.traffic.sweep import Told, sweep
from slicewise.traffic.words import MADE, seed_of
from slicewise.units import parse_positive, plain

SEVERAL = ("rate", "seed")
"""Words of which a curve takes several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """A run of a load curve.

    Attributes:
        rate: requests that arrived in a second, in the mean of the run; None where all came at once. [1/s]
        seed: of what is random.
        run: the simulation.
    """

    rate: float | None
    seed: int
    run: Simulation

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: what was asked, and the simulation's."""
        return {"rate": plain(self.rate), "seed": self.seed, **self.run.to_dict()}


@dataclass(frozen=True, kw_only=True)
class LoadCurve:
    """The answer of `simulate` with several rates or seeds.

    Attributes:
        points: runs by rate, then by seed.
        fits: the model fits, and every run keeps the limits; false with limits where runs are missing.
        is_whole: no run was stopped.
    """

    points: tuple[LoadPoint, ...]
    fits: bool
    is_whole: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {**record(self, without=("points",)), "rows": [point.to_dict() for point in self.points]}

    def explain(self, name: str = "") -> Derivation:
        """Refused: each run has numbers of its own.

        Raises:
            InputError: always.
        """
        raise InputError(f"--explain {name}: a load curve has many runs; ask with one --rate and one --seed")


def is_curve(words: Mapping[str, Any]) -> bool:
    """Whether words ask for several runs."""
    return any(len(words[name]) > 1 for name in SEVERAL if isinstance(words.get(name), list))


def load_curve(model: str | Path | Model, *, progress: Told | None = None, **words: Any) -> LoadCurve:
    """`simulate` at each rate with each seed. Stopped by Ctrl-C, the runs that are done.

    Args:
        model: as for `simulate`.
        progress: is told how many runs are done.
        words: those of `simulate`; rate and seed may be lists. A curve is run without the bound and the range.

    Raises:
        InputError: as of `simulate`, or two rates or seeds are the same.
    """
    rates, seeds = _listed(words, "rate", _rate), _listed(words, "seed", seed_of)
    if len(seeds) > 1 and words.get("trace") is not None and all(words.get(name) is None for name in MADE):
        raise InputError("--seed: nothing is random in a plain trace; add --requests, or give one seed")
    jobs, backend = places_of(words)
    shared = {name: value for name, value in words.items() if name not in (*SEVERAL, "jobs", "backend")}
    shared["no_range"] = True
    if shared.get("trace") is not None and not isinstance(shared["trace"], Requests):
        shared["trace"] = read_trace(shared["trace"])  # once for all runs
    works = [_Work(model, {**shared, "rate": rate, "seed": seed}) for rate in rates for seed in seeds]
    swept = sweep(
        _point,
        works,
        jobs=jobs,
        backend=backend,
        progress=progress,
    )
    points = tuple(point for point in swept.results if point)
    return LoadCurve(points=points, fits=_fits(points, is_whole=swept.is_whole), is_whole=swept.is_whole)


def _fits(points: tuple[LoadPoint, ...], *, is_whole: bool) -> bool:
    has_limits = any(point.run.verdict for point in points)
    return bool(points) and all(point.run.fits for point in points) and (is_whole or not has_limits)


@dataclass(frozen=True)
class _Work:
    model: str | Path | Model
    words: dict[str, Any]


def _point(work: _Work) -> LoadPoint:
    run = simulate(work.model, **work.words)
    if not run.is_whole:
        raise KeyboardInterrupt
    # Requests and outcomes of many runs are large, and nobody looks at them again.
    small = replace(run, load=run.load.first(1), outcome=None)
    return LoadPoint(rate=run.requests.requests_per_s, seed=work.words["seed"], run=small)


def _listed(words: Mapping[str, Any], name: str, read: Callable[[Any], Any]) -> list[Any]:
    value = words.get(name)
    found = [read(each) for each in (value if isinstance(value, list | tuple) else [value])]
    if not found or len(set(found)) < len(found):
        raise InputError(f"--{name}: none is given, or one twice; give each once")
    return found


def _rate(value: Any) -> float | None:
    return None if value is None else parse_positive(value, "request/s", "--rate")
