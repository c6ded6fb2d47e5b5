"""What a deployment holds, put together for the formulas: groups of experts, and the segments of a growing cache."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from slicewise.spec.arrays import Cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertGroup:
    """The routed experts of layers that are alike.

    Attributes:
        n_layers: layers.
        n_experts: E, experts of a layer.
        n_active: k, experts of a token.
        n_bytes: bytes of all of them on the chips together. [B]
    """

    n_layers: int
    n_experts: int
    n_active: int
    n_bytes: float

    def __str__(self) -> str:
        return f"{self.n_layers} layers of {self.n_experts} experts, {self.n_active} active: {self.n_bytes:,.0f} B"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """How a sequence's bytes grow between two windows: fixed + rate × tokens.

    Attributes:
        fixed_bytes: states, and layers whose window is full. [B]
        bytes_per_token: what a further token adds. [B]
    """

    fixed_bytes: float
    bytes_per_token: float

    def __str__(self) -> str:
        return f"{self.fixed_bytes:,.0f} B + {self.bytes_per_token:,.0f} B a token"


def segments(caches: Iterable[Cache], kv_bytes_per_element: float) -> tuple[Segment, ...]:
    """The straight segments of a sequence's bytes over its length, steepest first; none where nothing grows."""
    held = [
        (
            cache.window,
            cache.n_layers
            * cache.copies
            * (cache.elements_per_token * kv_bytes_per_element + cache.other_bytes_per_token),
            cache.n_layers * cache.copies * cache.state_bytes,
        )
        for cache in caches
    ]
    starts = sorted({0.0, *(window for window, *_ in held if window != math.inf)})
    found = []
    for start in starts:
        rate = sum(per_token for window, per_token, _ in held if window > start)
        fixed = sum(state + (window * per_token if window <= start else 0.0) for window, per_token, state in held)
        found.append(Segment(fixed_bytes=fixed, bytes_per_token=rate))
    return tuple(part for part in found if part.bytes_per_token > 0)


def most_bytes(caches: Iterable[Cache], kv_bytes_per_element: float) -> float:
    """Bytes of a sequence without end; inf where a layer keeps every token. [B]"""
    total = 0.0
    for cache in caches:
        # A stage that has none of these layers holds no copy of what they keep.
        rate = cache.copies * (cache.elements_per_token * kv_bytes_per_element + cache.other_bytes_per_token)
        total += cache.n_layers * ((rate * cache.window if rate else 0.0) + cache.copies * cache.state_bytes)
    return total
