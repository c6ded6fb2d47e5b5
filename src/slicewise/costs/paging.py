"""A paged KV cache as engines count it: whole blocks of a chip's pool, tokens, and requests of the longest length.

A pool is bytes on one chip and a block some tokens of every layer that the chip holds, so that a request takes whole
blocks. Covers layers of one kind; `hybrid_paging` has those of several. Does not cover blocks that requests share.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.real import Real


def fraction_pool_bytes(
    memory_fraction: Real, hbm_bytes_per_chip: Real, weight_bytes_per_chip: Real, reserve_bytes_per_chip: Real
) -> Real:
    """Pool of an engine that plans with a share of all memory: what weights and the reserve leave of it. [B]

    The reserve is what activations at the largest batch, buffers outside the framework and, in newer versions of vLLM,
    graphs take. tpu-inference reserves nothing.
    """
    return memory_fraction * hbm_bytes_per_chip - weight_bytes_per_chip - reserve_bytes_per_chip


def static_pool_bytes(memory_fraction: Real, free_bytes_per_chip: Real, weight_bytes_per_chip: Real) -> Real:
    """Pool of an engine whose fraction covers weights and cache alone (SGLang), of what was free before loading. [B]"""
    return memory_fraction * free_bytes_per_chip - weight_bytes_per_chip


def pool_blocks(kv_pool_bytes: Real, kv_bytes_per_token_per_chip: Real, block_tokens: Real) -> Real:
    """Blocks of a pool. []"""
    return kv_pool_bytes // (kv_bytes_per_token_per_chip * block_tokens)


def pool_tokens(pool_blocks: Real, block_tokens: Real) -> Real:
    """Tokens of a pool. []"""
    return pool_blocks * block_tokens


def request_blocks(max_model_len: Real, block_tokens: Real) -> Real:
    """Blocks of one request of the longest length, where every token is kept. []"""
    return np.ceil(max_model_len / block_tokens)


def request_bytes(request_blocks: Real, block_tokens: Real, kv_bytes_per_token_per_chip: Real) -> Real:
    """Bytes on a chip that one request of the longest length needs. [B]"""
    return request_blocks * block_tokens * kv_bytes_per_token_per_chip


def max_concurrency(pool_blocks: Real, request_blocks: Real) -> Real:
    """Requests of the longest length that a pool holds, in fractions. []

    A bound of memory: an engine's limit on running sequences may be lower.
    """
    return pool_blocks / request_blocks


def sliding_request_blocks(
    max_model_len: Real,
    attention_window: Real,
    max_num_batched_tokens: Real,
    batches_in_flight: Real,
    block_tokens: Real,
) -> Real:
    """Blocks of one request in a layer whose window slides. []

    ceil(min(w - 1 + n T, L) / block) + 1: a query sees w - 1 earlier tokens; n batches of T tokens are written before
    the first one frees what it has passed (n = 2 where the next batch is scheduled while one runs); the oldest token
    may lie anywhere in its block.
    """
    held_tokens = np.minimum(attention_window - 1 + batches_in_flight * max_num_batched_tokens, max_model_len)
    return np.ceil(held_tokens / block_tokens) + 1


def chunked_request_blocks(
    max_model_len: Real,
    attention_window: Real,
    max_num_batched_tokens: Real,
    batches_in_flight: Real,
    block_tokens: Real,
) -> Real:
    """Blocks of one request in a layer that attends within chunks, which begin with a block. []

    ceil(min(w + n T, L) / block).
    """
    held_tokens = np.minimum(attention_window + batches_in_flight * max_num_batched_tokens, max_model_len)
    return np.ceil(held_tokens / block_tokens)


def materialised_bytes_per_token(
    n_layers: Real, heads_per_chip: Real, padded_head_dim: Real, kv_bytes_per_element: Real
) -> Real:
    """Bytes of one token on a chip where latent attention is cached as keys and values of every head. [B]

    As engines did before they kept the latent; both are padded to the width that their kernels have.
    """
    return 2 * n_layers * heads_per_chip * padded_head_dim * kv_bytes_per_element


def full_pool_tokens(
    kv_pool_bytes: Real,
    full_bytes_per_token_per_chip: Real,
    window_bytes_per_token_per_chip: Real,
    window_pool_share: Real,
) -> Real:
    """Tokens of the pool of full attention, where layers with a window have a pool of their own (SGLang). []

    The second pool has a share of the first one's tokens (0.8 unless set); together they fill the memory.
    """
    both = full_bytes_per_token_per_chip + window_pool_share * window_bytes_per_token_per_chip
    return kv_pool_bytes // both


def window_pool_tokens(full_pool_tokens: Real, window_pool_share: Real) -> Real:
    """Tokens of the pool of layers with a window, beside that of full attention (SGLang). []"""
    return np.floor(full_pool_tokens * window_pool_share)
