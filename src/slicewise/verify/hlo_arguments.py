"""What a compiled program's arguments weigh, tiles and padding counted: the layout of each is in the text."""

from __future__ import annotations

import math
import re

from slicewise.verify.hlo import Module
from slicewise.verify.hlo_text import arrays

_LAYOUT = re.compile(r"\{([\d,]*)(?::([^}]*))?\}")
_TILE = re.compile(r"T\(([\d,]+)\)")


def argument_bytes(module: Module) -> dict[int, float]:
    """Bytes of each argument on one device as it lies there, by its number. [B]"""
    return {
        int(instruction.literal): tiled_bytes(instruction.shape)
        for instruction in module.computations[module.entry].instructions.values()
        if instruction.opcode == "parameter"
    }


def filled_sides(module: Module) -> dict[int, tuple[tuple[int, int], ...]]:
    """The sides of each argument that tiles fill up, by its number: size, and size in memory."""
    return {
        int(instruction.literal): tuple(pair for pair in sides(instruction.shape) if pair[0] != pair[1])
        for instruction in module.computations[module.entry].instructions.values()
        if instruction.opcode == "parameter"
    }


def tiled_bytes(shape: str) -> float:
    """Bytes of an array with a layout, its smallest two sides filled up to whole tiles. [B]

    >>> tiled_bytes("s8[8192,64]{0,1:T(32,128)(4,1)}"), tiled_bytes("bf16[10,130]{1,0:T(8,128)(2,1)}")
    (524288.0, 8192.0)
    """
    (array,) = arrays(shape)
    return math.prod(filled for _, filled in sides(shape)) * array.bits / 8


def sides(shape: str) -> list[tuple[int, int]]:
    """The sides of an array from the outermost in memory, each as it is and as it is filled up to whole tiles.

    >>> sides("bf16[10,130]{1,0:T(8,128)(2,1)}")
    [(10, 16), (130, 256)]
    """
    (array,) = arrays(shape)
    layout = _LAYOUT.search(shape)
    dims = list(array.dims)
    if layout is None or not dims:
        return [(dim, dim) for dim in dims]
    order = [int(axis) for axis in layout[1].split(",")] if layout[1] else []
    plain = [dims[axis] for axis in reversed(order)]
    outer_first = list(plain)
    tile = _TILE.search(layout[2] or "")
    tiled = [int(side) for side in tile[1].split(",")] if tile else []
    for i, side in enumerate(reversed(tiled)):
        if i < len(outer_first):
            outer_first[-1 - i] = -(-outer_first[-1 - i] // side) * side
    return list(zip(plain, outer_first, strict=True))
