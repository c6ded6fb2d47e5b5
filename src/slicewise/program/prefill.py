"""Prefill: the logits after a prompt, and the cache that it leaves.

Every chip computes the whole prompt for its query heads. Where several chips share a KV head they gather its columns,
and each keeps all of it: one prompt cannot be cut as a batch is.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from slicewise.program.attention import causal_attention
from slicewise.program.family import Llama
from slicewise.program.layers import Weights, embed, logits, mlp, parted, queries_keys_values, summed, turned
from slicewise.program.quantise import narrowed

Cache = dict[str, jax.Array]


def prefill_step(
    weights: dict[str, Any],
    tokens: jax.Array,
    *,
    llama: Llama,
    batch_ways: int,
    cache_dtype: str,
    scaled: bool,
    dtype: Any,
) -> tuple[jax.Array, Any]:
    """Prefill of one prompt on one chip, inside a shard_map.

    Args:
        weights: arrays outside the layers, and "layers": a list of those of each, or those of all, stacked.
        tokens: the prompt, [T].
        llama: the model.
        batch_ways: Z, chips that share a KV head.
        cache_dtype: dtype of the cache.
        scaled: the cache has scales, where its dtype is narrow.
        dtype: of activations.

    Returns:
        This chip's columns of the last token's logits [1, V over the chips], and of each layer kv
        [2, 1, kv_heads, T, H] with its scales; a list or stacked, as the layers are.
    """

    def layer(x: jax.Array, weights: Weights) -> tuple[jax.Array, Cache]:
        with jax.named_scope("layers"):
            with jax.named_scope("attention"):
                mixed, new = _attention(x, weights, llama, batch_ways, cache_dtype, scaled=scaled)
                x = x + summed(mixed, weights, "wo")
            with jax.named_scope("mlp"):
                return x + mlp(x, weights, llama), new

    with jax.named_scope("embed"):
        x = embed(tokens, weights, dtype)
    kept: Any
    if isinstance(weights["layers"], dict):
        x, kept = jax.lax.scan(layer, x, weights["layers"])
    else:
        kept = []
        for each in weights["layers"]:
            x, new = layer(x, each)
            kept.append(new)
    with jax.named_scope("head"):
        return logits(x[-1:], weights, llama), kept


def _attention(
    x: jax.Array, weights: Weights, llama: Llama, batch_ways: int, cache_dtype: str, *, scaled: bool
) -> tuple[jax.Array, Cache]:
    q, k, v = parted(queries_keys_values(x, weights, llama), llama)
    if batch_ways > 1:
        k, v = (jax.lax.all_gather(part, "z", axis=1, tiled=True) for part in (k, v))
    q, k, v = (part.reshape(part.shape[0], -1, llama.head_dim) for part in (q, k, v))
    q, k = turned(q, k, jnp.arange(x.shape[0]), weights, llama)
    with jax.named_scope("cache_write"):
        by_head = jnp.stack([k, v]).transpose(0, 2, 1, 3)[:, None]
        cache = narrowed(by_head, ("kv_scale",) if scaled else (), cache_dtype)
    with jax.named_scope("dot_product"):
        mixed = causal_attention(q, k, v)
    return mixed.reshape(x.shape[0], -1), cache
