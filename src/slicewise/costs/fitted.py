"""Times that are expected of an engine: the bound's terms at the rates that are reached, and what the bound leaves out.

Every term of the bound is slowed down by a fitted share, the terms add up instead of hiding behind each other, and
layers and tokens cost something of their own. The shares and costs are fitted to published measurements of an engine
on a family of chips; the formulas are the same for every chip. An expected time is never below the bound.

Neglects: the host, sampling, uneven routing of experts, and what is particular to one kernel.
"""

from __future__ import annotations

from slicewise.costs.real import Real


def expected_param_load_s(param_load_s: Real, weight_read_efficiency: Real) -> Real:
    """Time to read every weight once, at the bandwidth that is reached. [s]"""
    return param_load_s / weight_read_efficiency


def expected_kv_load_s(kv_load_s: Real, kv_read_efficiency: Real) -> Real:
    """Time to read the batch's KV cache once, at the bandwidth that is reached. [s]"""
    return kv_load_s / kv_read_efficiency


def expected_flops_s(matmul_s: Real, attention_flops_s: Real, matmul_efficiency: Real) -> Real:
    """Time that the FLOPs of a step add, at the rate that is reached; few rows hide behind reading the weights. [s]"""
    return (matmul_s + attention_flops_s) / matmul_efficiency


def expected_ici_s(ici_s: Real, network_efficiency: Real) -> Real:
    """Time of all collectives of a step, at the rate that is reached. [s]"""
    return ici_s / network_efficiency


def overhead_s(n_blocks: Real, layer_s: Real, sync_s: Real) -> Real:
    """Launches, norms and, among several chips, waiting for each other, a layer after the other. [s]"""
    return n_blocks * (layer_s + sync_s)


def tokens_s(
    batch: Real,
    n_blocks: Real,
    d_model: Real,
    activation_bytes_per_element: Real,
    token_passes: Real,
    hbm_bytes_per_s: Real,
) -> Real:
    """What each sequence costs in every layer, told in passes of its activations through HBM: b_a B D L. [s]"""
    return batch * n_blocks * d_model * activation_bytes_per_element * token_passes / hbm_bytes_per_s


def step_expected_s(
    expected_param_load_s: Real,
    expected_kv_load_s: Real,
    expected_flops_s: Real,
    expected_ici_s: Real,
    overhead_s: Real,
    tokens_s: Real,
) -> Real:
    """A decode step as an engine is expected to run it. [s]"""
    return expected_param_load_s + expected_kv_load_s + expected_flops_s + expected_ici_s + overhead_s + tokens_s


def expected_prefill_flops_s(prefill_peak_s: Real, prefill_efficiency: Real) -> Real:
    """Time of the prompt's FLOPs at the rate that is reached. [s]"""
    return prefill_peak_s / prefill_efficiency


def expected_prefill_param_load_s(param_load_s: Real, weight_read_efficiency: Real) -> Real:
    """Time to read every weight once for a prompt, at the bandwidth that is reached. [s]"""
    return param_load_s / weight_read_efficiency


def prefill_overhead_s(overhead_s: Real) -> Real:
    """Launches, norms and waiting, which a prompt meets as a step does. [s]"""
    return overhead_s


def expected_prefill_ici_s(prefill_ici_s: Real, network_efficiency: Real) -> Real:
    """Time of all collectives of a prompt, at the rate that is reached. [s]"""
    return prefill_ici_s / network_efficiency


def prefill_tokens_s(
    prompt_tokens: Real,
    n_blocks: Real,
    d_model: Real,
    activation_bytes_per_element: Real,
    prefill_token_passes: Real,
    hbm_bytes_per_s: Real,
) -> Real:
    """What each prompt token costs in every layer, told in passes of its activations through HBM: b_a T D L. [s]"""
    return prompt_tokens * n_blocks * d_model * activation_bytes_per_element * prefill_token_passes / hbm_bytes_per_s


def prefill_expected_s(
    expected_prefill_flops_s: Real,
    expected_prefill_param_load_s: Real,
    expected_prefill_ici_s: Real,
    prefill_overhead_s: Real,
    prefill_tokens_s: Real,
) -> Real:
    """Prefill of one prompt as an engine is expected to run it. [s]"""
    waits_s = expected_prefill_ici_s + prefill_overhead_s + prefill_tokens_s
    return expected_prefill_flops_s + expected_prefill_param_load_s + waits_s
