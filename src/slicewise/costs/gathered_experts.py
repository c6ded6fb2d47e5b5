"""Experts cut over all chips of a stage whose groups work on parts of the batch: all tokens are gathered."""

from __future__ import annotations

from slicewise.costs.collectives import collective_s
from slicewise.costs.real import Real


def expert_gather_bytes(routed_tokens: Real, d_model: Real, activation_bytes_per_element: Real) -> Real:
    """Bytes of the activations of all groups that one AllGather or ReduceScatter around the experts moves. [B]"""
    return routed_tokens * d_model * activation_bytes_per_element


def expert_gather_s(expert_gather_bytes: Real, expert_gather_bytes_per_s: Real, expert_gather_latency_s: Real) -> Real:
    """Time of one AllGather or ReduceScatter over the chips of a stage. [s]"""
    return collective_s(expert_gather_bytes, expert_gather_bytes_per_s, expert_gather_latency_s)


def ici_s(
    n_all_gathers: Real,
    all_gather_s: Real,
    n_all_to_alls: Real,
    all_to_all_s: Real,
    n_expert_gathers: Real,
    expert_gather_s: Real,
) -> Real:
    """Time of all collectives of a step: inside the groups, and over all of them around the experts. [s]"""
    return n_all_gathers * all_gather_s + n_all_to_alls * all_to_all_s + n_expert_gathers * expert_gather_s


def prefill_expert_gather_bytes(
    prompt_tokens: Real, data_groups: Real, d_model: Real, activation_bytes_per_element: Real
) -> Real:
    """Bytes of the groups' prompts, one each, that one collective around the experts moves. [B]"""
    return prompt_tokens * data_groups * d_model * activation_bytes_per_element


def prefill_expert_gather_s(
    prefill_expert_gather_bytes: Real, expert_gather_bytes_per_s: Real, expert_gather_latency_s: Real
) -> Real:
    """Time of one AllGather or ReduceScatter of the groups' prompts. [s]"""
    return collective_s(prefill_expert_gather_bytes, expert_gather_bytes_per_s, expert_gather_latency_s)


def prefill_ici_s(
    n_all_gathers: Real, prefill_all_gather_s: Real, n_expert_gathers: Real, prefill_expert_gather_s: Real
) -> Real:
    """Time of all collectives of a prompt, other groups' prompts beside it. [s]"""
    return n_all_gathers * prefill_all_gather_s + n_expert_gathers * prefill_expert_gather_s
