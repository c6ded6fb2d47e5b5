"""Experts spread over chips: tokens travel to them and back, and one chip's experts see more tokens than another's."""

from __future__ import annotations

import numpy as np

from slicewise.costs.collectives import collective_s
from slicewise.costs.real import Real


def expert_tokens_per_chip(routed_tokens: Real, n_active: Real, expert_ways: Real) -> Real:
    """Tokens that a chip's experts see in a step, on average: B k / ways. []"""
    return routed_tokens * n_active / expert_ways


def fullest_expert_tokens_per_chip(expert_tokens_per_chip: Real, expert_ways: Real) -> Real:
    """Tokens that the busiest chip's experts see, routed evenly at random: m + sqrt(2 m ln(ways)). []

    Valid: an estimate of the largest of so many Poisson counts; real routing is less even.
    """
    return expert_tokens_per_chip + np.sqrt(2 * expert_tokens_per_chip * np.log(expert_ways))


def expert_copies(expert_ways: Real, n_active: Real) -> Real:
    """Chips that hold one of a token's k experts, on average: ways (1 - (1 - 1 / ways)^k). []

    Neglects: that the k are of different places, 1 % for 8 of 256 experts over 8 chips.
    """
    return expert_ways * (1 - (1 - 1 / expert_ways) ** n_active)


def expert_all_to_all_bytes(
    routed_tokens: Real, expert_copies: Real, expert_cuts: Real, d_model: Real, activation_bytes_per_element: Real
) -> Real:
    """Bytes that go to the experts' chips in one layer: a token once to each chip that holds a part of its k. [B]"""
    return routed_tokens * expert_copies * expert_cuts * d_model * activation_bytes_per_element


def expert_all_to_all_s(
    expert_all_to_all_bytes: Real, expert_all_to_all_bytes_per_s: Real, expert_all_to_all_latency_s: Real
) -> Real:
    """Time of one AllToAll to the experts. [s]"""
    return collective_s(expert_all_to_all_bytes, expert_all_to_all_bytes_per_s, expert_all_to_all_latency_s)


def ici_s(
    n_all_gathers: Real,
    all_gather_s: Real,
    n_all_to_alls: Real,
    all_to_all_s: Real,
    n_expert_all_to_alls: Real,
    expert_all_to_all_s: Real,
) -> Real:
    """Time of all collectives of a step: around attention and MLPs, and to the experts and back. [s]"""
    return n_all_gathers * all_gather_s + n_all_to_alls * all_to_all_s + n_expert_all_to_alls * expert_all_to_all_s


def prefill_expert_all_to_all_bytes(
    prompt_tokens: Real,
    data_groups: Real,
    expert_copies: Real,
    expert_cuts: Real,
    d_model: Real,
    activation_bytes_per_element: Real,
) -> Real:
    """Bytes that go to the experts' chips in one layer: every data-parallel group sends a prompt at once. [B]"""
    return prompt_tokens * data_groups * expert_copies * expert_cuts * d_model * activation_bytes_per_element


def prefill_expert_all_to_all_s(
    prefill_expert_all_to_all_bytes: Real, expert_all_to_all_bytes_per_s: Real, expert_all_to_all_latency_s: Real
) -> Real:
    """Time of one AllToAll of the prompt's tokens to the experts. [s]"""
    return collective_s(prefill_expert_all_to_all_bytes, expert_all_to_all_bytes_per_s, expert_all_to_all_latency_s)


def prefill_ici_s(
    n_all_gathers: Real, prefill_all_gather_s: Real, n_expert_all_to_alls: Real, prefill_expert_all_to_all_s: Real
) -> Real:
    """Time of all collectives of a prompt. [s]"""
    return n_all_gathers * prefill_all_gather_s + n_expert_all_to_alls * prefill_expert_all_to_all_s
