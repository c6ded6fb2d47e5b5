"""A document: what a result says, before it is text, Markdown or CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """The answer in one line, or the title of a part."""

    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of words, the first column left, the others right unless `left` names them.

    Attributes:
        title: above the table; "" for none.
        header: names of the columns.
        rows: one cell a column.
        left: columns set flush left, by index.
        marked: index of the row that the answer names; -1 for none.
        wrapped: columns of sentences, by index, which take further lines where they are long.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: tuple[int, ...] = (0,)
    marked: int = -1
    wrapped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """Short sentences under a title."""

    title: str
    items: Sequence[str]


Block = Heading | Line | Table | Items
Document = Sequence[Block]
