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
from dataclasses import replace
from pathlib import Path

import numpy as np
from _held_out_tables import by_model, by_source, figures, left_out_rows, transfer
from _pages import PAGE, placed
from _published import ENGINES, points, source_of

from slicewise.calibrate.fit import Fit, fit
from slicewise.calibrate.held_out import Floats, error_of, groups_of, left_out, ranges, told
from slicewise.calibrate.terms import Point
from slicewise.calibrate.write import bits_of, efficiency_from, efficiency_toml
from slicewise.catalog.load import chips
from slicewise.spec.efficiency import GROUPS, Efficiency, Error

FOLDER = Path(__file__).parents[1] / "src/slicewise/catalog/data/efficiency"
MAIN = "trt09dli"
"""The source with several models, chips, batches and both phases: its fit is the default."""
MEASURED, KEY = "2024-04", "trt-llm-dli"
"""When, and its key in sources.toml."""
FEW = 2
"""Models that other sources must have on a family of chips for its source to be left out."""
ALL = "gpus"
HEADING = (
    "Fitted figures, no facts. Written by benchmarks/refit_efficiency.py from published measurements: do not edit."
)


def family(point: Point) -> str:
    """The architecture of a point's chip."""
    return chips()[point.chip].family


def source(point: Point) -> str:
    """The source of a point."""
    return source_of({"id": point.measurement.where})


def fit_all(found: Sequence[Point]) -> dict[str, Efficiency]:
    """Every efficiency file, by name: that of each family, and what all GPUs have in common."""
    main = [point for point in found if source(point) == MAIN]
    families = [family(point) for point in main]
    fitted = fit(main, families)
    errors = ranges(main, left_out(main, families, [point.model for point in main]))
    files = {name: _efficiency(name, main, fitted, errors) for name in sorted(set(families))}
    together = fit(main, [ALL] * len(main), shared=())
    return {**files, ALL: _efficiency(ALL, main, together, _wide(found, errors))}


def _wide(found: Sequence[Point], known: Mapping[str, Error]) -> dict[str, Error]:
    """The range of what nobody measured: how far chips, and engines, lie apart, each of these alike, whatever its rows.

    It is never narrower than that of what was measured.
    """
    apart = [point for point in found if source(point) in (MAIN, "dstack")]
    told = [*zip(apart, _of_other_chips(apart), strict=True), *zip(found, _of_other_sources(found), strict=True)]
    ratios: dict[tuple[str, str, bool], list[float]] = {}
    for at, (point, expected_s) in enumerate(told):
        if np.isfinite(expected_s):
            key = (source(point), family(point), at < len(apart))
            ratios.setdefault(key, []).append(point.measurement.seconds / expected_s)
    weights = [1 / len(rows) for rows in ratios.values() for _ in rows]
    values = np.array([ratio for rows in ratios.values() for ratio in rows])
    error = error_of(values, len({point.model for point in found}), np.array(weights))
    n_rows = len({id(point) for point, expected_s in told if np.isfinite(expected_s)})
    return {
        key: replace(error, range_rows=n_rows, low=min(error.low, own.low), high=max(error.high, own.high))
        for key, own in known.items()
    }


def _efficiency(name: str, main: Sequence[Point], fitted: Fit, errors: Mapping[str, Error]) -> Efficiency:
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
    )


def _counted(error: Error, key: str, own: Sequence[Point]) -> Error:
    """The error of a group of rows, with how many of them are a family's own."""
    rows = [point for point in own if key in groups_of(point)]
    return replace(error, n_rows=len(rows), n_models=len({point.model for point in rows}))


def tables(found: Sequence[Point], left: Counter[str], fitted: Mapping[str, Efficiency]) -> dict[str, str]:
    """The parts of docs/calibration.md that are made of the fit, by the name of their place."""
    main = [point for point in found if source(point) == MAIN]
    apart = [point for point in found if source(point) in (MAIN, "dstack")]
    held_out = told(main, [family(point) for point in main], [point.model for point in main])
    return {
        "figures": figures(fitted.values()),
        "leave-one-model-out": by_model(held_out),
        "leave-one-source-out": by_source(found, _of_other_sources(found), [ENGINES[source(point)] for point in found]),
        "leave-one-family-out": transfer(apart, _of_other_chips(apart), [family(point) for point in apart]),
        "left-out": left_out_rows(left),
    }


def run(path: Path, *, write: bool) -> None:
    """Fit, and write the files and the tables, or print them."""
    found, left = points(path)
    fitted = fit_all(found)
    for name, efficiency in fitted.items():
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


def _of_other_sources(found: Sequence[Point]) -> Floats:
    """What a fit of all other sources says of each row; nan where these have few models on such chips. Shape (n,)."""
    sources, families = [source(point) for point in found], [family(point) for point in found]
    expected_s = left_out(found, families, sources)
    for i, (own, name) in enumerate(zip(sources, families, strict=True)):
        others = {p.model for p, s, f in zip(found, sources, families, strict=True) if s != own and f == name}
        if len(others) < FEW:
            expected_s[i] = np.nan
    return expected_s


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
