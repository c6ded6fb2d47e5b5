"""The arrays of the programs, made of the model's declarations: shape, logical axes, dtype, and the ledger's line.

A dtype of 8 bits or fewer has scales beside it: of a matrix, one a column; of the embedding, one a row; of the cache,
one a token and head, since keys of neighbouring tokens differ in size and a token's scale is known when it is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding

from slicewise.errors import InputError
from slicewise.program.family import Llama
from slicewise.program.lines import CACHE, CACHE_SCALES, WEIGHT_SCALES, WEIGHTS
from slicewise.program.sharding import partition, ways
from slicewise.spec.arrays import Tensor
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision

DTYPES: dict[str, Any] = {
    "fp32": jnp.float32,
    "bf16": jnp.bfloat16,
    "fp16": jnp.float16,
    "int8": jnp.int8,
    "fp8": jnp.float8_e4m3fn,
    "int4": jnp.int4,
}
SCALED = ("int8", "fp8", "int4")
"""Dtypes that are kept with scales."""

INT32_BYTES = 4.0
_PROJECTIONS = ("wq", "wk", "wv")
_BIASES = ("bq", "bk", "bv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """An array of a program.

    Attributes:
        shape: global, with the padding that an even cut needs.
        axes: the logical axis of each dimension.
        dtype: a key of DTYPES, or int32.
        line: one of `lines.LINES`.
    """

    shape: tuple[int, ...]
    axes: tuple[str, ...]
    dtype: str
    line: str

    def abstract(self, mesh: Mesh) -> jax.ShapeDtypeStruct:
        """The array without numbers, where it lies."""
        dtype = DTYPES.get(self.dtype, jnp.int32)
        return jax.ShapeDtypeStruct(self.shape, dtype, sharding=NamedSharding(mesh, partition(self.axes)))

    @property
    def is_vector(self) -> bool:
        """Whether it is a vector, of one layer or of all."""
        return len([axis for axis in self.axes if axis != "layers"]) == 1

    def bytes_per_device(self, mesh_shape: Mapping[str, int]) -> float:
        """Bytes on one device, before the compiler lays it out. [B]"""
        cut = math.prod(ways(axis, mesh_shape) for axis in self.axes)
        return math.prod(self.shape) * BYTES_PER_ELEMENT.get(self.dtype, INT32_BYTES) / cut


Arrays = dict[str, Array]


def checked_dtypes(precision: Precision) -> None:
    """Refuse what the programs do not compute with.

    Raises:
        InputError: a dtype without arrays in JAX, a quantised checkpoint, or FLOPs in fewer than 16 bits.
    """
    if precision.as_stored:
        raise InputError("--weights: the program holds all of them in one dtype, and this checkpoint mixes; give one")
    for flag, dtype in (("--weights", precision.weights), ("--kv", precision.kv)):
        if dtype not in DTYPES:
            raise InputError(f"{flag} {dtype}: the program holds {', '.join(DTYPES)}")
    if precision.compute not in ("bf16", "fp32", "fp16"):
        raise InputError(f"--compute {precision.compute}: the program multiplies in bf16; leave --compute out")


def weight_arrays(
    tensors: Iterable[Tensor], dtype: str, mesh_shape: Mapping[str, int], *, scaled: bool = True
) -> Arrays:
    """The arrays of declared tensors, by their names; a scale is called `wq_scale` and so on."""
    found: Arrays = {}
    for tensor in tensors:
        found |= _weight(tensor, dtype, mesh_shape, scaled=scaled)
    return found


def packed(arrays: Arrays) -> Arrays:
    """A layer's arrays with the projections of queries, keys and values in one, as servers hold them.

    The columns are those of each chip side by side: its queries, its keys and its values; see `pack`.
    """
    found = {name: array for name, array in arrays.items() if name[:2] not in (*_PROJECTIONS, *_BIASES)}
    for parts, name in ((_PROJECTIONS, "wqkv"), (_BIASES, "bqkv")):
        for suffix in ("", "_scale"):
            joined = [arrays[f"{part}{suffix}"] for part in parts if f"{part}{suffix}" in arrays]
            if joined:
                columns = sum(array.shape[-1] for array in joined)
                found[f"{name}{suffix}"] = replace(joined[0], shape=(*joined[0].shape[:-1], columns))
    return found


def pack(parts: Sequence[jax.Array], n_devices: int) -> jax.Array:
    """Arrays with columns for each device, as one whose columns are each device's side by side."""
    split = [part.reshape(*part.shape[:-1], n_devices, -1) for part in parts]
    return jnp.concatenate(split, axis=-1).reshape(*parts[0].shape[:-1], -1)


def cache_arrays(llama: Llama, dtype: str, batch: int, slots: int, *, scaled: bool = True) -> Arrays:
    """The cache of one layer: kv [2, batch, K, slots, H], keys then values, and their scales [2, batch, K, slots].

    Args:
        llama: the model.
        dtype: dtype of the cache.
        batch: sequences, a multiple of the ways that cut them.
        slots: tokens of room for each.
        scaled: narrow dtypes have scales; else they are kept as they come, as a count without scales has it.
    """
    axes = ("", "batch", "cache_heads", "", "")
    shape = (2, batch, llama.n_kv_heads, slots, llama.head_dim)
    found = {"kv": Array(shape=shape, axes=axes, dtype=dtype, line=CACHE)}
    if scaled and dtype in SCALED:
        found["kv_scale"] = Array(shape=shape[:-1], axes=axes[:-1], dtype="bf16", line=CACHE_SCALES)
    return found


def stacked(arrays: Arrays, n_layers: int) -> Arrays:
    """The arrays of all layers, each in one."""
    return {
        name: replace(array, shape=(n_layers, *array.shape), axes=("layers", *array.axes))
        for name, array in arrays.items()
    }


def padded(size: int, multiple: int) -> int:
    """The next multiple."""
    return -(-size // multiple) * multiple


def _weight(tensor: Tensor, dtype: str, mesh_shape: Mapping[str, int], *, scaled: bool) -> Arrays:
    cut = [ways(axis, mesh_shape) for axis in tensor.axes]
    shape = tuple(padded(size, n) for (_, size), n in zip(tensor.dims, cut, strict=True))
    wide = "bf16" if dtype in SCALED else dtype
    if len(shape) == 1:
        return {tensor.name: Array(shape=shape, axes=tensor.axes, dtype=wide, line=WEIGHTS)}
    found = {tensor.name: Array(shape=shape, axes=tensor.axes, dtype=dtype, line=WEIGHTS)}
    if scaled and dtype in SCALED:
        kept = 0 if tensor.role == "embedding" else 1
        found[f"{tensor.name}_scale"] = Array(
            shape=(shape[kept],), axes=(tensor.axes[kept],), dtype="fp32", line=WEIGHT_SCALES
        )
    return found
