"""Three figures of one number: the bound, what is expected, and the range that holds 8 of 10 measurements.

Every rate and price follows from the times by the same formulas, so that each is evaluated once for each of the times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.derive import Derivation, Origins, Values
from slicewise.errors import InputError, UnknownNameError
from slicewise.planner.deployment import Deployment
from slicewise.planner.pacing import resting_on
from slicewise.units import show

FLOORS = ("step_overlapped_s", "prefill_bound_s")
"""Bounds that an expected time is held to: no parts of it."""
UP_TO_BOUND = "up_to_bound"
"""What an expected step is lifted by where its terms add up to less than the bound."""
TERM = "term:"
"""How a term of the expected step is called by `--explain`, as it counts there."""
_RANGE = ("low", "high")
ENDS = ("bound", "expected", *_RANGE)
"""The figures by name."""

FigureColumns = Mapping[str, Mapping[str, Sequence[float]]]
"""Of each quantity, of each figure of it, a value a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A time, rate or price, three times.

    Attributes:
        bound: what no engine betters.
        expected: what the engine that was measured is expected to reach.
        low: lower end of the range.
        high: upper end.
    """

    bound: float
    expected: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """The JSON object."""
        return asdict(self)


def shows_expected(deployment: Deployment) -> bool:
    """Whether expected times are told: the book's conventions have bounds only."""
    return not deployment.conventions.book


def figures(deployment: Deployment, names: Sequence[str], batch: float = 1, **given: Any) -> dict[str, Figures]:
    """Three figures of each quantity; none under the book's conventions.

    Args:
        deployment: what the numbers are of.
        names: times, rates or prices that follow from the times of a step and of prefill.
        batch: sequences in a step.
        given: further inputs that win over formulas.
    """
    if not shows_expected(deployment):
        return {}
    ends = times_of(deployment, batch)
    values = [deployment.evaluate(names, batch=batch, **given, **times) for times in ends.values()]
    found = {}
    for name in names:
        bound, expected, *rest = (float(value[name]) for value in values)
        found[name] = Figures(bound=bound, expected=expected, low=min(rest), high=max(rest))
    return found


def figure_columns(
    deployment: Deployment, names: Sequence[str], batch: NDArray[np.float64]
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Three figures of each quantity, a row a batch; none under the book's conventions.

    Args:
        deployment: what the numbers are of.
        names: as of `figures`.
        batch: sequences in a step. Shape (n,).
    """
    if not shows_expected(deployment):
        return {}
    ends = {end: _timed(deployment, names_of(deployment)[end], batch) for end in ENDS}
    values = {end: deployment.evaluate(names, batch=batch, **times) for end, times in ends.items()}
    found = {}
    for name in names:
        bound, expected, *rest = (np.asarray(values[end][name]) + 0.0 * batch for end in ENDS)
        found[name] = {"bound": bound, "expected": expected, "low": np.minimum(*rest), "high": np.maximum(*rest)}
    return found


def names_of(deployment: Deployment) -> dict[str, tuple[str, str]]:
    """The quantities of a step and of a prefill at the bound, as expected, and at the ends of the range."""
    steps = (_bound(deployment), "step_expected_s", "step_low_s", "step_high_s")
    return {end: (step, f"prefill_{end}_s") for end, step in zip(ENDS, steps, strict=True)}


def times_of(deployment: Deployment, batch: float) -> dict[str, dict[str, float]]:
    """Step and prefill at the bound, as expected, and at the ends of the range. [s]"""
    names = names_of(deployment)
    value = deployment.evaluate([name for pair in names.values() for name in pair], batch=batch)
    return {
        end: {"step_s": float(value[step]), "prefill_s": float(value[prefill])}
        for end, (step, prefill) in names.items()
    }


def end_of(name: str) -> tuple[str, str | None]:
    """A quantity and the figure of it that is meant: `tokens_per_s:low` is the lower end of its range.

    >>> end_of("tokens_per_s:low"), end_of("tokens_per_s")
    (('tokens_per_s', 'low'), ('tokens_per_s', None))
    """
    quantity, _, end = name.rpartition(":")
    return (quantity, end) if quantity and end in ENDS else (name, None)


def explain_end(
    deployment: Deployment, quantity: str, end: str, batch: float = 1, origins: Origins | None = None, **given: Any
) -> Derivation:
    """The derivation of one of the three figures of a quantity.

    Args:
        deployment: what it is a quantity of.
        quantity: its name.
        end: which of the figures.
        batch: sequences in a step.
        origins: where further inputs come from.
        given: these inputs, which win over formulas.

    Raises:
        InputError: the book's conventions, which have bounds only.
        UnknownNameError: no such quantity.
    """
    if not shows_expected(deployment):
        raise InputError("the book's conventions have bounds only; without --book every time is also expected")
    own = dict(zip(("step_s", "prefill_s"), names_of(deployment)[end], strict=True))
    if quantity in own:
        return replace(deployment.explain(own[quantity], batch=batch), name=f"{quantity}:{end}")
    taken = end if end in ("bound", "expected") else _taken(deployment, quantity, end, batch, **given)
    step, prefill = names_of(deployment)[taken]
    times = {"step_s": deployment.explain(step, batch=batch), "prefill_s": deployment.explain(prefill, batch=batch)}
    return replace(explain_with(deployment, quantity, batch, times, origins, **given), name=f"{quantity}:{end}")


def _taken(deployment: Deployment, quantity: str, end: str, batch: float, **given: Any) -> str:
    """The end of the times that gives an end of what follows from them: the longest step gives the fewest tokens."""
    times = times_of(deployment, batch)
    found = {at: float(deployment.value(quantity, batch=batch, **given, **times[at])) for at in _RANGE}
    return (min if end == "low" else max)(found, key=lambda at: found[at])


def explain_with(
    deployment: Deployment,
    quantity: str,
    batch: float,
    times: Mapping[str, Derivation],
    origins: Origins | None = None,
    **given: Any,
) -> Derivation:
    """The derivation of a quantity where times are given that are derived elsewhere: they take the place of its own.

    Args:
        deployment: what it is a quantity of.
        quantity: its name.
        batch: sequences in a step.
        times: derivations by the name of the time that they stand for.
        origins: where further inputs come from.
        given: these inputs, which win over formulas.
    """
    words = {**(origins or {}), **{name: (f"as {time.name} gives it", "") for name, time in times.items()}}
    values = {**given, **{name: time.value for name, time in times.items()}}
    return resting_on(deployment.explain(quantity, words, batch=batch, **values), times)


def expected_terms(deployment: Deployment, batch: float, of: str = "step_expected_s") -> dict[str, float]:
    """What an expected time is made of, by name. [s]"""
    terms, ratio = terms_of(deployment, of)
    scale = 1.0 if ratio is None else float(deployment.value(ratio))
    return {name: float(value * scale) for name, value in deployment.evaluate(terms, batch=batch).items()}


def terms_of(deployment: Deployment, of: str) -> tuple[list[str], str | None]:
    """The terms of an expected time, and what was measured of its like, by which all of them are multiplied."""
    names = deployment.graph.formulas[of].parameters
    terms = [name for name in names if name.endswith("_s") and name not in FLOORS]
    return terms, next((name for name in names if name.endswith("_ratio")), None)


def explain_term(deployment: Deployment, term: str, batch: float) -> Derivation:
    """The derivation of a term of the expected step as it counts there.

    Raises:
        UnknownNameError: the step has no such term.
    """
    if term == UP_TO_BOUND:
        return explain_up_to_bound(deployment, batch)
    terms, ratio = terms_of(deployment, "step_expected_s")
    if term not in terms:
        raise UnknownNameError("term", term, [*terms, UP_TO_BOUND])
    whole = deployment.explain(term, batch=batch)
    if ratio is None:
        return whole
    scale = deployment.explain(ratio)
    return Derivation(
        name=f"{TERM}{term}",
        value=whole.value * scale.value,
        unit="s",
        meaning=f"{whole.meaning}, times what was measured of its like",
        formula=f"{term} × {ratio}",
        numbers=f"{show(whole.value, 's')} × {show(scale.value)}",
        parts=(whole, scale),
    )


def explain_up_to_bound(deployment: Deployment, batch: float) -> Derivation:
    """The derivation of what lifts an expected step up to its bound, where its terms add up to less. [s]"""
    terms = expected_terms(deployment, batch)
    whole = deployment.explain("step_expected_s", batch=batch)
    return Derivation(
        name=f"{TERM}{UP_TO_BOUND}",
        value=max(whole.value - sum(terms.values()), 0.0),
        unit="s",
        meaning="What lifts the terms of an expected step up to the bound, which no step betters",
        formula=f"step_expected_s - ({' + '.join(terms)})",
        numbers=f"{show(whole.value, 's')} - {show(sum(terms.values()), 's')}",
        parts=(whole,),
    )


def _timed(deployment: Deployment, pair: tuple[str, str], batch: NDArray[np.float64]) -> Values:
    """A step and a prefill of these names, as the times that all else follows from. [s]"""
    value = deployment.evaluate(pair, batch=batch)
    return {"step_s": value[pair[0]], "prefill_s": value[pair[1]]}


def as_dict(found: Mapping[str, Figures]) -> dict[str, dict[str, float]]:
    """The JSON object of several."""
    return {name: each.to_dict() for name, each in found.items()}


def _bound(deployment: Deployment) -> str:
    """The step that no engine undercuts: what hides behind nothing is no bound."""
    return "step_roofline_s" if deployment.conventions.view == "roofline" else "step_overlapped_s"
