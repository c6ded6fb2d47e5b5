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

from slicewise.calibrate.advice import ENOUGH, advice
from slicewise.calibrate.fit import Fit, bounds_s, fit, measured_s
from slicewise.calibrate.held_out import Floats, groups_of, left_out, ranges
from slicewise.calibrate.terms import Point
from slicewise.calibrate.write import DIGITS, bits_of, efficiency_from, rounded, start_from
from slicewise.catalog.efficiency import PRIOR, efficiency_of, shipped, tpu_errors
from slicewise.catalog.load import chips
from slicewise.errors import InputError
from slicewise.spec.efficiency import GROUPS, OWN, Efficiency, Error, Scale

HOLD = 0.5
"""Rows that a coefficient's tie to the shipped figures outweighs when it is e times off."""
FOLDS = 5
"""Parts that one model's rows are cut into, each told from the rest; rows of one configuration stay together."""
FEWEST = 4
"""Configurations from which leaving out in turn tells something."""
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
        shipped_median: that of the shipped figures on the same rows.
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


def fitted(chip: str, own: Sequence[Point], source: str) -> Fitted:
    """The fit of one chip's measurements.

    Args:
        chip: its name.
        own: its measurements.
        source: the file that they are from.

    Raises:
        InputError: a time is absurd.
    """
    is_compiled = all(point.compiled_s for point in own)
    shipped_s = _compiled(own) if is_compiled else _terms_shipped(chip, own)
    _refuse_absurd(own, shipped_s)
    left = _left(own)
    fitter = partial(_ratios, own) if is_compiled else partial(_terms, own, chip)
    is_told = len(set(left)) >= FEWEST or _n_models(own) > 1
    expected_s, told_s = fitter(None), fitter(left) if is_told else np.full(len(own), np.nan)
    known = ranges(own, told_s)
    shipped_errors = _shipped_of_a_scale(chip, own) if is_compiled else efficiency_of(chips()[chip]).errors
    errors = _errors(own, known, shipped_errors)
    words: dict[str, Any] = {
        "name": f"{chip}-own",
        "engine": ", ".join(sorted({p.measurement.engine for p in own if p.measurement.engine})) or "an unnamed engine",
        "chips": (chip,),
        "models": tuple(sorted({point.model for point in own})),
        "most_chips": max(point.n_chips for point in own),
        "measured": OWN,
        "sources": (source,),
    }
    truth = measured_s(own)
    seen = np.isfinite(told_s)
    worst = np.argsort(-np.abs(np.log(truth / expected_s)))[:FARTHEST]
    return Fitted(
        efficiency=_scale(own, errors, words) if is_compiled else _efficiency(chip, own, errors, words),
        n_rows=len(own),
        held_out_median=_off(told_s[seen], truth[seen]) if seen.any() else None,
        left="models" if _n_models(own) > 1 else "rows",
        shipped_median=_off(shipped_s, truth),
        bound_median=_off(bounds_s(own), truth),
        farthest=tuple((own[i].measurement.where, float(truth[i]), float(expected_s[i])) for i in worst),
        advice=advice(own),
    )


def _off(seconds: Floats, truth: Floats) -> float:
    return float(np.median(np.abs(seconds / truth - 1)))


def _n_models(own: Sequence[Point]) -> int:
    return len({point.model for point in own})


def _left(own: Sequence[Point]) -> list[str]:
    """What is left out together: a model; of one model, a fifth of the configurations, each with all its rows."""
    if _n_models(own) > 1:
        return [point.model for point in own]
    configurations = {key: i for i, key in enumerate(dict.fromkeys(map(_configuration, own)))}
    return [str(configurations[_configuration(point)] % FOLDS) for point in own]


def _configuration(point: Point) -> tuple[Any, ...]:
    m = point.measurement
    return m.phase, m.slice, m.weights, m.kv, m.batch, m.prompt_tokens, m.output_tokens, m.context_tokens


def _refuse_absurd(own: Sequence[Point], shipped_s: Floats) -> None:
    for point, seconds in zip(own, shipped_s, strict=True):
        if point.measurement.seconds > ABSURD * seconds:
            raise InputError(
                f"{point.measurement.where}: {point.measurement.seconds:g} s is more than {ABSURD:g} times what is"
                f" expected ({seconds:.2g} s); check its unit, and what ran"
            )


# --- GPUs: coefficients of the terms ------------------------------------------------------------------------------


def _start(chip: str) -> Mapping[str, float]:
    return start_from(efficiency_of(chips()[chip]))


def _terms_shipped(chip: str, own: Sequence[Point]) -> Floats:
    return Fit(groups={chip: _start(chip)}).expected_s(own, [chip] * len(own))


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
    return efficiency_from(found, errors, bits=bits, family=chips()[chip].family or chip, **words)


# --- TPUs: ratios to what the compiler expects --------------------------------------------------------------------


def _compiled(own: Sequence[Point]) -> Floats:
    return np.array([point.compiled_s or np.nan for point in own])


def _ratio(own: Sequence[Point], phase: str) -> float:
    """Measured over expected in a phase, the median; end-to-end times tell those of both. 1 where nothing does."""
    rows = [p.measurement.seconds / (p.compiled_s or 1) for p in own if p.phase in (phase, "end_to_end")]
    return float(np.median(rows)) if rows else 1.0


def _ratios(own: Sequence[Point], left: Sequence[str] | None) -> Floats:
    """Expected seconds by the ratios of all rows, or of those that are not left out with each."""
    found = np.full(len(own), np.nan)
    for i, point in enumerate(own):
        seen = own if left is None else [p for p, name in zip(own, left, strict=True) if name != left[i]]
        like = [p for p in seen if p.phase == point.phase]
        if like:
            found[i] = max((point.compiled_s or np.nan) * _ratio(like, point.phase), point.bound_s)
    return found


def _scale(own: Sequence[Point], errors: Mapping[str, Error], words: dict[str, Any]) -> Scale:
    step_ratio, prefill_ratio = (float(f"{_ratio(own, phase):.{DIGITS}g}") for phase in ("decode", "prefill"))
    return Scale(
        errors={name: rounded(error) for name, error in errors.items()},
        step_ratio=step_ratio,
        prefill_ratio=prefill_ratio,
        **words,
    )


# --- ranges -------------------------------------------------------------------------------------------------------


def _shipped_of_a_scale(chip: str, own: Sequence[Point]) -> dict[str, Error]:
    """The shipped ranges of a TPU around scaled times: they hold what they held before, and as much around these."""
    found = {}
    for name in GROUPS:
        phase = name.partition(" ")[0]
        error = tpu_errors(chip).error if phase == "decode" else shipped(PRIOR)[0].errors[name]
        ratio = _ratio(own, phase)
        found[name] = replace(error, low=error.low / max(ratio, 1.0), high=error.high / min(ratio, 1.0))
    return found


def _errors(own: Sequence[Point], known: Mapping[str, Error], else_: Mapping[str, Error]) -> dict[str, Error]:
    """The range of each group: its own where there are enough rows of several models, else at least the shipped one."""
    rows = {name: [point for point in own if name in groups_of(point)] for name in GROUPS}
    found = {}
    for name in GROUPS:
        told, other = known.get(name), else_[name]
        error = told or other
        if told and (len(rows[name]) < ENOUGH or _n_models(own) == 1):
            error = replace(told, low=min(told.low, other.low), high=max(told.high, other.high))
        found[name] = replace(error, n_rows=len(rows[name]), n_models=len({point.model for point in rows[name]}))
    return found
