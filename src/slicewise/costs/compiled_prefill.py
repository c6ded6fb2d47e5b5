"""Prefill of one prompt on a TPU as its compiler expects the operations; see `costs/compiled.py` for a decode step.

    prefill = max(weights' transfer, matmuls + attention + small operations + network)

Attention is that of one block of queries, whose scores stay in vector memory, as those of all blocks do in a kernel.
XLA itself writes the scores of longer prompts to HBM, and takes about twice as long.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.compiled import MATMULS_PER_LAYER
from slicewise.costs.compiled import weight_element_cycles as element_cycles
from slicewise.costs.compiled import weight_elements_read as elements_read
from slicewise.costs.real import Real
from slicewise.spec.compiled import CompiledOperations


def prefill_weight_elements_read(
    param_load_s: Real,
    n_chips: Real,
    hbm_bytes_per_s: Real,
    weight_bytes_per_param: Real,
    matmul_params: Real,
    n_active_params: Real,
) -> Real:
    """Elements of matrices that a prompt reads, over all chips. []"""
    return elements_read(param_load_s, n_chips, hbm_bytes_per_s, weight_bytes_per_param, matmul_params, n_active_params)


def prefill_weight_element_cycles(
    prefill_matmul_flops: Real, prefill_weight_elements_read: Real, compiled: CompiledOperations
) -> Real:
    """Cycles of a matrix's element at the rows that meet it: the prompt, or an expert's tokens of it. []"""
    return element_cycles(prefill_matmul_flops / (2 * prefill_weight_elements_read), compiled)


def prefill_matmul_core_s(
    prefill_matmul_flops: Real,
    prefill_weight_elements_read: Real,
    prefill_weight_element_cycles: Real,
    flops_per_s: Real,
    n_chips: Real,
    devices_per_chip: Real,
    n_blocks: Real,
    compiled: CompiledOperations,
    clock_hz: Real,
) -> Real:
    """Core's work of all matrices over the prompt; never below their FLOPs at peak. [s]"""
    elements = prefill_weight_elements_read / (n_chips * devices_per_chip)
    fixed = n_blocks * MATMULS_PER_LAYER * compiled.operation_cycles
    return np.maximum(
        prefill_matmul_flops / (n_chips * flops_per_s), (elements * prefill_weight_element_cycles + fixed) / clock_hz
    )


def prefill_attention_core_s(
    prefill_attention_flops: Real,
    flops_per_s: Real,
    head_dim: Real,
    n_chips: Real,
    devices_per_chip: Real,
    compiled: CompiledOperations,
    clock_hz: Real,
) -> Real:
    """Core's work of causal attention over the prompt, 4 H FLOPs a score; never below its FLOPs at peak. [s]"""
    scores = prefill_attention_flops / (4 * head_dim * n_chips * devices_per_chip)
    return np.maximum(
        prefill_attention_flops / (n_chips * flops_per_s), scores * compiled.prefill_score_cycles / clock_hz
    )


def prefill_small_core_s(
    prefill_all_gather_bytes: Real,
    activation_bytes_per_element: Real,
    n_blocks: Real,
    compiled: CompiledOperations,
    clock_hz: Real,
) -> Real:
    """Core's work of norms, residuals, rotary embedding and writing the cache: each chip has all tokens, whole. [s]"""
    elements = prefill_all_gather_bytes / activation_bytes_per_element
    return n_blocks * elements * compiled.prefill_activation_cycles / clock_hz


def prefill_waiting_s(
    param_load_s: Real,
    prefill_matmul_core_s: Real,
    prefill_attention_core_s: Real,
    prefill_small_core_s: Real,
    prefill_ici_s: Real,
) -> Real:
    """What loading the weights takes beyond all that goes on beside it. [s]"""
    core = prefill_matmul_core_s + prefill_attention_core_s + prefill_small_core_s
    return np.maximum(param_load_s - core - prefill_ici_s, 0)


def prefill_expected_s(
    prefill_waiting_s: Real,
    prefill_matmul_core_s: Real,
    prefill_attention_core_s: Real,
    prefill_small_core_s: Real,
    prefill_ici_s: Real,
    prefill_ratio: Real,
    prefill_bound_s: Real,
) -> Real:
    """Prefill as the compiler expects it, times what was measured of its like; never below the bound. [s]"""
    core = prefill_matmul_core_s + prefill_attention_core_s + prefill_small_core_s
    return np.maximum((prefill_waiting_s + core + prefill_ici_s) * prefill_ratio, prefill_bound_s)
