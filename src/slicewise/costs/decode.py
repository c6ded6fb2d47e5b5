"""One decode step, with 1D weight-stationary model parallelism over the whole slice. Every time is a bound.

Neglects: kernel launches, norms, sampling, the host, imperfect bandwidth. Published steps took 1.1 to 6.3
times the roofline.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.collectives import collective_s
from slicewise.costs.real import Real

ALL_GATHERS_PER_LAYER = 4
"""An AllGather and a ReduceScatter around attention, and the same around the MLP."""

ALL_TO_ALLS_PER_LAYER = 2
"""Queries from head to batch shards, and the attention's output back."""


def param_load_s(weight_bytes: Real, n_chips: Real, hbm_bytes_per_s: Real) -> Real:
    """Time to read every weight once. [s]

    Source: scaling-book-inference
    """
    return weight_bytes / (n_chips * hbm_bytes_per_s)


def kv_load_s(kv_read_bytes: Real, n_chips: Real, hbm_bytes_per_s: Real) -> Real:
    """Time to read the batch's KV cache once. [s]

    Source: scaling-book-inference
    """
    return kv_read_bytes / (n_chips * hbm_bytes_per_s)


def matmul_flops(batch: Real, matmul_params: Real) -> Real:
    """FLOPs of the matrices: a multiply and an add per parameter and sequence, whatever its bytes. [FLOP]"""
    return 2 * batch * matmul_params


def matmul_s(matmul_flops: Real, n_chips: Real, flops_per_s: Real) -> Real:
    """Time of the matrices' FLOPs at peak. [s]

    Source: scaling-book-inference
    """
    return matmul_flops / (n_chips * flops_per_s)


def attention_flops(batch: Real, kv_read_tokens: Real, n_heads: Real, head_dim: Real, n_layers: Real) -> Real:
    """FLOPs of scores and weighted values: 4 B S N H L. [FLOP]

    Source: scaling-book-inference
    """
    return 4 * batch * kv_read_tokens * n_heads * head_dim * n_layers


def attention_flops_s(attention_flops: Real, n_chips: Real, flops_per_s: Real) -> Real:
    """Time of attention's FLOPs at peak. [s]"""
    return attention_flops / (n_chips * flops_per_s)


def attention_s(kv_load_s: Real, attention_flops_s: Real) -> Real:
    """Time of attention: reading the cache, or its FLOPs. [s]"""
    return np.maximum(kv_load_s, attention_flops_s)


def all_gather_bytes(batch: Real, d_model: Real, activation_bytes_per_element: Real) -> Real:
    """Bytes of the activations that an AllGather or ReduceScatter moves: b_a B D. [B]"""
    return batch * d_model * activation_bytes_per_element


def all_gather_s(all_gather_bytes: Real, all_gather_bytes_per_s: Real, all_gather_latency_s: Real) -> Real:
    """Time of one AllGather or ReduceScatter. [s]"""
    return collective_s(all_gather_bytes, all_gather_bytes_per_s, all_gather_latency_s)


def all_to_all_bytes(
    batch: Real, n_heads: Real, head_dim: Real, kv_head_shards: Real, activation_bytes_per_element: Real
) -> Real:
    """Bytes of queries that one group of batch shards exchanges: b_a B N H / Y. [B]

    Source: scaling-book-inference
    """
    return batch * n_heads * head_dim * activation_bytes_per_element / kv_head_shards


def all_to_all_s(all_to_all_bytes: Real, all_to_all_bytes_per_s: Real, all_to_all_latency_s: Real) -> Real:
    """Time of one AllToAll. [s]"""
    return collective_s(all_to_all_bytes, all_to_all_bytes_per_s, all_to_all_latency_s)


def ici_s(n_layers: Real, all_gather_s: Real, all_to_all_s: Real) -> Real:
    """Time of all collectives of a step: 4 AllGathers or ReduceScatters and 2 AllToAlls a layer. [s]"""
    return n_layers * (ALL_GATHERS_PER_LAYER * all_gather_s + ALL_TO_ALLS_PER_LAYER * all_to_all_s)


def step_roofline_s(attention_s: Real, matmul_s: Real, param_load_s: Real) -> Real:
    """A decode step without a network: the book's general formula. [s]

    Source: scaling-book-inference
    """
    return attention_s + np.maximum(matmul_s, param_load_s)


def step_overlapped_s(attention_s: Real, matmul_s: Real, param_load_s: Real, ici_s: Real) -> Real:
    """A decode step whose collectives hide behind the matmuls as far as they can. [s]"""
    return attention_s + shared_s(param_load_s, matmul_s, ici_s)


def step_serial_s(attention_s: Real, matmul_s: Real, param_load_s: Real, ici_s: Real) -> Real:
    """A decode step whose collectives hide behind nothing. [s]"""
    return attention_s + np.maximum(matmul_s, param_load_s) + ici_s


def shared_s(param_load_s: Real, matmul_s: Real, ici_s: Real) -> Real:
    """What a batch shares: until it grows, a further sequence costs only its cache. [s]"""
    return np.maximum(np.maximum(param_load_s, matmul_s), ici_s)


def tokens_per_s(batch: Real, step_s: Real) -> Real:
    """Tokens that the slice generates a second, while it does nothing but decode. [1/s]"""
    return batch / step_s


def tokens_per_s_per_chip(tokens_per_s: Real, n_chips: Real) -> Real:
    """Tokens generated a second, per chip. [1/s]"""
    return tokens_per_s / n_chips


def requests_per_s_per_chip(tokens_per_s_per_chip: Real, output_tokens: Real) -> Real:
    """Requests finished a second, per chip, while it does nothing but decode. [1/s]"""
    return tokens_per_s_per_chip / output_tokens
