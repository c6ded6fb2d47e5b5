"""Prefill as a TPU's compiler expects it, where groups of a slice serve prompts side by side.

As in the bound (`costs/shared_prefill.py`), a prefill's time is its share of the slice's time, other prompts beside it.
"""

from __future__ import annotations

from slicewise.costs.compiled_prefill import prefill_expected_s as plain_expected_s
from slicewise.costs.compiled_prefill import prefill_matmul_core_s as plain_matmul_core_s
from slicewise.costs.compiled_prefill import prefill_small_core_s as plain_small_core_s
from slicewise.costs.compiled_prefill import prefill_waiting_s as plain_waiting_s
from slicewise.costs.compiled_prefill import prefill_weight_elements_read as plain_elements_read
from slicewise.costs.real import Real
from slicewise.spec.compiled import CompiledOperations


def prefill_weight_elements_read(
    prefill_param_load_s: Real,
    n_chips: Real,
    hbm_bytes_per_s: Real,
    weight_bytes_per_param: Real,
    matmul_params: Real,
    n_active_params: Real,
) -> Real:
    """Elements of matrices that a prompt reads, over the chips of its group. []"""
    return plain_elements_read(
        prefill_param_load_s, n_chips, hbm_bytes_per_s, weight_bytes_per_param, matmul_params, n_active_params
    )


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
    prompts_in_flight: Real,
) -> Real:
    """Time of the slice that a prompt's matrices take of the core; never below their FLOPs at peak. [s]"""
    return plain_matmul_core_s(
        prefill_matmul_flops,
        prefill_weight_elements_read,
        prefill_weight_element_cycles,
        flops_per_s,
        n_chips,
        devices_per_chip,
        n_blocks / prompts_in_flight,
        compiled,
        clock_hz,
    )


def prefill_small_core_s(
    prefill_all_gather_bytes: Real,
    activation_bytes_per_element: Real,
    n_blocks: Real,
    compiled: CompiledOperations,
    clock_hz: Real,
    prompts_in_flight: Real,
) -> Real:
    """Time of the slice that norms, residuals, rotary embedding and writing the cache of a prompt take. [s]"""
    return plain_small_core_s(
        prefill_all_gather_bytes, activation_bytes_per_element, n_blocks / prompts_in_flight, compiled, clock_hz
    )


def prefill_waiting_s(
    prefill_param_load_s: Real,
    prefill_matmul_core_s: Real,
    prefill_attention_core_s: Real,
    prefill_small_core_s: Real,
    prefill_busy_ici_s: Real,
) -> Real:
    """What loading the weights takes of the slice's time beyond all that goes on beside it. [s]"""
    return plain_waiting_s(
        prefill_param_load_s, prefill_matmul_core_s, prefill_attention_core_s, prefill_small_core_s, prefill_busy_ici_s
    )


def prefill_expected_s(
    prefill_waiting_s: Real,
    prefill_matmul_core_s: Real,
    prefill_attention_core_s: Real,
    prefill_small_core_s: Real,
    prefill_busy_ici_s: Real,
    prefill_ratio: Real,
    prefill_bound_s: Real,
) -> Real:
    """Prefill as the compiler expects it, a prompt's share of the slice's time, times what was measured. [s]"""
    return plain_expected_s(
        prefill_waiting_s,
        prefill_matmul_core_s,
        prefill_attention_core_s,
        prefill_small_core_s,
        prefill_busy_ici_s,
        prefill_ratio,
        prefill_bound_s,
    )
