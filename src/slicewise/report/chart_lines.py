"""What both pictures draw: columns of steps, thinned to the points that a line keeps, and the names of contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from slicewise.errors import InputError

FrontierColumns: TypeAlias = Mapping[str, Sequence[float]]
"""context_tokens, batch, step_s, tokens_per_s_per_chip, param_load_s, kv_load_s, matmul_s, ici_s; equal lengths.

With step_expected_s, where what is expected is drawn too.
"""
Row: TypeAlias = dict[str, float]

LABELLED_BATCHES = (1, 4, 16, 64, 256)

_SPACED_POINTS = 64  # log-spaced batches that a line keeps, besides its first, last, labelled and critical ones
_TOKENS_PER_K, _TOKENS_PER_DECIMAL_K = 1024, 1000


def context_name(context_tokens: float) -> str:
    """Tokens of context as people say them; "128k" may mean 131,072 or 128,000, so that a k is always the former.

    >>> context_name(32768), context_name(128000), context_name(8448)
    ('32k', '128,000', '8,448')
    """
    binary = context_tokens % _TOKENS_PER_K == 0 and context_tokens % _TOKENS_PER_DECIMAL_K != 0
    return f"{context_tokens // _TOKENS_PER_K:.0f}k" if binary else f"{context_tokens:,.0f}"


def contexts_of(columns: FrontierColumns) -> list[float]:
    """The contexts that have rows, the shortest first.

    Raises:
        InputError: there are none.
    """
    contexts = sorted({float(context) for context in columns["context_tokens"]})
    if not contexts:
        raise InputError("no batch fits, so there is nothing to draw; take a larger --slice or a shorter --context")
    return contexts


def line_of(columns: FrontierColumns, context_tokens: float, critical_batch: float | None) -> list[Row]:
    """Rows of one context by batch, thinned to log-spaced ones, the first, last, labelled and critical."""
    rows = [i for i, context in enumerate(columns["context_tokens"]) if context == context_tokens]
    rows.sort(key=lambda i: columns["batch"][i])
    batches = np.array([columns["batch"][i] for i in rows], dtype=float)
    wanted = [*np.geomspace(batches[0], batches[-1], _SPACED_POINTS), batches[-1]]
    keep = {0, *np.searchsorted(batches, wanted).clip(max=len(rows) - 1).tolist()}
    keep |= set(np.flatnonzero(np.isin(batches, LABELLED_BATCHES)).tolist())
    if critical_batch is not None and critical_batch < batches[-1]:
        keep.add(int(np.searchsorted(batches, critical_batch, side="right")))
    return [{key: float(column[rows[k]]) for key, column in columns.items()} for k in sorted(keep)]
