"""The derivation of our number for a row of the book: each quantity that it is made of, as the planner derives it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from slicewise.book.ours import Planner, compute, deployment_of, given_of, known_deployment, owner_of, read
from slicewise.book.questions import Row
from slicewise.book.readings import READINGS, RESTS_ON
from slicewise.book.run import chosen
from slicewise.derive import Derivation
from slicewise.errors import InputError, SlicewiseError
from slicewise.planner.step import Step
from slicewise.units import show


def explain(question: str, quantity: str = "") -> Derivation:
    """The derivation of our number for a quantity of a question.

    Args:
        question: an id, such as 0.7.
        quantity: which figure of it; the first where none is named.

    Raises:
        InputError: no such question, or it has no such quantity.
    """
    asked = chosen(question)
    named = {row.quantity: row for row in asked}
    if quantity and quantity not in named:
        known = "; ".join(f"'{name}'" for name in named)
        raise InputError(f"question {asked[0].question} has no quantity '{quantity}'; it has {known}")
    return derivation_of(named[quantity] if quantity else asked[0], Planner())


def derivation_of(row: Row, planner: Planner) -> Derivation:
    """The derivation of our number for a row.

    Raises:
        CatalogError: the row asks for what the result does not hold.
    """
    ours, computed_by = compute(row, planner)
    paths = (row.value, *row.times, *row.over)
    factors = _factors(row, planner.ask(row, row.words))
    formula = _product(row, [factors[path].name for path in paths])
    numbers = _product(row, [_shown(factors[path]) for path in paths])
    parts = list(factors.values())
    if row.against is not None:
        changes = ", ".join(f"{key}={value}" for key, value in row.against.items())
        others = _factors(row, planner.ask(row, {**row.words, **row.against}))
        formula = f"{formula} over the same at {changes}"
        numbers = f"({numbers}) / ({_product(row, [_shown(others[path]) for path in paths])})"
        parts += [replace(each, name=f"{each.name} at {changes}") for each in others.values()]
    return Derivation(
        name=row.quantity,
        value=ours,
        unit=row.unit,
        meaning=_meaning(row, parts),
        formula=formula,
        numbers=numbers,
        computed_by=computed_by,
        parts=tuple(parts),
    )


def _meaning(row: Row, parts: list[Derivation]) -> str:
    """What it is: as its only quantity says, or as the question calls it."""
    return (parts[0].meaning if len(parts) == 1 else "") or row.quantity


def _product(row: Row, texts: list[str]) -> str:
    """A row's value, times and over the others."""
    upper, lower = texts[: 1 + len(row.times)], texts[1 + len(row.times) :]
    return " / ".join([" × ".join(upper), *lower])


def _shown(derivation: Derivation) -> str:
    return show(derivation.value, derivation.unit)


def _factors(row: Row, result: Any) -> dict[str, Derivation]:
    """The quantities that a row's number is made of, by their paths in the result."""
    given = given_of(row, result)
    return {path: _factor(row, result, path, given) for path in (row.value, *row.times, *row.over)}


def _factor(row: Row, result: Any, path: str, given: Mapping[str, Any]) -> Derivation:
    if path in READINGS:
        reading = READINGS[path]
        words = " ".join((reading.__doc__ or "").partition(". [")[0].split())
        by = f"{reading.__module__}.{path}"
        origin = f"read from the answer of `{row.call}`"
        return Derivation(
            name=path,
            value=reading(result),
            unit="",
            meaning=words,
            computed_by=by,
            origin=origin,
            parts=tuple(result.explain(each) for each in RESTS_ON.get(path, ())),
        )
    if row.within is not None and path == row.largest:
        return _searched(row, result, given)
    owner, name = owner_of(result, path)
    value, computed_by = read(result, path, given)
    for way in _ways(row, result, path, given):
        try:
            found = way()
        except SlicewiseError:
            continue  # the planner times nothing that does not fit, where the book goes on
        if math.isclose(found.value, value):
            return found
    return Derivation(name=name, value=value, unit="", origin=f"{type(owner).__name__} of the answer: {computed_by}")


def _searched(row: Row, result: Any, given: Mapping[str, Any]) -> Derivation:
    """What was searched to meet a step time: the step there, and one beyond, or what memory allows."""
    deployment, most = known_deployment(result), given[row.largest]
    point = {"batch": getattr(result, "batch", 1), **given}
    steps = {at: deployment.explain("step_s", **{**point, row.largest: at}) for at in (most, most + 1)}
    return Derivation(
        name=row.largest,
        value=most,
        unit="",
        meaning=f"The largest {row.largest} that fits and whose step takes {row.within} at most",
        formula=f"largest {row.largest} with step_s <= {row.within}",
        parts=tuple(replace(step, name=f"step_s at {row.largest} {at:,.0f}") for at, step in steps.items()),
    )


def _ways(row: Row, result: Any, path: str, given: Mapping[str, Any]) -> Iterator[Callable[[], Derivation]]:
    """How a number may be derived: as its owner does, as a row of a comparison, or by its formula."""
    owner, name = owner_of(result, path)
    if name == "batch" and not given and isinstance(owner, Step):
        yield lambda: owner.explain("max_batch")  # where none is asked for, it is as many as fit
    if not given and hasattr(owner, "explain"):
        yield lambda: owner.explain(name)
    if not given and hasattr(result, "rows"):
        at = next((int(part) for part in path.split(".") if part.isdigit()), 0)
        yield lambda: result.explain(name).parts[at]
    deployment = deployment_of(owner) or deployment_of(result)
    if deployment is not None:
        batch = {"batch": getattr(owner, "batch", 1)}
        origins = {each: (_said(row, each), "") for each in given}
        yield lambda: deployment.explain(name, origins, **{**batch, **given})


def _said(row: Row, name: str) -> str:
    """Where an input comes from that the planner did not choose."""
    if row.within is not None and name == row.largest:
        return f"the most whose step takes {row.within} at most"
    return "as the question gives it"
