"""The layers of a model as people write them: "3 latent+dense, 58 latent+experts", "9 × (5 sliding+dense, full+dense)".

A layer is its mixer and its feed-forward; one that has only the first is "mamba+", only the second "+experts".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from slicewise.errors import CatalogError

MOST_LAYERS = 1000
_REPEATED = re.compile(r"([1-9]\d{0,5}) × \(([^()]*)\)")
_KIND = re.compile(r"(?:([1-9]\d{0,5}) )?([\w-]*)\+([\w-]*)")
_LONGEST_PERIOD = 24


def unfold(text: str) -> list[list[Any]]:
    """The layers as [mixer, feed-forward, how many], in order.

    >>> unfold("2 × (2 sliding+dense, full+dense), mamba+")
    [['sliding', 'dense', 2], ['full', 'dense', 1], ['sliding', 'dense', 2], ['full', 'dense', 1], ['mamba', '', 1]]

    Raises:
        CatalogError: it is no text, a part is not understood, or there are more layers than any model has.
    """
    if not isinstance(text, str):
        raise CatalogError(f"layers: {str(text)[:40]} is no text; write for example '32 full+dense'")
    plain = _REPEATED.sub(lambda match: ", ".join([match[2]] * min(int(match[1]), MOST_LAYERS + 1)), text)
    found = []
    for part in plain.split(", "):
        match = _KIND.fullmatch(part)
        if not match or not (match[2] or match[3]):
            raise CatalogError(
                f"layers: '{part[:40]}' is not understood; write for example '3 full+dense' or '+experts'"
            )
        found.append([match[2], match[3], int(match[1] or 1)])
    if sum(int(layer[2]) for layer in found) > MOST_LAYERS:
        raise CatalogError(f"layers: more than {MOST_LAYERS:,}, which no model has")
    return found


def fold(layers: Sequence[Sequence[Any]]) -> str:
    """The layers in words, what repeats put together.

    >>> fold([["sliding", "dense", 2], ["full", "dense", 1]] * 3 + [["sliding", "dense", 1]])
    '3 × (2 sliding+dense, full+dense), sliding+dense'
    """
    parts = [f"{f'{count} ' if count > 1 else ''}{mixer}+{feed}" for mixer, feed, count in layers]
    found, at = [], 0
    while at < len(parts):
        period, times = max(((p, _times(parts, at, p)) for p in range(1, _LONGEST_PERIOD)), key=_saved)
        repeats = times > 1 and period > 1
        body = ", ".join(parts[at : at + period])
        found.append(f"{times} × ({body})" if repeats else parts[at])
        at += period * times if repeats else 1
    return ", ".join(found)


def _times(parts: list[str], at: int, period: int) -> int:
    """How often a period comes back to back from here."""
    times = 1
    while parts[at + times * period : at + (times + 1) * period] == parts[at : at + period] and at + period <= len(
        parts
    ):
        times += 1
    return times


def _saved(candidate: tuple[int, int]) -> tuple[int, int]:
    """Parts that a repetition saves; of equal ones, the shorter period."""
    period, times = candidate
    return (times - 1) * period, -period
