"""One chip's own measurements: the figures fitted to them, how far they are off, and whether they are worth taking.

A GPU's figures are coefficients of the terms; those of a TPU whose compiler was asked are two ratios, of steps and of
prefill, to what the compiler expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from slicewise.calibrate.advice import advice
from slicewise.calibrate.fit import Fit, bounds_s, fit, measured_s, told_by_rows
from slicewise.calibrate.held_out import ENOUGH, Floats, groups_of, left_out, ranges
from slicewise.calibrate.terms import Point
from slicewise.calibrate.write import DIGITS, FIGURES, bits_of, efficiency_from, rounded, start_from
from slicewise.catalog.efficiency import PRIOR, efficiency_of, shipped, tpu_errors
from slicewise.catalog.load import chips
from slicewise.spec.efficiency import GROUPS, OWN, Efficiency, Error, Scale

HOLD = 0.5
"""Rows that a coefficient's tie to the shipped figures outweighs when it is e times off."""
FOLDS = 5
"""Parts that one model's rows are cut into, each told from the rest; rows of one configuration stay together."""
FEWEST_CONFIGURATIONS = 4
"""Configurations from which leaving out in turn tells something."""
HARDLY = 0.8
"""Share of a figure that the rows must tell for it to be theirs: with less it is held near the shipped one."""
ABSURD = 20.0
"""Times the shipped expectation from which a time is no measurement of what is stated, but a slip of the unit."""
FARTHEST = 3
HEADING = """Figures fitted to measurements of one's own, by slicewise calibrate.
Take them anywhere with --efficiency FILE."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """One chip's fit.

    Attributes:
        efficiency: the figures.
        n_rows: measurements of the chip.
        held_out_median: median absolute error on rows that the fit never saw; None where there were too few.
        left: what was left out in turn: models, or rows of one configuration.
        shipped_median: that of the shipped figures on the same rows, or on all where none were left out.
        bound_median: that of the bound.
        farthest: the rows that lie farthest off: where, measured seconds, and expected ones.
        advice: what to measure next, in sentences.
    """

    efficiency: Efficiency | Scale
    n_rows: int
    held_out_median: float | None
    left: str
    shipped_median: float
    bound_median: float
    farthest: tuple[tuple[str, float, float], ...]
    advice: tuple[str, ...]

    @property
    def is_better(self) -> bool | None:
        """Whether they tell rows that they never saw better than the shipped figures; None where that is not known."""
        return None if self.held_out_median is None else self.held_out_median < self.shipped_median

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        figures = self.efficiency
        names = ("engine", "models", "most_chips", "step_ratio", "prefill_ratio", *_NUMBERS)
        told = {name: getattr(figures, name) for name in names if hasattr(figures, name)}
        if isinstance(figures, Efficiency):
            told |= {f"prefill_efficiency_{bits}": share for bits, share in figures.prefill_efficiency.items()}
        return {
            "chip": ", ".join(figures.chips),
            "n_rows": self.n_rows,
            "held_out_median": self.held_out_median,
            "left_out_in_turn": self.left,
            "shipped_median": self.shipped_median,
            "bound_median": self.bound_median,
            "is_better": self.is_better,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in told.items()},
            "as_shipped": list(getattr(figures, "as_shipped", ())),
            "ranges": {name: [error.low, error.high] for name, error in figures.errors.items()},
            "farthest": [list(row) for row in self.farthest],
            "advice": list(self.advice),
        }


_NUMBERS = (
    "weight_read_efficiency",
    "kv_read_efficiency",
    "matmul_efficiency",
    "network_efficiency",
    "layer_s",
    "sync_s",
    "token_passes",
    "prefill_token_passes",
)


def usable(own: Sequence[Point]) -> tuple[list[Point], list[Point]]:
    """One chip's measurements, and those of them that are absurd: a slip of the unit, or something else that ran."""
    shipped_s = _shipped_s(own)
    absurd = [p for p, s in zip(own, shipped_s, strict=True) if p.measurement.seconds > ABSURD * s]
    return [point for point in own if point not in absurd], absurd


def fitted(chip: str, own: Sequence[Point]) -> Fitted:
    """The fit of one chip's measurements.

    Args:
        chip: its name.
        own: its measurements.
    """
    is_compiled = all(point.compiled_s for point in own)
    left = _left(own)
    fitter = partial(_scaled, own) if is_compiled else partial(_terms, own, chip)
    is_told = len(set(left)) >= FEWEST_CONFIGURATIONS or _n_models(own) > 1
    expected_s, told_s = fitter(None), fitter(left) if is_told else np.full(len(own), np.nan)
    shipped_errors = _shipped_of_a_scale(chip, own) if is_compiled else efficiency_of(chips()[chip]).errors
    errors = _errors(own, ranges(own, told_s), shipped_errors, ranges(own, expected_s, fewest=1))
    words: dict[str, Any] = {
        "name": f"{chip}-own",
        "engine": ", ".join(sorted({p.measurement.engine for p in own if p.measurement.engine})) or "an unnamed engine",
        "chips": (chip,),
        "models": tuple(sorted({point.model for point in own})),
        "most_chips": max(point.n_chips for point in own),
        "n_rows": len(own),
        "measured": OWN,
        "sources": tuple(dict.fromkeys(point.measurement.file for point in own)),
    }
    truth, is_seen = measured_s(own), np.isfinite(told_s)
    compared = is_seen if is_seen.any() else np.ones(len(own), dtype=bool)
    worst = np.argsort(-np.abs(np.log(truth / expected_s)))[:FARTHEST]
    return Fitted(
        efficiency=_scale(own, errors, words) if is_compiled else _efficiency(chip, own, errors, words),
        n_rows=len(own),
        held_out_median=_off(told_s[is_seen], truth[is_seen]) if is_seen.any() else None,
        left="models" if _n_models(own) > 1 else "rows",
        shipped_median=_off(_shipped_s(own)[compared], truth[compared]),
        bound_median=_off(bounds_s(own)[compared], truth[compared]),
        farthest=tuple((str(own[i].measurement), float(truth[i]), float(expected_s[i])) for i in worst),
        advice=advice(own),
    )


def _shipped_s(own: Sequence[Point]) -> Floats:
    """What the shipped figures say of one chip's measurements."""
    if all(point.compiled_s for point in own):
        return np.array([sum(point.compiled_s or ()) for point in own])
    return Fit(groups={own[0].chip: _start(own[0].chip)}).expected_s(own, [own[0].chip] * len(own))


def _off(seconds: Floats, truth: Floats) -> float:
    return float(np.median(np.abs(seconds / truth - 1)))


def _n_models(own: Sequence[Point]) -> int:
    return len({point.model for point in own})


def _left(own: Sequence[Point]) -> list[str]:
    """What is left out together: a model; of one model, a fifth of the configurations, each with all its rows."""
    if _n_models(own) > 1:
        return [point.model for point in own]
    configurations = {key: i for i, key in enumerate(dict.fromkeys(point.measurement.configuration for point in own))}
    return [str(configurations[point.measurement.configuration] % FOLDS) for point in own]


# --- GPUs: coefficients of the terms ------------------------------------------------------------------------------


def _start(chip: str) -> Mapping[str, float]:
    return start_from(efficiency_of(chips()[chip]))


def _fitter(chip: str) -> partial[Fit]:
    return partial(fit, start=_start(chip), shared=(), hold=HOLD)


def _terms(own: Sequence[Point], chip: str, left: Sequence[str] | None) -> Floats:
    """Expected seconds by a fit of all rows, or of those that are not left out with each."""
    groups = [chip] * len(own)
    return (
        _fitter(chip)(own, groups).expected_s(own, groups)
        if left is None
        else left_out(own, groups, left, _fitter(chip))
    )


def _efficiency(chip: str, own: Sequence[Point], errors: Mapping[str, Error], words: dict[str, Any]) -> Efficiency:
    found = _fitter(chip)(own, [chip] * len(own)).groups[chip]
    bits = tuple(sorted({*bits_of(own), *efficiency_of(chips()[chip]).prefill_efficiency}))
    hardly = [FIGURES[term] for term, share in told_by_rows(own, found, HOLD).items() if share < HARDLY]
    known = [name for name in hardly if name not in {f"prefill_efficiency_{width}" for width in {8, 16} - {*bits}}]
    family = chips()[chip].family or chip
    return efficiency_from(found, errors, bits=bits, family=family, as_shipped=tuple(known), **words)


# --- TPUs: ratios to what the compiler expects --------------------------------------------------------------------


def _ratios(own: Sequence[Point]) -> tuple[float, float]:
    """Measured over expected steps and prefills, the medians; 1 where nothing tells one.

    Rows of one phase tell its own. End-to-end rows tell what these leave open: the rest of them after the other phase,
    or of both alike.
    """
    alone = [_median_ratio(own, phase) for phase in ("decode", "prefill")]
    whole = [(p.measurement.seconds, p.compiled_s or (0.0, 0.0)) for p in own if p.phase == "end_to_end"]
    steps, prefills = alone
    if whole and steps is None and prefills is None:
        steps = prefills = float(np.median([seconds / sum(expected) for seconds, expected in whole]))
    elif whole and steps is None:
        steps = _rest([(s - (prefills or 1.0) * pair[1], pair[0]) for s, pair in whole])
    elif whole and prefills is None:
        prefills = _rest([(s - (steps or 1.0) * pair[0], pair[1]) for s, pair in whole])
    return steps or 1.0, prefills or 1.0


def _median_ratio(own: Sequence[Point], phase: str) -> float | None:
    found = [p.measurement.seconds / sum(p.compiled_s or (np.nan,)) for p in own if p.phase == phase]
    return float(np.median(found)) if found else None


def _rest(rows: Sequence[tuple[float, float]]) -> float | None:
    """The median ratio of what is left of measured times; None where nothing is."""
    found = [seconds / expected for seconds, expected in rows if expected > 0 and seconds > 0]
    return float(np.median(found)) if found else None


def _scaled(own: Sequence[Point], left: Sequence[str] | None) -> Floats:
    """Expected seconds by the ratios of all rows, or of those that are not left out with each."""
    names = [""] * len(own) if left is None else list(left)
    found = np.full(len(own), np.nan)
    for name in dict.fromkeys(names):
        seen = [p for p, other in zip(own, names, strict=True) if left is None or other != name]
        phases = {phase for point in seen for phase in _phases(point)}
        ratios = _ratios(seen)
        for i, point in enumerate(own):
            if names[i] == name and phases.issuperset(_phases(point)):
                scaled = sum(r * s for r, s in zip(ratios, point.compiled_s or (), strict=True))
                found[i] = max(scaled, point.bound_s)
    return found


def _phases(point: Point) -> tuple[str, ...]:
    return ("decode", "prefill") if point.phase == "end_to_end" else (point.phase,)


def _scale(own: Sequence[Point], errors: Mapping[str, Error], words: dict[str, Any]) -> Scale:
    step_ratio, prefill_ratio = (float(f"{ratio:.{DIGITS}g}") for ratio in _ratios(own))
    return Scale(
        errors={name: rounded(error) for name, error in errors.items()},
        step_ratio=step_ratio,
        prefill_ratio=prefill_ratio,
        **words,
    )


# --- ranges -------------------------------------------------------------------------------------------------------


def _shipped_of_a_scale(chip: str, own: Sequence[Point]) -> dict[str, Error]:
    """The shipped ranges of a TPU around scaled times: as wide on either side, and at least to where the ends were."""
    found, ratios = {}, dict(zip(("decode", "prefill"), _ratios(own), strict=True))
    for name in GROUPS:
        phase = name.partition(" ")[0]
        error = tpu_errors(chip).error if phase == "decode" else shipped(PRIOR)[0].errors[name]
        ratio = ratios[phase]
        found[name] = replace(error, low=error.low / max(ratio, 1.0), high=error.high / min(ratio, 1.0))
    return found


def _errors(
    own: Sequence[Point], known: Mapping[str, Error], else_: Mapping[str, Error], seen: Mapping[str, Error]
) -> dict[str, Error]:
    """The range of each group: its own where there are enough rows of several models.

    Else it is at least the shipped one, and holds 8 of 10 of the group's own rows; where there are none, it is that of
    a chip that nobody measured, for the figures have moved and nothing says how far they hold.
    """
    rows = {name: [point for point in own if name in groups_of(point)] for name in GROUPS}
    found = {}
    for name in GROUPS:
        told, models = known.get(name), {point.model for point in rows[name]}
        error = told or seen.get(name) or shipped(PRIOR)[0].errors[name]
        if not told or len(rows[name]) < ENOUGH or len(models) == 1:
            others = (else_[name], error, *((seen[name],) if name in seen else ()))
            error = replace(error, low=min(e.low for e in others), high=max(e.high for e in others))
        found[name] = replace(error, n_rows=len(rows[name]), n_models=len(models))
    return found
