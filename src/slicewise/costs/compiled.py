"""A decode step on a TPU as its compiler expects the operations, beside the bound's transfers.

XLA:TPU fetches matrices to vector memory ahead of their use, as many bytes of a layer as there is room for, so that
their transfer goes on beside the core's work and the network. These two wait for each other, since a layer cannot
begin before the last one's AllReduce. The cache, and what there is no room for, is streamed: read by the operation that
needs it, so that its own transfer and work overlap, and nothing is fetched meanwhile. With s the share that is fetched:

    step = max(cache transfer, cache work) + (1 - s) max(weights' transfer, matmuls)
           + max(s weights' transfer, s matmuls + small operations + network)

Work is cycles over the clock, of the tables of `spec/compiled.py`. Nothing is fitted to a measurement, and no time is
below the bound's. An element of a matrix that few rows meet takes the cycles in which it gets into the matrix unit;
these, the small operations and the network in sequence are what a roofline lacks.

Sums are over all chips and then shared out evenly, so that they hold for any model: of a mixture of experts the
elements that are read, and the rows that meet them on average.
Neglects: the host, sampling, what collectives take from the core, and kernels of other shapes than XLA's own.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.real import Real
from slicewise.spec.compiled import CompiledOperations

MATMULS_PER_LAYER = 5
"""Queries, keys and values as one, the output, and the MLP's three."""

SUBLANES = 8
"""Rows of a register, which the queries of a KV head lie in."""


def weight_elements_read(
    param_load_s: Real,
    n_chips: Real,
    hbm_bytes_per_s: Real,
    weight_bytes_per_param: Real,
    matmul_params: Real,
    n_active_params: Real,
) -> Real:
    """Elements of matrices that a step reads, over all chips: what is read of the weights, less embedding and norms. []

    Neglects: that the share of matrices is a token's, also where experts are read for others.
    """
    return param_load_s * n_chips * hbm_bytes_per_s / weight_bytes_per_param * matmul_params / n_active_params


def weight_rows(matmul_flops: Real, weight_elements_read: Real) -> Real:
    """Rows that meet an element of a matrix, on average: the batch, or the tokens of an expert. []"""
    return matmul_flops / (2 * weight_elements_read)


def weight_element_cycles(weight_rows: Real, compiled: CompiledOperations) -> Real:
    """Cycles of a matrix's element at so many rows, between and beyond those that were compiled. []"""
    return np.maximum(
        np.interp(weight_rows, compiled.rows, compiled.element_cycles), weight_rows * compiled.last_row_cycles
    )


def matmul_core_s(
    matmul_s: Real,
    weight_elements_read: Real,
    weight_element_cycles: Real,
    n_chips: Real,
    devices_per_chip: Real,
    n_blocks: Real,
    compiled: CompiledOperations,
    clock_hz: Real,
) -> Real:
    """Core's work of all matrices; never below their FLOPs at peak. [s]"""
    elements = weight_elements_read / (n_chips * devices_per_chip)
    fixed = n_blocks * MATMULS_PER_LAYER * compiled.operation_cycles
    return np.maximum(matmul_s, (elements * weight_element_cycles + fixed) / clock_hz)


def kv_elements_read(kv_read_bytes: Real, kv_bytes_per_element: Real) -> Real:
    """Elements of the cache that a step reads, over all chips. []"""
    return kv_read_bytes / kv_bytes_per_element


def kv_element_cycles(attention_flops: Real, kv_elements_read: Real, compiled: CompiledOperations) -> Real:
    """Cycles of a cache's element: as attention takes it in, or as a matrix's at the queries that meet it. []

    Few queries share a KV head; all heads share a latent, which is then a matmul of many rows.
    """
    queries = attention_flops / (2 * np.maximum(kv_elements_read, 1))
    return np.maximum(compiled.kv_element_cycles, weight_element_cycles(queries, compiled))


def attention_core_s(
    attention_flops_s: Real,
    kv_elements_read: Real,
    kv_element_cycles: Real,
    n_chips: Real,
    devices_per_chip: Real,
    clock_hz: Real,
) -> Real:
    """Core's work of scores and weighted values; never below their FLOPs at peak. [s]"""
    elements = kv_elements_read / (n_chips * devices_per_chip)
    return np.maximum(attention_flops_s, elements * kv_element_cycles / clock_hz)


def expected_attention_s(kv_load_s: Real, attention_core_s: Real) -> Real:
    """Time of reading the cache: the transfer, or the core's work. [s]"""
    return np.maximum(kv_load_s, attention_core_s)


def attention_scores(attention_flops: Real, head_dim: Real) -> Real:
    """Scores of a step, over all chips: each has 4 H FLOPs. []"""
    return attention_flops / (4 * head_dim)


def score_cycles(n_heads: Real, n_kv_heads: Real, compiled: CompiledOperations) -> Real:
    """Cycles of a score's softmax; those of few queries of a KV head fill no register. []"""
    return np.where(n_heads < SUBLANES * n_kv_heads, compiled.few_score_cycles, compiled.score_cycles)


def softmax_core_s(
    attention_scores: Real,
    score_cycles: Real,
    n_chips: Real,
    devices_per_chip: Real,
    n_blocks: Real,
    compiled: CompiledOperations,
    clock_hz: Real,
) -> Real:
    """Core's work of the softmax and its scales, while matrices are fetched. [s]"""
    scores = attention_scores / (n_chips * devices_per_chip)
    return (scores * score_cycles + n_blocks * compiled.softmax_cycles) / clock_hz


def write_core_s(
    batch: Real,
    n_kv_heads: Real,
    n_chips: Real,
    devices_per_chip: Real,
    n_blocks: Real,
    compiled: CompiledOperations,
    clock_hz: Real,
) -> Real:
    """Core's work of writing a token of each sequence to the cache. [s]

    Neglects: replicas of the cache, which are written, too.
    """
    rows = batch * n_kv_heads / (n_chips * devices_per_chip)
    return n_blocks * (compiled.write_cycles + rows * compiled.row_cycles) / clock_hz


def layer_core_s(
    all_gather_bytes: Real,
    activation_bytes_per_element: Real,
    n_blocks: Real,
    compiled: CompiledOperations,
    clock_hz: Real,
) -> Real:
    """Core's work of norms, residuals and rotary embedding: each chip has all rows of its group, whole. [s]"""
    elements = all_gather_bytes / activation_bytes_per_element
    return n_blocks * (compiled.layer_cycles + elements * compiled.activation_cycles) / clock_hz


def small_core_s(softmax_core_s: Real, write_core_s: Real, layer_core_s: Real) -> Real:
    """Core's work of all that is no matrix product. [s]"""
    return softmax_core_s + write_core_s + layer_core_s


def fetched_share(
    param_load_s: Real,
    hbm_bytes_per_s: Real,
    n_blocks: Real,
    devices_per_chip: Real,
    compiled: CompiledOperations,
) -> Real:
    """Share of a layer's matrices that is fetched ahead, as far as vector memory has room; matmuls read the rest. []"""
    layer_bytes = param_load_s * hbm_bytes_per_s / (n_blocks * devices_per_chip)
    return np.minimum(1, compiled.fetched_bytes / layer_bytes)


def streamed_weights_s(param_load_s: Real, matmul_core_s: Real, fetched_share: Real) -> Real:
    """Time of matmuls that read HBM themselves: the transfer, or the core's work. [s]"""
    return (1 - fetched_share) * np.maximum(param_load_s, matmul_core_s)


def fetched_weights_s(
    param_load_s: Real, matmul_core_s: Real, small_core_s: Real, ici_s: Real, fetched_share: Real
) -> Real:
    """Time of all else: fetching the other matrices, or their work, small operations and the network meanwhile. [s]"""
    return np.maximum(fetched_share * param_load_s, fetched_share * matmul_core_s + small_core_s + ici_s)


def step_expected_s(
    expected_attention_s: Real,
    streamed_weights_s: Real,
    fetched_weights_s: Real,
    step_ratio: Real,
    step_overlapped_s: Real,
) -> Real:
    """A decode step as its compiler expects it, times what was measured of its like; never below the bound. [s]"""
    return np.maximum((expected_attention_s + streamed_weights_s + fetched_weights_s) * step_ratio, step_overlapped_s)
