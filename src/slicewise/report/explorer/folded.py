"""The derivations of a page without scripts: folded up at its end, each the place that its numbers point to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import Any

from slicewise.derive import Derivation
from slicewise.errors import SlicewiseError
from slicewise.planner.disaggregate import disaggregate
from slicewise.report.explain import explain_lines
from slicewise.report.explorer.commands import said_to
from slicewise.report.explorer.found import Found
from slicewise.report.explorer.numbers import ANSWER, SERVERS, every_number


def fold(found: Found, told: Any) -> str:
    """Derive the numbers of an answer, and give each the anchor of its derivation.

    Args:
        found: the answer.
        told: its document; numbers of what is shown, and of its servers, get an `anchor`.

    Returns:
        The derivations as HTML, in the order of their numbers.
    """
    results: dict[str, Any] = {ANSWER: found.step}
    anchors: dict[tuple[str, str], str] = {}
    told_before: dict[tuple[str, str], str] = {}
    folded: list[str] = []
    for number in every_number(told):
        key = number["door"], number["name"]
        if key not in anchors and number["door"] in (ANSWER, SERVERS):
            if number["door"] not in results:
                results[SERVERS] = disaggregate(found.question.model, **said_to("disaggregate", found))
            derivation = _derivation(results[number["door"]], number["name"])
            anchors[key] = f"derivation-{len(folded)}" if derivation else ""
            if derivation:
                folded.append(_folded(_without(derivation, told_before), anchors[key]))
                told_before.setdefault(_same(derivation), derivation.name)
        if anchors.get(key):
            number["anchor"] = anchors[key]
    return "".join(folded)


def _derivation(result: Any, name: str) -> Derivation | None:
    """The derivation of a number; None where this answer has none, such as of a price that is not known."""
    try:
        found: Derivation = result.explain(name)
    except SlicewiseError:
        return None
    return found


def _without(node: Derivation, told: Mapping[tuple[str, str], str]) -> Derivation:
    """A derivation where what an earlier one derives is a figure that points there."""
    return replace(node, parts=tuple(_pointed(part, told) for part in node.parts))


def _pointed(node: Derivation, told: Mapping[tuple[str, str], str]) -> Derivation:
    where = told.get(_same(node)) if node.formula and not node.seen else None
    if where is None:
        return _without(node, told)
    return Derivation(name=node.name, value=node.value, unit=node.unit, origin=f"see {where}")


def _same(node: Derivation) -> tuple[str, str]:
    """What two derivations have in common that say the same."""
    return node.computed_by, str(node.value)


def _folded(derivation: Derivation, anchor: str) -> str:
    lines = escape("\n".join(explain_lines(derivation)))
    summary = f"<code>{escape(derivation.name)}</code> {escape(derivation.meaning or derivation.origin)}"
    return f'<details><summary>{summary}</summary><pre id="{anchor}">{lines}</pre></details>'
