"""One decode step: the next token of every sequence of a batch.

The cache of a layer is a ring of slots. Each step writes one slot, the same for every sequence, so that a write is one
row of each head rather than a row here and there; a sequence counts the slots that it holds back from there, so lengths
may differ as they like.

Layers are a loop over stacked arrays, or written out one after the other. A loop compiles in seconds, but for some
chips the compiler copies what it stacks. Written out, the compiler fetches the next matrix while a layer computes,
which it does not do across the turns of a loop: that is the faster program, and compiles in up to a minute.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from slicewise.program.attention import cached_attention
from slicewise.program.family import Llama
from slicewise.program.layers import Weights, embed, logits, mlp, parted, queries_keys_values, summed, turned
from slicewise.program.quantise import narrowed

SCOPES = ("embed", "layers", "attention", "cache_write", "dot_product", "mlp", "head")
"""Named scopes of the programs: in layers lie attention and mlp, in attention cache_write and dot_product."""

Cache = dict[str, jax.Array]


def decode_step(
    weights: dict[str, Any],
    cache: Any,
    tokens: jax.Array,
    lengths: jax.Array,
    slot: jax.Array,
    *,
    llama: Llama,
    batch_ways: int,
    cache_dtype: str,
    dtype: Any,
) -> tuple[jax.Array, Any]:
    """The step on one chip, inside a shard_map.

    Args:
        weights: arrays outside the layers, and "layers": a list of those of each, or those of all, stacked.
        cache: of each layer, this chip's sequences and heads; a list or stacked, as the layers are.
        tokens: the newest token of every sequence, [B].
        lengths: tokens that each of this chip's sequences holds, the newest one counted, [b].
        slot: where this step writes.
        llama: the model.
        batch_ways: Z, ways that the cache's batch is cut.
        cache_dtype: dtype of the cache.
        dtype: of activations.

    Returns:
        This chip's columns of the logits [B, V over the chips], and the cache.
    """

    def layer(x: jax.Array, weights: Weights, cache: Cache, index: jax.Array | None) -> tuple[jax.Array, Cache]:
        with jax.named_scope("layers"):
            with jax.named_scope("attention"):
                mixed, cache = _attention(x, weights, cache, index, lengths, slot, llama, batch_ways, cache_dtype)
                x = x + summed(mixed, weights, "wo")
            with jax.named_scope("mlp"):
                return x + mlp(x, weights, llama), cache

    def turn(carried: tuple[jax.Array, Cache], given: tuple[Weights, jax.Array]) -> tuple[Any, None]:
        return layer(carried[0], given[0], carried[1], given[1]), None

    with jax.named_scope("embed"):
        x = embed(tokens, weights, dtype)
    if isinstance(weights["layers"], dict):
        (x, cache), _ = jax.lax.scan(turn, (x, cache), (weights["layers"], jnp.arange(llama.n_layers)))
    else:
        cache = list(cache)
        for index, each in enumerate(weights["layers"]):
            x, cache[index] = layer(x, each, cache[index], None)
    with jax.named_scope("head"):
        return logits(x, weights, llama), cache


def _attention(
    x: jax.Array,
    weights: Weights,
    cache: Cache,
    index: jax.Array | None,
    lengths: jax.Array,
    slot: jax.Array,
    llama: Llama,
    batch_ways: int,
    cache_dtype: str,
) -> tuple[jax.Array, Cache]:
    """Attention of one layer; with an index, the layer's part of stacked caches is read and written."""
    columns = _to_batch_shards(queries_keys_values(x, weights, llama), batch_ways)
    q, k, v = (part.reshape(part.shape[0], -1, llama.head_dim) for part in parted(columns, llama))
    q, k = turned(q, k, lengths - 1, weights, llama)
    with jax.named_scope("cache_write"):
        cache = _written(cache, k, v, index, slot, cache_dtype)
    with jax.named_scope("dot_product"):
        own = cache if index is None else _of_layer(cache, index)
        slots = own["kv"].shape[3]
        held = (slot - jnp.arange(slots)) % slots < lengths[:, None]
        mixed = cached_attention(q, own, held)
    return _from_batch_shards(mixed.reshape(mixed.shape[0], -1), batch_ways), cache


def _of_layer(cache: Cache, index: jax.Array) -> Cache:
    return {name: jax.lax.dynamic_index_in_dim(old, index, axis=0, keepdims=False) for name, old in cache.items()}


def _to_batch_shards(columns: jax.Array, ways: int) -> jax.Array:
    """From some columns of every sequence to all columns of some, [rows, ways, columns]: one AllToAll."""
    if ways == 1:
        return columns
    moved = jax.lax.all_to_all(columns, "z", split_axis=0, concat_axis=1, tiled=True)
    return moved.reshape(columns.shape[0] // ways, ways, -1)


def _from_batch_shards(x: jax.Array, ways: int) -> jax.Array:
    """Back to some columns of every sequence: one AllToAll."""
    return x if ways == 1 else jax.lax.all_to_all(x, "z", split_axis=1, concat_axis=0, tiled=True)


def _written(cache: Cache, k: jax.Array, v: jax.Array, index: jax.Array | None, slot: jax.Array, dtype: str) -> Cache:
    """The cache with one more token of each sequence, [b, kv_heads, H], in a slot."""
    new = narrowed(jnp.stack([k, v]), cache, dtype)

    def put(old: jax.Array, rows: jax.Array) -> jax.Array:
        row, zero = rows[:, :, :, None], jnp.zeros((), slot.dtype)
        where = (zero, zero, zero, slot, zero)[: row.ndim]
        if index is None:
            return jax.lax.dynamic_update_slice(old, row, where)
        return jax.lax.dynamic_update_slice(old, row[None], (index, *where))

    return {name: put(old, new[name]) for name, old in cache.items()}
