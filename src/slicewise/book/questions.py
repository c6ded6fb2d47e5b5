"""Reads questions.toml: what was asked, what was printed, and which words put each question to the planner."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from slicewise.book.printed import Printed, read_printed
from slicewise.errors import CatalogError

_TABLE_KEYS = {"settings", "call", "words", "shape", "given", "where", "rows"}
_ROW_KEYS = {
    "quantity", "unit", "value", "times", "over", "words", "given", "within", "largest", "against",
    "book", "reader", "why",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One quantity of one question, and how the planner is asked for it.

    Attributes:
        question: id, such as 0.7 or exercise 3.
        title: what is asked.
        quantity: which figure of it this is.
        call: the planner's function.
        words: its keyword arguments.
        shape: fields of the model that are changed before it is asked.
        given: quantities that are set outright; a string names another quantity to take it from.
        value: the number wanted: a path of attributes in the result, a formula of its deployment, or a reading.
        times: further quantities of the same result that multiply it.
        over: quantities of the same result that divide it.
        within: step time that must be met; the batch is then searched, not asked for.
        largest: what is searched under `within`: batch or context_tokens.
        against: words of a second call whose same quantity divides it.
        book: what the book prints.
        reader: what the published solutions of a reader print.
        why: why a printed figure is not ours, where one is not.
    """

    question: str
    title: str
    quantity: str
    unit: str
    call: str
    value: str
    words: Mapping[str, Any]
    shape: Mapping[str, Any]
    given: Mapping[str, Any]
    times: tuple[str, ...]
    over: tuple[str, ...]
    within: str | None
    largest: str
    against: Mapping[str, Any] | None
    book: Printed | None
    reader: Printed | None
    why: str | None


@cache
def rows() -> tuple[Row, ...]:
    """Every quantity, in the order of the file.

    Raises:
        CatalogError: the file holds a key that is not known, or a figure that cannot be read.
    """
    text = resources.files("slicewise.book").joinpath("questions.toml").read_text(encoding="utf-8")
    return read_rows(tomllib.loads(text))


def ids() -> tuple[str, ...]:
    """The ids of all questions, in the order of the file."""
    return tuple(dict.fromkeys(row.question for row in rows()))


def read_rows(document: Mapping[str, Any]) -> tuple[Row, ...]:
    """Every quantity of a document such as questions.toml.

    Raises:
        CatalogError: it holds a key that is not known, or a figure that cannot be read.
    """
    return tuple(_read(document))


def _read(document: Mapping[str, Any]) -> Iterator[Row]:
    for question in document["question"]:
        for table in question["table"]:
            _refuse_unknown(table, _TABLE_KEYS, question["id"])
            for entry in table["rows"]:
                _refuse_unknown(entry, _ROW_KEYS, question["id"])
                yield _row(question, table, entry, document)


def _row(
    question: Mapping[str, Any], table: Mapping[str, Any], entry: Mapping[str, Any], document: Mapping[str, Any]
) -> Row:
    settings, sentences = document["settings"], document["why"]
    unit, why = entry["unit"], entry.get("why")
    return Row(
        question=question["id"],
        title=question["title"],
        quantity=", ".join([entry["quantity"], *([table["where"]] if "where" in table else [])]),
        unit=unit,
        call=table["call"],
        value=entry["value"],
        words={**settings.get(table.get("settings"), {}), **table.get("words", {}), **entry.get("words", {})},
        shape=table.get("shape", {}),
        given={**table.get("given", {}), **entry.get("given", {})},
        times=tuple(entry.get("times", ())),
        over=tuple(entry.get("over", ())),
        within=entry.get("within"),
        largest=entry.get("largest", "batch"),
        against=entry.get("against"),
        book=read_printed(entry["book"], unit) if "book" in entry else None,
        reader=read_printed(entry["reader"], unit) if "reader" in entry else None,
        why=sentences.get(why, why),
    )


def _refuse_unknown(entry: Mapping[str, Any], known: set[str], question: str) -> None:
    unknown = set(entry) - known
    if unknown:
        message = f"questions.toml: [{question}]: unknown key {', '.join(sorted(unknown))}"
        raise CatalogError(message)
