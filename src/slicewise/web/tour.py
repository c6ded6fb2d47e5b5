"""Chapter 8's questions as a tour: the words that set the controls, the book's answer, and ours."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import Any

from slicewise.book.ours import Planner
from slicewise.book.questions import Row, rows
from slicewise.book.run import Answer, run
from slicewise.planner.flags import listed
from slicewise.report.explorer.explore import EXPLORED
from slicewise.report.explorer.numbers import DIGITS, exact
from slicewise.units import show

_SEVERAL = frozenset({"slice", "chip", "weights", "kv", "compute", "price"})
BOOK = "book"
"""The door behind our numbers."""
_AT_A_BATCH = ("step",)
"""Functions that take the most sequences that fit where the row gives no batch."""


@cache
def tour() -> list[dict[str, Any]]:
    """Every question with the words that set the controls to it, and its answers. Computed once: they never change."""
    found, planner = [], Planner()
    pairs = zip(rows(), run(), strict=True)
    for name, group in groupby(pairs, key=lambda pair: pair[0].question):
        asked = list(group)
        answers = [{**_answer(answer), "words": controls_of(row, planner)} for row, answer in asked]
        words = next(filter(None, (each["words"] for each in answers)), None)
        doors = {BOOK: {"command": "book", "question": name, "shown": True}}
        title = asked[0][0].title
        found.append({"id": name, "question": name, "title": title, "words": words, "answers": answers, "doors": doors})
    return found


def controls_of(row: Row, planner: Planner) -> dict[str, Any] | None:
    """The words of a row that are controls of the page; None where the page cannot ask it.

    It has no model whose shape is changed, no quantity that is set outright or searched for, and no two answers at
    once. Where the row leaves the batch or the view to its function, what that took is said: the page would choose.
    """
    if row.shape or row.given or row.within or row.against is not None or "model" not in row.words:
        return None
    said: dict[str, Any] = {}
    for word, value in row.words.items():
        if word == "model":
            said[word] = value
        elif word in _SEVERAL:
            said[word] = [str(one) for one in listed(value)]
        elif word in EXPLORED:
            said[word] = listed(value)[0] if word == "context" else value
    if row.call in _AT_A_BATCH:
        asked = planner.ask(row, row.words)
        said.setdefault("batch", asked.batch)
        if "book" not in said:
            said.setdefault("view", asked.deployment.conventions.view)
    return said


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "quantity": answer.quantity,
        "unit": answer.unit,
        "book": _printed(answer.book, answer.book_printed),
        "reader": _printed(answer.reader, answer.reader_printed),
        "ours": _ours(answer),
        "agrees": answer.book_agrees,
        "why": answer.why,
    }


def _ours(answer: Answer) -> dict[str, Any] | None:
    """Our number: behind it is its derivation."""
    told = _printed(answer.ours, show(answer.ours, answer.unit, DIGITS))
    exact_ = exact(answer.ours, answer.unit)
    return None if told is None else {**told, "name": answer.quantity, "door": BOOK, "exact": exact_}


def _printed(value: float | None, text: str | None) -> dict[str, Any] | None:
    """A number as it is printed."""
    if value is None or text is None:
        return None
    figure, _, suffix = text.partition(" ")
    return {"value": value, "text": text, "figure": figure, "suffix": suffix}
