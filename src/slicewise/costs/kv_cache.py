"""The KV cache: bytes a token, a sequence and a batch, and what an uneven split adds."""

from __future__ import annotations

import numpy as np

from slicewise.costs.real import Real
from slicewise.spec.arrays import Cache


def kv_elements_per_token(caches: tuple[Cache, ...]) -> float:
    """Cache elements of one token: 2 K H a layer of full attention. []

    Source: scaling-book-inference
    """
    return sum(cache.n_layers * cache.elements_per_token for cache in caches)


def kv_bytes_per_token(kv_elements_per_token: Real, kv_bytes_per_element: Real) -> Real:
    """Cache bytes of one token of one sequence, over all layers. [B]"""
    return kv_elements_per_token * kv_bytes_per_element


def window_tokens(context_tokens: Real, attention_window: Real) -> Real:
    """Tokens, as far as the attention window reaches back. []"""
    return np.minimum(context_tokens, attention_window)


def kv_read_tokens(context_tokens: Real, attention_window: Real) -> Real:
    """Tokens whose cache a decode step reads, per sequence. []"""
    return window_tokens(context_tokens, attention_window)


def kv_held_tokens(capacity_context_tokens: Real, attention_window: Real) -> Real:
    """Tokens whose cache is held at the longest, per sequence. []"""
    return window_tokens(capacity_context_tokens, attention_window)


def kv_bytes_per_sequence(kv_held_tokens: Real, kv_bytes_per_token: Real) -> Real:
    """Cache bytes of one sequence at its longest. [B]"""
    return kv_held_tokens * kv_bytes_per_token


def kv_replication_whole(batch: Real, kv_batch_shards: Real) -> Real:
    """What the fullest chip holds, over the even share: whole sequences over Z batch shards. []"""
    return np.ceil(batch / kv_batch_shards) * kv_batch_shards / batch


def kv_replication_ideal(batch: Real) -> Real:
    """No excess: fractions of sequences are split evenly. []"""
    return 1.0 + 0.0 * batch


def kv_replication_copied(batch: Real, kv_batch_shards: Real) -> Real:
    """Every one of the Z ways beyond the heads holds the whole batch. []"""
    return kv_batch_shards + 0.0 * batch


def kv_bytes(batch: Real, kv_bytes_per_sequence: Real, kv_replication: Real) -> Real:
    """Cache bytes of the batch at its longest, with replication. [B]"""
    return batch * kv_bytes_per_sequence * kv_replication


def kv_read_bytes(batch: Real, kv_read_tokens: Real, kv_bytes_per_token: Real, kv_replication: Real) -> Real:
    """Cache bytes that a decode step reads, with replication. [B]"""
    return batch * kv_read_tokens * kv_bytes_per_token * kv_replication
