"""The parts of a layer that decode and prefill share. Arrays are those of one chip, inside a shard_map."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from slicewise.program.attention import MASKED
from slicewise.program.family import Llama
from slicewise.program.numerics import rotary_frequencies
from slicewise.program.quantise import matmul
from slicewise.program.sharding import ALL

Weights = dict[str, Any]


def rms_norm(x: jax.Array, weight: jax.Array | None, eps: float) -> jax.Array:
    """Each row over its root mean square, [..., width]."""
    wide = x.astype(jnp.float32)
    normed = (wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + eps)).astype(x.dtype)
    return normed if weight is None else normed * weight.astype(x.dtype)


def rotary(x: jax.Array, positions: jax.Array, llama: Llama) -> jax.Array:
    """Queries or keys [rows, heads, H] turned by their positions [rows]; channels i and i + H / 2 are a pair."""
    angles = positions[:, None].astype(jnp.float32) * rotary_frequencies(llama.numerics, llama.head_dim)
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).astype(x.dtype)


def queries_keys_values(x: jax.Array, weights: Weights, llama: Llama) -> jax.Array:
    """This chip's columns of the projections, [rows, columns]: queries, then keys, then values."""
    h = rms_norm(x, weights.get("attention_norm"), llama.numerics.norm_eps)
    out, bias = matmul(h, weights, "wqkv"), weights.get("bqkv")
    return out if bias is None else out + bias.astype(out.dtype)


def parted(columns: jax.Array, llama: Llama) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Queries, keys and values of [..., columns], each [rows, columns of all the parts that were side by side]."""
    width = columns.shape[-1]
    keys = width * llama.n_kv_heads // (llama.n_heads + 2 * llama.n_kv_heads)
    parts = jnp.split(columns, (width - 2 * keys, width - keys), axis=-1)
    q, k, v = (part.reshape(part.shape[0], -1) for part in parts)
    return q, k, v


def turned(q: jax.Array, k: jax.Array, positions: jax.Array, weights: Weights, llama: Llama) -> tuple[Any, Any]:
    """Whole heads of queries and keys [rows, heads, H], normed where the model norms them, and turned."""
    eps = llama.numerics.norm_eps
    if "q_norm" in weights:
        q, k = rms_norm(q, weights["q_norm"], eps), rms_norm(k, weights["k_norm"], eps)
    return rotary(q, positions, llama), rotary(k, positions, llama)


def summed(x: jax.Array, weights: Weights, name: str) -> jax.Array:
    """The product of x [rows, this chip's inputs] and its rows of a matrix, added up over all chips: one AllReduce."""
    return jax.lax.psum(matmul(x, weights, name), ALL)


def mlp(x: jax.Array, weights: Weights, llama: Llama) -> jax.Array:
    """The gated MLP, [rows, D] to [rows, D]."""
    h = rms_norm(x, weights.get("mlp_norm"), llama.numerics.norm_eps)
    gate = jax.nn.silu(matmul(h, weights, "w_gate", dtype=jnp.float32)).astype(x.dtype)
    return summed(gate * matmul(h, weights, "w_up"), weights, "w_down")


def embed(tokens: jax.Array, weights: Weights, dtype: Any) -> jax.Array:
    """The embedding of tokens [rows], whose rows are cut over all chips: one AllReduce."""
    table = weights["embedding"]
    local = tokens - jax.lax.axis_index(ALL) * table.shape[0]
    here = (local >= 0) & (local < table.shape[0])
    at = jnp.clip(local, 0, table.shape[0] - 1)
    rows = table[at]
    if "embedding_scale" in weights:
        rows = rows.astype(jnp.float32) * weights["embedding_scale"][at, None]
    return jax.lax.psum(jnp.where(here[:, None], rows.astype(dtype), 0), ALL)


def logits(x: jax.Array, weights: Weights, llama: Llama) -> jax.Array:
    """This chip's columns of the logits, float32 [rows, V over all chips], V filled up to divide.

    A column beyond the vocabulary can never be the largest.
    """
    h = rms_norm(x, weights.get("final_norm"), llama.numerics.norm_eps)
    if "lm_head" in weights:
        out = matmul(h, weights, "lm_head", dtype=jnp.float32)
    else:
        table = weights["embedding"].astype(h.dtype)
        out = jnp.einsum("bd,vd->bv", h, table, preferred_element_type=jnp.float32)
        out = out * weights["embedding_scale"] if "embedding_scale" in weights else out
    width = out.shape[-1]
    if width * jax.lax.psum(1, ALL) == llama.vocab_size:
        return out
    tokens = jax.lax.axis_index(ALL) * width + jnp.arange(width)
    return jnp.where(tokens < llama.vocab_size, out, MASKED)
