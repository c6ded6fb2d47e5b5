"""Requests as they arrive: columns, one entry a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Requests in the order of their arrival.

    Attributes:
        arrival_s: seconds after the start, never falling. Shape (n,).
        prompt_tokens: at least 1. Shape (n,).
        output_tokens: at least 1. Shape (n,).
        prefixes: hashes of each prompt's blocks, the first block first; empty where they are not known.
        prefix_block_tokens: tokens of such a block; 0 where there are none.
        source: where they are from, in words.
        dropped: rows that are no requests, by reason.
    """

    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    prefixes: tuple[tuple[int, ...], ...] = ()
    prefix_block_tokens: int = 0
    source: str = ""
    dropped: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self) -> int:
        return len(self.arrival_s)

    def first(self, n: int) -> Requests:
        """The first n of them."""
        return replace(
            self,
            arrival_s=self.arrival_s[:n],
            prompt_tokens=self.prompt_tokens[:n],
            output_tokens=self.output_tokens[:n],
            prefixes=self.prefixes[:n],
        )
