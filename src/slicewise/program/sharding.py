"""Where arrays lie: a mesh of two axes over the slice, and one table from logical axes to mesh axes.

Axis "y" cuts the KV heads, axis "z" what is left: the batch of the cache. Weights are cut over both, so that every
chip holds one block of each matrix; a chip's columns of queries belong to the KV head that it shares with its z group.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jax.sharding import Mesh, PartitionSpec
from numpy.typing import NDArray

ALL = ("y", "z")

RULES: dict[str, tuple[str, ...]] = {
    "heads": ALL,
    "kv_heads": ALL,
    "ff": ALL,
    "vocab": ALL,
    "cache_heads": ("y",),
    "batch": ("z",),
    "layers": (),
    "embed": (),
    "": (),
}
"""Mesh axes that each logical axis is cut over."""


def partition(axes: tuple[str, ...]) -> PartitionSpec:
    """The partition of an array with these logical axes."""
    return PartitionSpec(*(RULES[axis] or None for axis in axes))


def ways(axis: str, mesh_shape: Mapping[str, int]) -> int:
    """How many ways a logical axis is cut."""
    return int(np.prod([mesh_shape[name] for name in RULES[axis]], dtype=int))


def make_mesh(devices: NDArray[np.object_], split: tuple[int, ...]) -> Mesh:
    """The mesh of a slice.

    Args:
        devices: devices by their place in the torus, one array axis a torus axis.
        split: ways that each torus axis is cut by KV heads; the rest of each, neighbours, cuts the batch.
    """
    halves = [size for length, cut in zip(devices.shape, split, strict=True) for size in (cut, length // cut)]
    order = [*range(0, len(halves), 2), *range(1, len(halves), 2)]
    heads = int(np.prod(split, dtype=int))
    return Mesh(devices.reshape(halves).transpose(order).reshape(heads, -1), ALL)
