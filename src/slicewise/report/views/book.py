"""The document of `book`: a table a question, and a sentence for each disagreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from slicewise.report.document import Block, Document, Heading, Items, Line, Table
from slicewise.units import show

Answer = Mapping[str, Any]
_HEADER = ["quantity", "the book", "agrees", "a reader", "agrees", "slicewise"]


def book_document(answers: Sequence[Answer]) -> Document:
    """Every answer by question, then how many agree."""
    blocks: list[Block] = []
    for question, group in groupby(answers, key=lambda answer: answer["question"]):
        rows = list(group)
        blocks.append(Heading(f"{question}  {rows[0]['title']}"))
        blocks.append(Table("", _HEADER, [_row(row) for row in rows], left=(0, 2, 4)))
        blocks.append(Items("Why they differ", _whys(rows)))
        blocks.append(Line(""))
    return [*blocks, Heading(_total(answers))]


def _whys(rows: Sequence[Answer]) -> list[str]:
    """Each reason once, with the quantities that it explains."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["why"]:
            reasons.setdefault(row["why"], []).append(row["quantity"])
    return [f"{'; '.join(quantities)}: {why}" for why, quantities in reasons.items()]


def _row(answer: Answer) -> list[str]:
    return [
        answer["quantity"],
        _printed(answer, "book"),
        _agrees(answer["book_agrees"]),
        _printed(answer, "reader"),
        _agrees(answer["reader_agrees"]),
        show(answer["ours"], answer["unit"]),
    ]


def _printed(answer: Answer, who: str) -> str:
    if answer[who] is None:
        return "-"
    return str(answer.get(f"{who}_printed") or show(answer[who], answer["unit"]))


def _agrees(agrees: bool | None) -> str:  # noqa: FBT001 - a cell of the table
    return "" if agrees is None else "yes" if agrees else "no"


def _total(answers: Sequence[Answer]) -> str:
    book = [answer["book_agrees"] for answer in answers if answer["book_agrees"] is not None]
    reader = [answer["reader_agrees"] for answer in answers if answer["reader_agrees"] is not None]
    return (
        f"{len(answers)} quantities: of {len(book)} that the book prints {sum(book)} agree within rounding,"
        f" of {len(reader)} of a reader's {sum(reader)}."
    )
