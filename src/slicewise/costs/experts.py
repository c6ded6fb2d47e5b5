"""Mixtures of experts: which of them a batch touches, what reading and reaching them costs.

Neglects: routing that is not even. Real routers touch fewer experts than even ones, and load some far more.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.limits import critical_batch as limits_critical_batch
from slicewise.costs.limits import gate_matmul_hbm_s as limits_gate_hbm_s
from slicewise.costs.limits import model_parallel_limit_hbm_bound as limits_hbm_bound
from slicewise.costs.real import Real
from slicewise.spec.held import ExpertGroup


def touched_share(routed_tokens: Real, n_active: Real, n_experts: Real) -> Real:
    """Share of a layer's experts that tokens touch, routed evenly: 1 - (1 - k / E)^B. []

    Source: scaling-book-inference
    """
    return 1 - (1 - n_active / n_experts) ** routed_tokens


def experts_touched(routed_tokens: Real, n_active: Real, n_experts: Real) -> Real:
    """Experts of a layer that a batch touches, of E: E (1 - (1 - k / E)^B). []"""
    return n_experts * touched_share(routed_tokens, n_active, n_experts)


def d_ff_read(d_ff: Real, experts_touched: Real, n_active: Real, expert_d_ff: Real) -> Real:
    """Width of the feed-forward that a batch reads: that of a token, and the experts that other tokens touch. []"""
    return d_ff + (experts_touched - n_active) * expert_d_ff


def model_parallel_limit_hbm_bound(
    d_ff_read: Real,
    all_gather_bytes_per_s: Real,
    hbm_bytes_per_s: Real,
    weight_bytes_per_param: Real,
    activation_bytes_per_element: Real,
    batch: Real,
) -> Real:
    """Ways of model parallelism beyond which the network binds, where HBM binds otherwise: F b_w W_ici / (b_a W B). []

    F is the width that the batch reads.
    Source: scaling-book-inference
    """
    return limits_hbm_bound(
        d_ff_read, all_gather_bytes_per_s, hbm_bytes_per_s, weight_bytes_per_param, activation_bytes_per_element, batch
    )


def gate_matmul_hbm_s(
    d_model: Real, d_ff_read: Real, weight_bytes_per_param: Real, n_chips: Real, hbm_bytes_per_s: Real
) -> Real:
    """Time to read the gate matrices that the batch touches. [s]

    Source: scaling-book-applied-inference
    """
    return limits_gate_hbm_s(d_model, d_ff_read, weight_bytes_per_param, n_chips, hbm_bytes_per_s)


def routed_tokens(batch: Real, pipeline_stages: Real) -> Real:
    """Tokens that meet a layer's experts at once, of the stage that works on the largest part of the batch. []"""
    return np.ceil(batch / pipeline_stages)


def expert_bytes(expert_groups: tuple[ExpertGroup, ...]) -> float:
    """Bytes of all routed experts. [B]"""
    return sum(group.n_bytes for group in expert_groups)


def touched_expert_bytes(expert_groups: tuple[ExpertGroup, ...], routed_tokens: Real) -> Real:
    """Bytes of the experts that a batch touches. [B]"""
    return sum(group.n_bytes * touched_share(routed_tokens, group.n_active, group.n_experts) for group in expert_groups)


def param_read_bytes(weight_bytes: Real, idle_bytes: Real, expert_bytes: Real, touched_expert_bytes: Real) -> Real:
    """Bytes of weights that a decode step reads: all but idle towers and experts that no token touches. [B]"""
    return weight_bytes - idle_bytes - expert_bytes + touched_expert_bytes


def critical_batch(
    flops_per_s: Real,
    hbm_bytes_per_s: Real,
    weight_bytes_per_param: Real,
    experts_per_active: Real,
    pipeline_stages: Real,
) -> Real:
    """Batch from which experts' matmuls are compute bound: C / W * b_w / 2, times E / k: one sees B k / E tokens. []

    Pipeline stages work on a part of the batch each, and multiply it.
    Source: scaling-book-inference
    """
    return (
        limits_critical_batch(flops_per_s, hbm_bytes_per_s, weight_bytes_per_param)
        * experts_per_active
        * pipeline_stages
    )


def experts_per_active(n_experts: Real, n_active: Real) -> Real:
    """Experts over those that a token is sent to: E / k. []"""
    return n_experts / n_active


def tokens_per_expert(routed_tokens: Real, experts_per_active: Real) -> Real:
    """Tokens that an expert sees in a step, on average: B k / E. []"""
    return routed_tokens / experts_per_active


def prefill_flops_book(n_active_params: Real, prompt_tokens: Real) -> Real:
    """FLOPs of one prompt, as the book counts them: 2 T of the parameters that a token uses, without attention. [FLOP]

    Source: scaling-book-inference
    """
    return 2 * n_active_params * prompt_tokens


def prefill_param_read_bytes(
    weight_bytes: Real,
    idle_bytes: Real,
    expert_bytes: Real,
    expert_groups: tuple[ExpertGroup, ...],
    prompt_tokens: Real,
) -> Real:
    """Bytes of weights that the prefill of one prompt reads. [B]"""
    return (
        weight_bytes
        - idle_bytes
        - expert_bytes
        + sum(group.n_bytes * touched_share(prompt_tokens, group.n_active, group.n_experts) for group in expert_groups)
    )
