"""Grouped-query attention: of one new token to a cache, and of a prompt to itself. Arrays are those of one chip."""

from __future__ import annotations

import jax
import jax.numpy as jnp

MASKED = -1e30
PROMPT_BLOCK = 1024
"""Queries of a prompt that attend at once; their scores are what prefill needs room for."""


def cached_attention(q: jax.Array, cache: dict[str, jax.Array], held: jax.Array) -> jax.Array:
    """Attention of each sequence's newest token to its cache.

    Scales of keys multiply the scores and scales of values the weights, so that narrow arrays meet the matrices as they
    are kept.

    Args:
        q: queries [b, heads, H], those of one KV head side by side.
        cache: kv [2, b, kv_heads, slots, H], and its scales [2, b, kv_heads, slots] where it has them.
        held: which slots count, [b, slots].

    Returns:
        [b, heads, H].
    """
    k, v = cache["kv"]
    k_scale, v_scale = cache.get("kv_scale", (None, None))
    grouped = q.reshape(q.shape[0], k.shape[1], -1, q.shape[-1])
    scores = jnp.einsum("bkgh,bksh->bkgs", grouped, k.astype(q.dtype), preferred_element_type=jnp.float32)
    scores *= q.shape[-1] ** -0.5
    if k_scale is not None:
        scores *= k_scale[:, :, None].astype(jnp.float32)
    scores = jnp.where(held[:, None, None], scores, MASKED)
    weights = jnp.exp(scores - scores.max(-1, keepdims=True))
    total = weights.sum(-1, keepdims=True)
    if v_scale is not None:
        weights *= v_scale[:, :, None].astype(jnp.float32)
    out = jnp.einsum("bkgs,bksh->bkgh", weights.astype(q.dtype), v.astype(q.dtype), preferred_element_type=jnp.float32)
    return (out / total).astype(q.dtype).reshape(q.shape)


def causal_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention of a prompt to itself, a block of queries at a time, each to the keys up to its end.

    Args:
        q: queries [T, heads, H], those of one KV head side by side.
        k: keys [T, kv_heads, H].
        v: values [T, kv_heads, H].

    Returns:
        [T, heads, H].
    """
    done = []
    for start in range(0, q.shape[0], PROMPT_BLOCK):
        end = min(start + PROMPT_BLOCK, q.shape[0])
        done.append(_block(q[start:end], k[:end], v[:end], start))
    return jnp.concatenate(done)


def _block(q: jax.Array, k: jax.Array, v: jax.Array, start: int) -> jax.Array:
    rows, kv_heads, head_dim = q.shape[0], k.shape[1], q.shape[-1]
    grouped = q.reshape(rows, kv_heads, -1, head_dim)
    scores = jnp.einsum("tkgh,skh->kgts", grouped, k, preferred_element_type=jnp.float32) * head_dim**-0.5
    later = jnp.arange(k.shape[0])[None] > start + jnp.arange(rows)[:, None]
    weights = jax.nn.softmax(jnp.where(later, MASKED, scores), axis=-1)
    out = jnp.einsum("kgts,skh->tkgh", weights.astype(q.dtype), v, preferred_element_type=jnp.float32)
    return out.astype(q.dtype).reshape(q.shape)
