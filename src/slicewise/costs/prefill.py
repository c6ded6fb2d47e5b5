"""Prefill of one prompt. Every time is a bound at the given FLOPs utilisation (`mfu`).

Neglects: the write of the cache, the read of activations, and any queue before the prompt.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.collectives import collective_s
from slicewise.costs.decode import ALL_GATHERS_PER_LAYER
from slicewise.costs.kv_cache import window_tokens
from slicewise.costs.real import Real


def prefill_matmul_flops(matmul_params: Real, head_params: Real, prompt_tokens: Real) -> Real:
    """FLOPs of the matrices over the prompt, the LM head for the last token only. [FLOP]"""
    return 2 * (matmul_params - head_params) * prompt_tokens + 2 * head_params


def prefill_window_tokens(prompt_tokens: Real, attention_window: Real) -> Real:
    """Tokens w that the prompt's last token attends to. []"""
    return window_tokens(prompt_tokens, attention_window)


def prefill_attended_tokens(prompt_tokens: Real, prefill_window_tokens: Real) -> Real:
    """Tokens attended to, summed over the prompt: T w - w^2 / 2, which is T^2 / 2 without a window. []"""
    return prompt_tokens * prefill_window_tokens - prefill_window_tokens**2 / 2


def prefill_attention_flops(n_heads: Real, head_dim: Real, n_layers: Real, prefill_attended_tokens: Real) -> Real:
    """FLOPs of causal attention over the prompt: 4 N H L a token attended to, 2 N H L T^2 in all. [FLOP]"""
    return 4 * n_heads * head_dim * n_layers * prefill_attended_tokens


def prefill_flops(prefill_matmul_flops: Real, prefill_attention_flops: Real) -> Real:
    """FLOPs of one prompt. [FLOP]"""
    return prefill_matmul_flops + prefill_attention_flops


def prefill_flops_book(n_params: Real, prompt_tokens: Real) -> Real:
    """FLOPs of one prompt, as the book counts them: 2 P T, without attention. [FLOP]

    Neglects: attention, 7.7 % of LLaMA 3-70B at 8,192 tokens.
    Source: scaling-book-applied-inference
    """
    return 2 * n_params * prompt_tokens


def prefill_flops_s(prefill_flops: Real, n_chips: Real, flops_per_s: Real, mfu: Real) -> Real:
    """Time of the prompt's FLOPs at the given utilisation. [s]

    Source: scaling-book-applied-inference
    """
    return prefill_flops / (n_chips * flops_per_s * mfu)


def prefill_all_gather_bytes(prompt_tokens: Real, d_model: Real, activation_bytes_per_element: Real) -> Real:
    """Bytes of activations that one AllGather or ReduceScatter moves: b_a T D. [B]"""
    return prompt_tokens * d_model * activation_bytes_per_element


def prefill_all_gather_s(
    prefill_all_gather_bytes: Real, all_gather_bytes_per_s: Real, all_gather_latency_s: Real
) -> Real:
    """Time of one AllGather or ReduceScatter of the prompt's activations. [s]"""
    return collective_s(prefill_all_gather_bytes, all_gather_bytes_per_s, all_gather_latency_s)


def prefill_ici_s(n_layers: Real, prefill_all_gather_s: Real) -> Real:
    """Time of all collectives of a prompt, 4 a layer. [s]"""
    return ALL_GATHERS_PER_LAYER * n_layers * prefill_all_gather_s


def prefill_roofline_s(prefill_flops_s: Real, param_load_s: Real) -> Real:
    """Prefill without a network. [s]"""
    return np.maximum(prefill_flops_s, param_load_s)


def prefill_overlapped_s(prefill_flops_s: Real, param_load_s: Real, prefill_ici_s: Real) -> Real:
    """Prefill whose collectives hide behind the FLOPs as far as they can. [s]"""
    return np.maximum(np.maximum(prefill_flops_s, param_load_s), prefill_ici_s)


def prefill_serial_s(prefill_flops_s: Real, param_load_s: Real, prefill_ici_s: Real) -> Real:
    """Prefill whose collectives hide behind nothing. [s]"""
    return np.maximum(prefill_flops_s, param_load_s) + prefill_ici_s


def prefill_tokens_per_s_per_chip(prompt_tokens: Real, prefill_s: Real, n_chips: Real) -> Real:
    """Prompt tokens taken in a second, per chip. [1/s]"""
    return prompt_tokens / (prefill_s * n_chips)
