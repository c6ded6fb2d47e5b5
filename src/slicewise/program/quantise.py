"""Narrow dtypes: numbers and scales out of wide arrays, and matmuls that take them."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import jax
import jax.numpy as jnp

from slicewise.program.arrays import DTYPES

LARGEST: dict[str, float] = {"int8": 127.0, "int4": 7.0, "fp8": 448.0}
"""The largest number of each narrow dtype, which the largest of a group is scaled to."""

TINY = 1e-20
"""The least that a group's largest number counts as, so that zeros have a scale, too."""


def quantise(x: jax.Array, dtype: str, axis: int, scale_dtype: str = "fp32") -> tuple[jax.Array, jax.Array]:
    """Numbers in a narrow dtype, and the scales that give them back, without the axis that they cover.

    Numbers are those of the scales as they are kept, so that each is off by half a step and no more.
    """
    wide, kept = x.astype(jnp.float32), DTYPES[scale_dtype]
    scale = jnp.maximum(jnp.abs(wide).max(axis), TINY) / LARGEST[dtype]
    scale = jax.lax.reduce_precision(scale, jnp.finfo(kept).nexp, jnp.finfo(kept).nmant)
    return _rounded(wide / jnp.expand_dims(scale, axis), dtype), scale.astype(kept)


def cast(x: jax.Array, dtype: str) -> jax.Array:
    """Numbers in a dtype without scales; whole numbers are rounded, and cut off at the ends."""
    return _rounded(x, dtype) if dtype in LARGEST else x.astype(DTYPES[dtype])


def narrowed(kv: jax.Array, names: Container[str], dtype: str) -> dict[str, jax.Array]:
    """Keys and values [2, ..., H] as a cache keeps them: kv, and kv_scale [2, ...] where that is among the names."""
    if "kv_scale" not in names:
        return {"kv": cast(kv, dtype)}
    numbers, scales = quantise(kv, dtype, axis=-1, scale_dtype="bf16")
    return {"kv": numbers, "kv_scale": scales}


def _rounded(x: jax.Array, dtype: str) -> jax.Array:
    most = LARGEST[dtype]
    whole = x if dtype == "fp8" else jnp.round(x)
    return jnp.clip(whole, -most, most).astype(DTYPES[dtype])


def matmul(x: jax.Array, weights: dict[str, Any], name: str, *, dtype: Any = None) -> jax.Array:
    """The product of x [rows, inputs] and a matrix [inputs, columns], added up in float32.

    Args:
        x: the inputs.
        weights: arrays of the layer.
        name: the matrix; its columns' scales multiply the product, where it has them.
        dtype: of the product; that of x where it is not given.
    """
    scale = weights.get(f"{name}_scale")
    out = jnp.einsum("bd,df->bf", x, weights[name].astype(x.dtype), preferred_element_type=jnp.float32)
    return (out if scale is None else out * scale).astype(dtype or x.dtype)
