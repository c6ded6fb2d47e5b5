"""The cache of a model whose layers keep different things: windows, latents, index keys, recurrent states.

Each kind of cache holds `elements_per_token` in the dtype of the cache and `other_bytes_per_token` in a format of its
own, for at most `window` tokens, and `state_bytes` whatever the length. `copies` is what the chips hold together over
one copy: replication over ranks, and padding. A decode step reads at most `read_tokens` of each.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.kv_cache import window_tokens
from slicewise.costs.memory import HALF_BYTE
from slicewise.costs.real import Real
from slicewise.spec.arrays import Cache
from slicewise.spec.held import Segment


def kv_other_bytes_per_token(caches: tuple[Cache, ...]) -> float:
    """Bytes of one token that are kept in a format of their own, such as index keys with their scale. [B]"""
    return sum(cache.n_layers * cache.other_bytes_per_token for cache in caches)


def kv_bytes_per_token(kv_elements_per_token: Real, kv_bytes_per_element: Real, kv_other_bytes_per_token: Real) -> Real:
    """Cache bytes of one token of one sequence, over all layers, while no window is full. [B]"""
    return kv_elements_per_token * kv_bytes_per_element + kv_other_bytes_per_token


def kv_growth_bytes_per_token(
    caches: tuple[Cache, ...], capacity_context_tokens: Real, kv_bytes_per_element: Real
) -> Real:
    """Cache bytes that one more token adds at this length: layers whose window is full add none. [B]"""
    return sum(
        cache.n_layers
        * (cache.elements_per_token * kv_bytes_per_element + cache.other_bytes_per_token)
        * np.where(capacity_context_tokens < cache.window, 1.0, 0.0)
        for cache in caches
    )


def kv_state_bytes(caches: tuple[Cache, ...]) -> float:
    """Bytes of one sequence that do not grow with its length: recurrent states. [B]"""
    return sum(cache.n_layers * cache.state_bytes for cache in caches)


def cache_bytes(cache: Cache, tokens: Real, kv_bytes_per_element: Real) -> Real:
    """Bytes of one kind of cache over its layers, of one sequence of so many tokens, once. [B]"""
    return cache.n_layers * (
        (cache.elements_per_token * kv_bytes_per_element + cache.other_bytes_per_token)
        * np.minimum(tokens, cache.window)
        + cache.state_bytes
    )


def kv_bytes_per_sequence(caches: tuple[Cache, ...], capacity_context_tokens: Real, kv_bytes_per_element: Real) -> Real:
    """Bytes that one sequence at its longest takes on the chips together, copies on several ranks included. [B]"""
    return sum(cache.copies * cache_bytes(cache, capacity_context_tokens, kv_bytes_per_element) for cache in caches)


def kv_copies(kv_bytes_per_sequence: Real, kv_one_copy_bytes: Real) -> Real:
    """Copies of a sequence's cache on the chips together: ranks beyond the heads hold their own. []"""
    return kv_bytes_per_sequence / kv_one_copy_bytes


def kv_one_copy_bytes(caches: tuple[Cache, ...], capacity_context_tokens: Real, kv_bytes_per_element: Real) -> Real:
    """Bytes of one sequence at its longest, each element once. [B]"""
    return sum(cache_bytes(cache, capacity_context_tokens, kv_bytes_per_element) for cache in caches)


def kv_read_bytes_per_sequence(caches: tuple[Cache, ...], context_tokens: Real, kv_bytes_per_element: Real) -> Real:
    """Bytes of one sequence that a decode step reads, copies included. [B]

    Sparse attention reads the tokens that its indexer chose, and every index key. A state is read, and written back.
    """
    return sum(
        cache.n_layers
        * cache.copies
        * (
            (cache.read_elements_per_token * kv_bytes_per_element + cache.other_bytes_per_token)
            * np.minimum(context_tokens, cache.reach)
            + 2 * cache.state_bytes
        )
        for cache in caches
    )


def kv_read_bytes(batch: Real, kv_read_bytes_per_sequence: Real, kv_replication: Real) -> Real:
    """Cache bytes that a decode step reads, on the fullest chip's account. [B]"""
    return batch * kv_read_bytes_per_sequence * kv_replication


def attention_flops(batch: Real, caches: tuple[Cache, ...], context_tokens: Real) -> Real:
    """FLOPs of scores, weighted values and recurrent states of a decode step. [FLOP]"""
    return batch * sum(
        cache.n_layers * (cache.decode_flops_per_token * np.minimum(context_tokens, cache.reach) + cache.state_flops)
        for cache in caches
    )


def all_to_all_bytes(
    batch: Real, query_elements: Real, kv_head_shards: Real, activation_bytes_per_element: Real
) -> Real:
    """Bytes of queries that one group of batch shards exchanges, on average over the layers that attend. [B]

    Source: scaling-book-inference
    """
    return batch * query_elements * activation_bytes_per_element / kv_head_shards


def attended_tokens(prompt_tokens: Real, reach: Real) -> Real:
    """Tokens attended to, summed over a prompt: T w - w^2 / 2 with w = min(T, reach). []"""
    return prompt_tokens * window_tokens(prompt_tokens, reach) - window_tokens(prompt_tokens, reach) ** 2 / 2


def prefill_attention_flops(caches: tuple[Cache, ...], prompt_tokens: Real) -> Real:
    """FLOPs of causal attention and recurrent states over the prompt. [FLOP]"""
    return sum(
        cache.n_layers
        * (
            cache.prefill_flops_per_token * attended_tokens(prompt_tokens, cache.reach)
            + cache.state_flops * prompt_tokens
        )
        for cache in caches
    )


def handoff_bytes(caches: tuple[Cache, ...], prompt_tokens: Real, kv_bytes_per_element: Real) -> Real:
    """Bytes of the prompt's cache that go from prefill to decode, one copy. [B]"""
    return sum(cache_bytes(cache, prompt_tokens, kv_bytes_per_element) for cache in caches)


def max_context_tokens(
    kv_budget_bytes: Real,
    activation_bytes: Real,
    batch: Real,
    kv_replication: Real,
    kv_segments: tuple[Segment, ...],
    kv_most_bytes: Real,
) -> Real:
    """Longest context at which the batch fits; unlimited where every window is full first. []

    A sequence's bytes rise with its length along straight segments, ever flatter: the longest of the lengths at which
    each segment reaches the room is the answer.
    """
    room = (kv_budget_bytes + HALF_BYTE - activation_bytes) / (batch * kv_replication)
    ends = [np.asarray((room - part.fixed_bytes) / part.bytes_per_token) for part in kv_segments]
    tokens = np.max(ends, axis=0, initial=0.0)
    return np.where(room >= kv_most_bytes, np.inf, np.floor(tokens))
