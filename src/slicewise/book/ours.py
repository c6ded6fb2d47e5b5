"""Puts a question to the planner and reads the number out of its result, with the function that computed it.

A number is a field of the result, or a formula of the result's deployment. The planner times nothing that does not fit;
a printed table that goes on beyond that is answered by the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slicewise.book.questions import Row
from slicewise.book.readings import READINGS
from slicewise.catalog.load import load_model
from slicewise.errors import CatalogError
from slicewise.planner.compare import compare
from slicewise.planner.deployment import Deployment
from slicewise.planner.disaggregate import disaggregate
from slicewise.planner.frontier import frontier
from slicewise.planner.knee import largest_batch
from slicewise.planner.limits import limits
from slicewise.planner.memory import memory
from slicewise.planner.plan import plan
from slicewise.planner.prefill import prefill
from slicewise.planner.step import step
from slicewise.spec.model import reshaped
from slicewise.units import parse

CALLS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (compare, disaggregate, frontier, limits, memory, plan, prefill, step)
}
"""The planner's functions by name."""

_HOLDERS = ("deployment", "decode", "ledger", "step")
"""Where a result keeps its deployment, or the part that has it."""

_MOST = {"batch": "max_batch", "context_tokens": "max_context_tokens"}
"""What memory allows of each quantity that may be searched."""


@dataclass(frozen=True, slots=True)
class Planner:
    """The planner's results, each asked for once. Made anew for each run, so that changed facts are seen."""

    results: dict[str, Any] = field(default_factory=dict)

    def ask(self, row: Row, words: Mapping[str, Any]) -> Any:
        """The result of a row's call under the given words."""
        key = f"{row.call} {sorted(words.items())} {sorted(row.shape.items())}"
        if key not in self.results:
            self.results[key] = CALLS[row.call](**_arguments(row, words))
        return self.results[key]


def _arguments(row: Row, words: Mapping[str, Any]) -> dict[str, Any]:
    if not row.shape:
        return dict(words)
    return {**words, "model": reshaped(load_model(words["model"]), **row.shape)}


def compute(row: Row, planner: Planner) -> tuple[float, str]:
    """Our number for a row, and the functions that computed it.

    Raises:
        CatalogError: the row asks for what the result does not hold.
    """
    call = CALLS[row.call]
    ours, text = _product(row, planner.ask(row, row.words))
    by = f"{call.__module__}.{call.__name__} -> {text}"
    if row.given:
        by += f", with {', '.join(f'{name} = {value}' for name, value in row.given.items())}"
    if row.against is not None:
        other, _ = _product(row, planner.ask(row, {**row.words, **row.against}))
        changes = ", ".join(f"{key}={value}" for key, value in row.against.items())
        return ours / other, f"{by}, over the same at {changes}"
    return ours, by


def _product(row: Row, result: Any) -> tuple[float, str]:
    """A row's value, times and over further quantities of the same result."""
    given = given_of(row, result)
    ours, text = read(result, row.value, given)
    for name in row.times:
        factor, words = read(result, name, given)
        ours, text = ours * factor, f"{text} × {words}"
    for name in row.over:
        divisor, words = read(result, name, given)
        ours, text = ours / divisor, f"{text} / {words}"
    return float(ours), text


def given_of(row: Row, result: Any) -> dict[str, Any]:
    """Quantities set outright, those taken from another quantity, and what is searched to meet a step time."""
    given = dict(row.given)
    for name, value in row.given.items():
        if isinstance(value, str):
            given[name] = known_deployment(result).value(value)
    if row.within is not None:
        given[row.largest] = _searched(row, result, given)
    return given


def _searched(row: Row, result: Any, given: dict[str, Any]) -> float:
    """The largest batch or context that fits and whose step meets the limit."""
    deployment, limit_s = known_deployment(result), parse(row.within or "", "s", "within")
    point = {"batch": result.batch, **given}
    most = int(deployment.value(_MOST[row.largest], **point))
    found = largest_batch(
        lambda tried: np.asarray(deployment.value("step_s", **{**point, row.largest: tried}) <= limit_s), most
    )
    return float(most if found is None else found)


def read(result: Any, path: str, given: Mapping[str, Any]) -> tuple[float, str]:
    """A number of a result and the name of it, with the function behind it in parentheses."""
    if path in READINGS:
        reading = READINGS[path]
        return reading(result), f"{path} ({reading.__module__}.{path})"
    owner, name = owner_of(result, path)
    deployment = deployment_of(owner)
    value = None if given else getattr(owner, name, None)
    if value is None and deployment is not None:
        batch = {"batch": owner.batch} if hasattr(owner, "batch") else {}
        value = deployment.value(name, **{**batch, **given})
    if value is None:
        message = f"questions.toml: {type(owner).__name__} has no {name}"
        raise CatalogError(message)
    by = _formula(result, deployment, name, given)
    return value, f"{path} ({by})" if by else path


def owner_of(result: Any, path: str) -> tuple[Any, str]:
    """The part of a result that holds a number, and the number's name there."""
    owner = result
    *parents, name = path.split(".")
    for parent in parents:
        owner = owner[int(parent)] if parent.isdigit() else getattr(owner, parent)
    return owner, name


def deployment_of(owner: Any) -> Deployment | None:
    """The deployment of a result or of its part that has one; None where there is none."""
    for holder in _HOLDERS:
        held = getattr(owner, holder, None)
        if held is not None:
            return held if isinstance(held, Deployment) else deployment_of(held)
    return None


def known_deployment(owner: Any) -> Deployment:
    """The deployment of a result.

    Raises:
        CatalogError: it has none.
    """
    found = deployment_of(owner)
    if found is None:
        message = f"questions.toml: {type(owner).__name__} has no deployment to set a quantity of"
        raise CatalogError(message)
    return found


def _formula(result: Any, deployment: Deployment | None, name: str, given: Mapping[str, Any]) -> str:
    if name in given:
        return f"{largest_batch.__module__}.{largest_batch.__name__}" if name in _MOST else ""
    if deployment is not None:
        formula = deployment.graph.formulas.get(name)
        return formula.computed_by if formula else ""
    if hasattr(result, "rows"):
        return str(result.explain(name).parts[0].computed_by)
    return ""
