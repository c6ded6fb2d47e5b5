"""Sentences of the planner for the page: a number that is printed in one becomes a door, as everywhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from slicewise.report.explorer.numbers import Number

Segment = dict[str, Any]
Printed = tuple[str, Number | None]
"""A number as a sentence prints it, and as the page does; None where it is not known."""


def linked(text: str, printed: Iterable[Printed]) -> list[Segment]:
    """The segments of a sentence: words, and those of the numbers that it prints, in the digits that it prints.

    A number is found by its whole print: `43 ms` is not part of `143 ms`. What the sentence does not print is left out,
    and so is a limit, which was typed in. Of two numbers that print alike the first is meant.

    >>> linked("it takes 43 ms", [("43 ms", {"name": "step_s"}), ("3 ms", {"name": "handoff_s"})])
    [{'text': 'it takes '}, {'number': {'name': 'step_s', 'text': '43 ms', 'figure': '43', 'suffix': 'ms'}}]
    """
    by_print: dict[str, Number] = {}
    for words, number in printed:
        if number is not None:
            by_print.setdefault(words, number)
    if not by_print:
        return [{"text": text}]
    longest_first = sorted(by_print, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\d.,])(?<!limit of )({'|'.join(map(re.escape, longest_first))})(?![\w/])")
    pieces = pattern.split(text)
    return [_number(by_print[piece], piece) if at % 2 else {"text": piece} for at, piece in enumerate(pieces) if piece]


def _number(number: Number, words: str) -> Segment:
    """A number as a sentence prints it: what stands in parentheses is in the exact value already."""
    figure, _, rest = words.partition(" ")
    return {"number": {**number, "text": words, "figure": figure, "suffix": rest.partition(" (")[0]}}
