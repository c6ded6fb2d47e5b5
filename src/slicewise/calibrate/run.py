"""`calibrate`: one's own measurements become an efficiency file, with how well it holds and what more to measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from slicewise.calibrate.advice import ENOUGH, advice
from slicewise.calibrate.fit import Fit, bounds_s, fit, measured_s
from slicewise.calibrate.held_out import error_of, left_out, ranges
from slicewise.calibrate.read import Given, read_measurements
from slicewise.calibrate.terms import Point, point_of
from slicewise.calibrate.write import bits_of, efficiency_from, efficiency_toml, start_from
from slicewise.catalog.efficiency import efficiency_of
from slicewise.catalog.load import chips
from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner.record import record
from slicewise.spec.efficiency import Efficiency, Error

HOLD = 0.5
"""Rows that a coefficient's tie to the shipped figures outweighs when it is e times off: a few rows move it little."""
FOLDS = 5
"""Parts that one model's rows are cut into, each told from the rest."""
FEWEST = 3
"""Measurements of a chip from which a fit is more than a guess."""
HEADING = """Efficiencies fitted to measurements of one's own, by slicewise calibrate.
Take them anywhere with --efficiency FILE."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """One chip's fit.

    Attributes:
        efficiency: the figures.
        n_rows: measurements of the chip.
        held_out: error on rows that the fit never saw: of a model, or of a fifth of the rows where there is one model.
        left: what was left out in turn: models or rows.
        shipped_median: median absolute error of the shipped figures on the same rows.
        bound_median: that of the bound.
        advice: what to measure next, in sentences.
    """

    efficiency: Efficiency
    n_rows: int
    held_out: Error
    left: str
    shipped_median: float
    bound_median: float
    advice: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        fit = record(self.efficiency, without=("prefill_efficiency", "errors"))
        return {
            "chip": ", ".join(self.efficiency.chips),
            "n_rows": self.n_rows,
            "held_out_median": self.held_out.median,
            "range_low": self.held_out.low,
            "range_high": self.held_out.high,
            "left_out_in_turn": self.left,
            "shipped_median": self.shipped_median,
            "bound_median": self.bound_median,
            "efficiency": {
                **fit,
                "prefill_efficiency": {str(bits): share for bits, share in self.efficiency.prefill_efficiency.items()},
            },
            "advice": list(self.advice),
        }


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The answer of `calibrate`.

    Attributes:
        fits: one for each chip that was measured.
        left_out: measurements that were not used, by reason.
        text: the efficiency file.
        out: where it was written; None where it was not.
    """

    fits: tuple[Fitted, ...]
    left_out: Mapping[str, int]
    text: str
    out: str | None

    @property
    def fits_something(self) -> bool:
        """Whether anything was usable."""
        return bool(self.fits)

    @property
    def efficiencies(self) -> tuple[Efficiency, ...]:
        """The figures of every chip."""
        return tuple(each.efficiency for each in self.fits)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {"fits": [each.to_dict() for each in self.fits], "left_out": dict(self.left_out), "out": self.out}

    def explain(self, name: str = "") -> Derivation:
        """There is none: a fit is no formula.

        Raises:
            InputError: always; it says where derivations are.
        """
        raise InputError(
            f"a fit has no derivation{f' of {name}' if name else ''}; slicewise step --efficiency FILE --explain"
            " step_expected_s shows what it makes of a step"
        )


def calibrate(
    path: str | Path, *more: str | Path, given: Given | None = None, out: str | Path | None = None, force: bool = False
) -> Calibration:
    """Fit the efficiencies of every chip in one's measurements, and write them to a file.

    Args:
        path: a CSV, or the JSON of a benchmark.
        more: further files.
        given: words that hold for every measurement, where the files are silent.
        out: the efficiency file to write; None to write none.
        force: write over a file that is there.

    Raises:
        InputError: a file is not understood, nothing in it can be used, or `out` is there already.
    """
    if out is not None and Path(out).exists() and not force:
        raise InputError(f"--out {out}: is there already; give another name, or --force to write over it")
    found, left_out = _points([Path(each) for each in (path, *more)], given or Given())
    if not found:
        reasons = "; ".join(f"{count} × {reason}" for reason, count in left_out.items()) or "it is empty"
        raise InputError(f"{path}: no measurement in it can be used ({reasons}); see docs/calibration.md for the forms")
    fits = tuple(_fitted(chip, own, str(path)) for chip, own in _by_chip(found).items())
    text = efficiency_toml([each.efficiency for each in fits], HEADING)
    if out is not None:
        _write(Path(out), text)
    return Calibration(fits=fits, left_out=left_out, text=text, out=None if out is None else str(out))


def _points(paths: Sequence[Path], given: Given) -> tuple[list[Point], dict[str, int]]:
    found: list[Point] = []
    left_out: Counter[str] = Counter()
    for path in paths:
        reading = read_measurements(path, given)
        left_out.update(reading.left_out)
        for measurement in reading.measurements:
            point = point_of(measurement)
            if measurement.seconds < point.bound_s:
                left_out["faster than the bound, so its batch, lengths or dtypes are not what ran"] += 1
            else:
                found.append(point)
    return found, dict(left_out)


def _by_chip(found: Sequence[Point]) -> dict[str, list[Point]]:
    chips_there = dict.fromkeys(point.chip for point in found)
    return {chip: [point for point in found if point.chip == chip] for chip in chips_there}


def _fitted(chip: str, own: Sequence[Point], source: str) -> Fitted:
    shipped = efficiency_of(chips()[chip])
    start = start_from(shipped)
    fitter = partial(fit, start=start, shared=(), hold=HOLD)
    groups, models = [chip] * len(own), [point.model for point in own]
    by_model = len(set(models)) > 1
    left = models if by_model else [str(i % FOLDS) for i in range(len(own))]
    told_s = left_out(own, groups, left, fitter) if len(own) >= FEWEST else np.full(len(own), np.nan)
    truth = measured_s(own)
    ratio = (truth / told_s)[np.isfinite(told_s)]
    like = shipped.error("prefill" if own[0].phase == "prefill" else "decode", own[0].n_chips)
    held_out = _wide(error_of(ratio), like) if ratio.size else like
    known = ranges(own, told_s) if ratio.size else {}
    fitted = fitter(own, groups)
    efficiency = efficiency_from(
        fitted.groups[chip],
        _errors(own, known, held_out, shipped),
        bits=tuple({*bits_of(own), *shipped.prefill_efficiency}),
        name=f"{chip}-own",
        family=chips()[chip].family or chip,
        engine=", ".join(sorted({p.measurement.engine for p in own if p.measurement.engine})) or "an engine not named",
        chips=(chip,),
        models=tuple(sorted(set(models))),
        most_chips=max(point.n_chips for point in own),
        measured="by the user",
        sources=(Path(source).name,),
    )

    def off(seconds: Any) -> float:
        return float(np.median(np.abs(seconds / truth - 1)))

    return Fitted(
        efficiency=efficiency,
        n_rows=len(own),
        held_out=held_out,
        left="models" if by_model else "rows",
        shipped_median=off(Fit(groups={chip: start}).expected_s(own, groups)),
        bound_median=off(bounds_s(own)),
        advice=advice(own),
    )


def _wide(own: Error, shipped: Error) -> Error:
    """The own range of enough rows; of few, the wider of that and the shipped one."""
    if own.n_rows >= ENOUGH:
        return own
    return replace(own, low=min(own.low, shipped.low), high=max(own.high, shipped.high))


def _errors(own: Sequence[Point], known: Mapping[str, Error], held_out: Error, shipped: Efficiency) -> dict[str, Error]:
    """The range of each phase and group of chips: its own, else that of all rows, else the shipped one."""
    counts = Counter(f"{phase} {'1' if p.n_chips == 1 else '2+'}" for p in own for phase in _phases(p))
    found = {}
    for name in (f"{phase} {group}" for phase in ("decode", "prefill") for group in ("1", "2+")):
        whole = known.get(f"end_to_end {name.split()[1]}")
        fallback = held_out if counts[name] else shipped.errors.get(name, held_out)
        found[name] = replace(known.get(name) or whole or fallback, n_rows=counts[name])
    return found


def _phases(point: Point) -> tuple[str, ...]:
    return ("decode", "prefill") if point.phase == "end_to_end" else (point.phase,)


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror or 'cannot be written'}; give another place") from None
