"""Answers the book's questions with the planner, beside what the book and a reader's published solutions print."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from slicewise.book.ours import Planner, compute
from slicewise.book.printed import Printed
from slicewise.book.questions import Row, ids, rows
from slicewise.errors import InputError
from slicewise.units import plain, show


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One quantity of one question. Numbers are in base units; None where nothing was printed.

    Attributes:
        question: id, such as 0.7, exercise 3 or ch7.2.
        title: what is asked.
        quantity: which figure of it this is.
        book: what the book prints.
        reader: what a reader's published solutions print.
        ours: what the planner computes.
        book_agrees: ours, rounded to the digits that the book prints, is what it prints.
        reader_agrees: the same for the reader.
        computed_by: the planner's function, the number read from its result, and the formula behind it.
        why: why they disagree; None where nothing does.
        book_printed: as the book prints it.
        reader_printed: as the reader writes it.
        ours_printed: ours, for people.
    """

    question: str
    title: str
    quantity: str
    unit: str
    book: float | None
    reader: float | None
    ours: float
    book_agrees: bool | None
    reader_agrees: bool | None
    computed_by: str
    why: str | None
    book_printed: str | None
    reader_printed: str | None
    ours_printed: str

    @property
    def agrees(self) -> bool:
        """Whether nothing that was printed disagrees."""
        return self.book_agrees is not False and self.reader_agrees is not False

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}


def run(question: str | None = None) -> tuple[Answer, ...]:
    """Answer one question, or all.

    >>> [(answer.quantity, answer.book_printed, answer.ours_printed) for answer in run("0.10")][:1]
    [('prefill time on 16 chips', '0.91 s', '909.64 ms')]

    Args:
        question: an id; `question_ids` lists them. All questions when none is given.

    Raises:
        InputError: no such question.
    """
    planner = Planner()
    return tuple(_answer(row, planner) for row in chosen(question))


def question_ids() -> tuple[str, ...]:
    """The ids that `run` takes, in the book's order."""
    return ids()


def chosen(question: str | None) -> tuple[Row, ...]:
    """The rows of one question, or all.

    Raises:
        InputError: no such question.
    """
    if question is None:
        return rows()
    wanted = _tidy(question)
    found = tuple(row for row in rows() if _tidy(row.question) == wanted)
    if not found:
        raise InputError(f"unknown question '{question}'; there are {', '.join(ids())}")
    return found


def _tidy(text: str) -> str:
    """An id as it is compared: `Exercise-3` is `exercise 3`."""
    return " ".join(text.lower().replace("-", " ").replace("_", " ").split())


def _answer(row: Row, planner: Planner) -> Answer:
    ours, computed_by = compute(row, planner)
    return Answer(
        question=row.question,
        title=row.title,
        quantity=row.quantity,
        unit=row.unit,
        book=_value(row.book),
        reader=_value(row.reader),
        ours=ours,
        book_agrees=_agrees(row.book, ours),
        reader_agrees=_agrees(row.reader, ours),
        computed_by=computed_by,
        why=row.why,
        book_printed=row.book.text if row.book else None,
        reader_printed=row.reader.text if row.reader else None,
        ours_printed=show(ours, row.unit),
    )


def _value(printed: Printed | None) -> float | None:
    return printed.value if printed else None


def _agrees(printed: Printed | None, ours: float) -> bool | None:
    return printed.agrees(ours) if printed else None
