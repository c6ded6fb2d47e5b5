"""Three figures of one number: the bound, what is expected, and the range that holds 8 of 10 measurements.

Every rate and price follows from the times by the same formulas, so that each is evaluated once for each of the times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from slicewise.planner.deployment import Deployment

FLOORS = ("step_overlapped_s", "prefill_bound_s")
"""Bounds that an expected time is held to: no parts of it."""
_ENDS = ("bound", "expected", "low", "high")


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


def figures(deployment: Deployment, names: Sequence[str], batch: float = 1) -> dict[str, Figures]:
    """Three figures of each quantity; none under the book's conventions.

    Args:
        deployment: what the numbers are of.
        names: times, rates or prices that follow from the times of a step and of prefill.
        batch: sequences in a step.
    """
    if not shows_expected(deployment):
        return {}
    ends = times_of(deployment, batch)
    values = [deployment.evaluate(names, batch=batch, **times) for times in ends.values()]
    found = {}
    for name in names:
        bound, expected, *rest = (float(value[name]) for value in values)
        found[name] = Figures(bound=bound, expected=expected, low=min(rest), high=max(rest))
    return found


def names_of(deployment: Deployment) -> dict[str, tuple[str, str]]:
    """The quantities of a step and of a prefill at the bound, as expected, and at the ends of the range."""
    steps = (_bound(deployment), "step_expected_s", "step_low_s", "step_high_s")
    return {end: (step, f"prefill_{end}_s") for end, step in zip(_ENDS, steps, strict=True)}


def times_of(deployment: Deployment, batch: float) -> dict[str, dict[str, float]]:
    """Step and prefill at the bound, as expected, and at the ends of the range. [s]"""
    names = names_of(deployment)
    value = deployment.evaluate([name for pair in names.values() for name in pair], batch=batch)
    return {
        end: {"step_s": float(value[step]), "prefill_s": float(value[prefill])}
        for end, (step, prefill) in names.items()
    }


def expected_terms(deployment: Deployment, batch: float, of: str = "step_expected_s") -> dict[str, float]:
    """What an expected time is made of, by name. [s]"""
    names = deployment.graph.formulas[of].parameters
    terms = [name for name in names if name.endswith("_s") and name not in FLOORS]
    ratio = next((deployment.value(name) for name in names if name.endswith("_ratio")), 1.0)
    return {name: float(value * ratio) for name, value in deployment.evaluate(terms, batch=batch).items()}


def as_dict(found: Mapping[str, Figures]) -> dict[str, dict[str, float]]:
    """The JSON object of several."""
    return {name: each.to_dict() for name, each in found.items()}


def _bound(deployment: Deployment) -> str:
    """The step that no engine undercuts: what hides behind nothing is no bound."""
    return "step_roofline_s" if deployment.conventions.view == "roofline" else "step_overlapped_s"
