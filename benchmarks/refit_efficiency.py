"""Fits the efficiencies of GPUs to published measurements, and tells how well they hold on what they never saw.

Reads a table of published measurements (columns as benchmarks/_published.py names them), fits the terms of
costs/fitted.py, writes src/slicewise/catalog/data/efficiency/*.toml, and prints the held-out tables of
docs/calibration.md. Takes some seconds. Needs the extra `calibrate`.
Run: python benchmarks/refit_efficiency.py PATH_OF_measured.csv [--write]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _engines import OtherEngines, family, of_other_sources, other_engines, source
from _held_out_tables import by_model, by_source, figures, left_out_rows, transfer
from _pages import PAGE, placed
from _published import ENGINES, points

from slicewise.calibrate.fit import SHARED, Fit, fit
from slicewise.calibrate.held_out import Floats, Told, error_of, family_ranges, groups_of, left_out, told
from slicewise.calibrate.terms import Point
from slicewise.calibrate.write import FIGURES, bits_of, efficiency_from, efficiency_toml, rounded
from slicewise.spec.efficiency import GROUPS, Efficiency, Error

FOLDER = Path(__file__).parents[1] / "src/slicewise/catalog/data/efficiency"
MAIN = "trt09dli"
"""The source with several models, chips, batches and both phases: its fit is the default."""
MEASURED, KEY = "2024-04", "trt-llm-dli"
"""When, and its key in sources.toml."""
ALL = "gpus"
HEADING = (
    "Fitted figures, no facts. Written by benchmarks/refit_efficiency.py from published measurements: do not edit."
)


@dataclass(frozen=True, kw_only=True)
class Fits:
    """What is made of the measurements.

    Attributes:
        files: every efficiency, by the name of its file: that of each family, and what all GPUs have in common.
        models: the default engine's rows, told without their model.
        engines: all rows, told without their engine.
    """

    files: Mapping[str, Efficiency]
    models: Told
    engines: OtherEngines


def fit_all(found: Sequence[Point]) -> Fits:
    """The fits of all chips, and how they hold."""
    main = [point for point in found if source(point) == MAIN]
    families, models = [family(point) for point in main], [point.model for point in main]
    fitted = fit(main, families)
    known = family_ranges(main, left_out(main, families, models), families)
    held = told(main, families, models)
    shared = {
        "shared": tuple(FIGURES[term] for term in SHARED),
        "shared_chips": tuple(sorted({point.chip for point in main})),
        "shared_rows": len(main),
    }
    files = {name: _efficiency(name, main, fitted, _held(known[name], held, name), **shared) for name in sorted(known)}
    together = fit(main, [ALL] * len(main), shared=())
    apart = other_engines(found, {name: each.errors for name, each in files.items()})
    others: dict[str, Any] = {
        "other_engines": apart.told,
        "other_engine_errors": {key: rounded(error) for key, error in apart.errors.items()},
    }
    files[ALL] = _efficiency(ALL, main, together, _wide(found, known), **others)
    return Fits(files=files, models=held, engines=apart)


def _held(errors: Mapping[str, Error], held: Told, name: str) -> dict[str, Error]:
    """A family's errors, each with the share of its rows that a range held which never saw their model."""
    rows = {key: [i for i, p in enumerate(held.points) if family(p) == name and key in groups_of(p)] for key in errors}
    covered = {key: float(np.mean(held.is_covered[own])) if own else None for key, own in rows.items()}
    return {key: replace(error, held=covered[key]) for key, error in errors.items()}


def _wide(found: Sequence[Point], known: Mapping[str, Mapping[str, Error]]) -> dict[str, Error]:
    """The range of what nobody measured: how far chips, and engines, lie apart, each of these alike, whatever its rows.

    It is never narrower than that of what was measured.
    """
    apart = [point for point in found if source(point) in (MAIN, "dstack")]
    told = [*zip(apart, _of_other_chips(apart), strict=True), *zip(found, of_other_sources(found), strict=True)]
    ratios: dict[tuple[str, str, bool], list[float]] = {}
    for at, (point, expected_s) in enumerate(told):
        if np.isfinite(expected_s):
            key = (source(point), family(point), at < len(apart))
            ratios.setdefault(key, []).append(point.measurement.seconds / expected_s)
    weights = [1 / len(rows) for rows in ratios.values() for _ in rows]
    values = np.array([ratio for rows in ratios.values() for ratio in rows])
    error = error_of(values, len({point.model for point in found}), np.array(weights))
    n_rows = len({id(point) for point, expected_s in told if np.isfinite(expected_s)})
    ends = {key: [errors[key] for errors in known.values()] for key in GROUPS}
    return {
        key: replace(
            error,
            range_rows=n_rows,
            low=min(error.low, *(each.low for each in own)),
            high=max(error.high, *(each.high for each in own)),
        )
        for key, own in ends.items()
    }


def _efficiency(name: str, main: Sequence[Point], fitted: Fit, errors: Mapping[str, Error], **words: Any) -> Efficiency:
    own = [point for point in main if name in (ALL, family(point))]
    return efficiency_from(
        fitted.groups[name],
        {key: _counted(errors[key], key, own) for key in GROUPS},
        bits=bits_of(own),
        name=f"{name}-{ENGINES[MAIN].lower().replace(' ', '-')}",
        family=name,
        engine=ENGINES[MAIN],
        chips=tuple(sorted({point.chip for point in own})),
        models=tuple(sorted({point.model.lower() for point in own})),
        most_chips=max(point.n_chips for point in own),
        n_rows=len(own),
        measured=MEASURED,
        sources=(KEY,),
        **words,
    )


def _counted(error: Error, key: str, own: Sequence[Point]) -> Error:
    """The error of a group of rows, with how many of them are a family's own."""
    rows = [point for point in own if key in groups_of(point)]
    return replace(error, n_rows=len(rows), n_models=len({point.model for point in rows}))


def tables(found: Sequence[Point], left: Counter[str], fitted: Fits) -> dict[str, str]:
    """The parts of docs/calibration.md that are made of the fit, by the name of their place."""
    apart = [point for point in found if source(point) in (MAIN, "dstack")]
    return {
        "figures": figures(fitted.files.values()),
        "leave-one-model-out": by_model(fitted.models),
        "leave-one-source-out": by_source(fitted.engines),
        "leave-one-family-out": transfer(apart, _of_other_chips(apart), [family(point) for point in apart]),
        "left-out": left_out_rows(left),
    }


def run(path: Path, *, write: bool) -> None:
    """Fit, and write the files and the tables, or print them."""
    found, left = points(path)
    fitted = fit_all(found)
    for name, efficiency in fitted.files.items():
        text = efficiency_toml([efficiency], HEADING)
        if write:
            (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")
        else:
            print(f"# {name}.toml\n{text}")
    made = tables(found, left, fitted)
    if write:
        PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    else:
        print("\n\n".join(made.values()))


def _of_other_chips(rows: Sequence[Point]) -> Floats:
    """What the default engine's rows on the other families say of each row. Shape (n,)."""
    families, found = [family(point) for point in rows], np.full(len(rows), np.nan)
    for name in dict.fromkeys(families):
        seen = [point for point in rows if source(point) == MAIN and family(point) != name]
        asked = [i for i, own in enumerate(families) if own == name]
        rest = fit(seen, [ALL] * len(seen), shared=())
        found[asked] = rest.expected_s([rows[i] for i in asked], [ALL] * len(asked))
    return found


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--write"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    run(Path(arguments[0]), write="--write" in sys.argv)
