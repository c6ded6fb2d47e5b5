"""How the KV cache lies over the chips of a slice: heads first, then the batch."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from slicewise.spec.topology import Axis, Slice


@dataclass(frozen=True, slots=True, kw_only=True)
class KvLayout:
    """Shards of the KV cache, chapter 7's KV[2, B_Z, S, K_Y, H].

    Attributes:
        head_shards: Y, ways that the KV heads are split.
        batch_shards: Z, ways that the batch is split (or the cache copied).
        batch_axes: the axes, or parts of axes, that make up Z on a torus. A part of an axis is a line.
    """

    head_shards: int
    batch_shards: int
    batch_axes: tuple[Axis, ...] = ()

    def __str__(self) -> str:
        return f"{self.head_shards} head shards by {self.batch_shards} batch shards"


def kv_layout(slice_: Slice, n_kv_heads: int) -> KvLayout:
    """The KV layout of a slice: as many even head shards as there are, whole axes where that is possible.

    Source: scaling-book-inference
    """
    head_shards = math.gcd(slice_.n_chips, n_kv_heads)
    batch_shards = slice_.n_chips // head_shards
    axes = slice_.axes
    if not axes or batch_shards == 1:
        return KvLayout(head_shards=head_shards, batch_shards=batch_shards)
    return KvLayout(head_shards=head_shards, batch_shards=batch_shards, batch_axes=_left(axes, head_shards))


def sub_axes(axes: tuple[Axis, ...], n_chips: int) -> tuple[Axis, ...]:
    """The axes, or parts of axes, that join so many of a torus' chips. A part of an axis is a line.

    Raises:
        ValueError: no box of the torus has so many chips.
    """
    return _left(axes, math.prod(axis.length for axis in axes) // n_chips)


def head_split(axes: tuple[Axis, ...], ways: int) -> tuple[int, ...]:
    """How many ways each axis of a torus is split: as few axes cut in two as can be, then the fewest hops left.

    Raises:
        ValueError: the axes cannot be split so many ways.
    """
    splits = (
        split
        for split in itertools.product(*([d for d in range(1, a.length + 1) if a.length % d == 0] for a in axes))
        if math.prod(split) == ways
    )
    return min(splits, key=lambda split: _cost(_batch_axes(axes, split)))


def _left(axes: tuple[Axis, ...], ways: int) -> tuple[Axis, ...]:
    """What is left of a torus that is split so many ways."""
    return _batch_axes(axes, head_split(axes, ways))[1]


def _batch_axes(axes: tuple[Axis, ...], split: tuple[int, ...]) -> tuple[int, tuple[Axis, ...]]:
    """How many axes a split cuts in two, and what it leaves for the batch."""
    n_cut = sum(1 < ways < axis.length for axis, ways in zip(axes, split, strict=True))
    left = tuple(
        axis if ways == 1 else Axis(length=axis.length // ways, wraps=False, link_bytes_per_s=axis.link_bytes_per_s)
        for axis, ways in zip(axes, split, strict=True)
        if axis.length // ways > 1
    )
    return n_cut, left


def _cost(candidate: tuple[int, tuple[Axis, ...]]) -> tuple[int, float]:
    n_cut, axes = candidate
    return n_cut, sum(a.length / 2 if a.wraps else a.length - 1 for a in axes)
