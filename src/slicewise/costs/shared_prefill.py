"""Prefill where weights are read and prompts are served by groups of a slice: a prompt's share of the slice's time.

Data-parallel groups and pipeline stages serve several prompts at once; what one takes of the slice is its own time over
the prompts in flight.
"""

from __future__ import annotations

from slicewise.costs.prefill import prefill_overlapped_s as plain_overlapped_s
from slicewise.costs.prefill import prefill_roofline_s as plain_roofline_s
from slicewise.costs.prefill import prefill_serial_s as plain_serial_s
from slicewise.costs.real import Real


def prefill_param_load_s(
    prefill_param_read_bytes: Real, pipeline_stages: Real, n_chips: Real, hbm_bytes_per_s: Real, prompts_in_flight: Real
) -> Real:
    """Time of the slice that reading the weights for a prompt takes, other prompts beside it. [s]"""
    return prefill_param_read_bytes * pipeline_stages / (n_chips * hbm_bytes_per_s * prompts_in_flight)


def prefill_busy_ici_s(prefill_ici_s: Real, prompts_in_flight: Real) -> Real:
    """Time of the slice that a prompt's collectives take, other prompts beside it. [s]"""
    return prefill_ici_s / prompts_in_flight


def prefill_roofline_s(prefill_flops_s: Real, prefill_param_load_s: Real) -> Real:
    """Prefill without a network, a prompt's share of the slice's time. [s]"""
    return plain_roofline_s(prefill_flops_s, prefill_param_load_s)


def prefill_overlapped_s(prefill_flops_s: Real, prefill_param_load_s: Real, prefill_busy_ici_s: Real) -> Real:
    """Prefill whose collectives hide behind the FLOPs as far as they can. [s]"""
    return plain_overlapped_s(prefill_flops_s, prefill_param_load_s, prefill_busy_ici_s)


def prefill_serial_s(prefill_flops_s: Real, prefill_param_load_s: Real, prefill_busy_ici_s: Real) -> Real:
    """Prefill whose collectives hide behind nothing. [s]"""
    return plain_serial_s(prefill_flops_s, prefill_param_load_s, prefill_busy_ici_s)


def prefill_bound_s(prefill_peak_s: Real, prefill_param_load_s: Real, prefill_busy_ici_s: Real) -> Real:
    """Prefill at peak, its collectives hidden as far as they can: no engine undercuts it. [s]"""
    return plain_overlapped_s(prefill_peak_s, prefill_param_load_s, prefill_busy_ici_s)


def ttft_s(prefill_s: Real, prompts_in_flight: Real) -> Real:
    """Time to the first token, unqueued: a prompt passes one group's chips, stage after stage. [s]"""
    return prefill_s * prompts_in_flight


def ttft_split_s(ttft_s: Real, handoff_s: Real) -> Real:
    """Time to the first token where prefill and decode are split, unqueued: prefill, then the hand-off. [s]"""
    return ttft_s + handoff_s
