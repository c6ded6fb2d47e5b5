"""Expected times where ranks share the work: stages work in turn on a part of the batch, and prompts pass side by side.

As in the bound, a prefill's time is its share of the slice's time, the prompts in flight beside it.
"""

from __future__ import annotations

from slicewise.costs.real import Real


def tokens_s(
    step_batch: Real,
    batch_groups: Real,
    n_blocks: Real,
    d_model: Real,
    activation_bytes_per_element: Real,
    token_passes: Real,
    hbm_bytes_per_s: Real,
) -> Real:
    """What each sequence of a group costs in every layer, told in passes of its activations through HBM. [s]"""
    passed_bytes = step_batch / batch_groups * n_blocks * d_model * activation_bytes_per_element
    return passed_bytes * token_passes / hbm_bytes_per_s


def expected_prefill_param_load_s(prefill_param_load_s: Real, weight_read_efficiency: Real) -> Real:
    """Time of the slice that reading the weights for a prompt takes, at the bandwidth that is reached. [s]"""
    return prefill_param_load_s / weight_read_efficiency


def expected_prefill_ici_s(prefill_busy_ici_s: Real, network_efficiency: Real) -> Real:
    """Time of the slice that a prompt's collectives take, at the rate that is reached. [s]"""
    return prefill_busy_ici_s / network_efficiency


def prefill_tokens_s(
    prompt_tokens: Real,
    n_blocks: Real,
    d_model: Real,
    activation_bytes_per_element: Real,
    prefill_token_passes: Real,
    hbm_bytes_per_s: Real,
    prompts_in_flight: Real,
) -> Real:
    """What each prompt token costs in every layer, other prompts beside it: passes of activations through HBM. [s]"""
    passed_bytes = prompt_tokens * n_blocks * d_model * activation_bytes_per_element
    return passed_bytes * prefill_token_passes / (hbm_bytes_per_s * prompts_in_flight)


def prefill_overhead_s(overhead_s: Real, prompts_in_flight: Real) -> Real:
    """Launches, norms and waiting of a prompt, others beside it. [s]"""
    return overhead_s / prompts_in_flight
