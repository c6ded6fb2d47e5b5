"""`calibrate`: one's own measurements become an efficiency file, with how well it holds and what more to measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slicewise.calibrate.own import ABSURD, HEADING, Fitted, fitted, usable
from slicewise.calibrate.read import Given, read_measurements
from slicewise.calibrate.terms import Point, UnusableError, point_of
from slicewise.calibrate.write import efficiency_toml
from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.spec.efficiency import Efficiency, Scale

_TOO_FAST = "faster than the bound: unit, batch, lengths or dtypes are not what ran"
_TOO_SLOW = f"more than {ABSURD:g} times what is expected: the unit is off, or something else ran"
_SHOWN = 3
"""Places that a reason names."""


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
    def efficiencies(self) -> tuple[Efficiency | Scale, ...]:
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
    fits = tuple(fitted(chip, own) for chip, own in _by_chip(found).items())
    text = efficiency_toml([each.efficiency for each in fits], HEADING)
    if out is not None:
        _write(Path(out), text)
    return Calibration(fits=fits, left_out=left_out, text=text, out=None if out is None else str(out))


def _points(paths: Sequence[Path], given: Given) -> tuple[list[Point], dict[str, int]]:
    twice = next((path for path, count in Counter(paths).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{twice}: is given twice; give it once")
    found: list[Point] = []
    left_out: Counter[str] = Counter()
    off: dict[str, list[str]] = {}
    for path in paths:
        if path.suffix == ".toml":
            raise InputError(f"{path}: an efficiency file is no measurement; take it with --efficiency {path}")
        reading = read_measurements(path, given)
        left_out.update(reading.left_out)
        for measurement in reading.measurements:
            try:
                point = point_of(measurement)
            except UnusableError as error:
                left_out[str(error)] += 1
                continue
            except InputError as error:
                raise InputError(f"{measurement.where}: {error}") from None
            if measurement.seconds < point.bound_s:
                off.setdefault(_TOO_FAST, []).append(measurement.where)
            else:
                found.append(point)
    kept: list[Point] = []
    for own in _by_chip(found).values():
        rows, absurd = usable(own)
        kept += rows
        for point in absurd:
            off.setdefault(_TOO_SLOW, []).append(point.measurement.where)
    for reason, places in off.items():
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        left_out[f"{reason} ({', '.join(places[:_SHOWN])}{more})"] += len(places)
    return kept, dict(left_out)


def _by_chip(found: Sequence[Point]) -> dict[str, list[Point]]:
    chips_there = dict.fromkeys(point.chip for point in found)
    return {chip: [point for point in found if point.chip == chip] for chip in chips_there}


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "cannot be written"
        raise InputError(f"--out {out}: {reason}; give another place") from None
