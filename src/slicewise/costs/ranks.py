"""Weights and collectives under tensor, pipeline, data and expert parallelism, where ranks hold unequal shares.

A slice holds what its fullest chip holds, times its chips. Neglects: the hand-over between pipeline stages.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.layered_cache import attention_flops as layered_attention_flops
from slicewise.costs.limits import critical_batch as limits_critical_batch
from slicewise.costs.limits import gate_matmul_hbm_s as limits_gate_hbm_s
from slicewise.costs.real import Real
from slicewise.spec.arrays import Cache
from slicewise.spec.ranks import HeldTensor


def weight_bytes_per_chip(held_weights: tuple[HeldTensor, ...], table_bytes: Real) -> Real:
    """Bytes of weights on the fullest chip: its shares, its copies of what is not cut, and rotary tables. [B]"""
    return sum(weight.n_bytes for weight in held_weights) + table_bytes


def parameter_bytes_per_chip(weight_bytes_per_chip: Real, table_bytes: Real) -> Real:
    """Parameters of the fullest chip, without the rotary table that an engine keeps. [B]"""
    return weight_bytes_per_chip - table_bytes


def weight_bytes(weight_bytes_per_chip: Real, n_chips: Real) -> Real:
    """Bytes of weights on the fullest chip, times the chips. [B]"""
    return weight_bytes_per_chip * n_chips


def step_batch_whole(batch: Real, batch_groups: Real) -> Real:
    """Sequences of a step, were each group as busy as the busiest: whole ones over stages and data-parallel ranks. []

    Neglects: nothing is gained by stages that have no sequence to work on.
    """
    return np.ceil(batch / batch_groups) * batch_groups


def step_batch_ideal(batch: Real) -> Real:
    """Sequences of a step, shared out evenly in fractions. []"""
    return batch


def group_batch(step_batch: Real, batch_groups: Real) -> Real:
    """Sequences that the chips of one group advance in a step, on one pipeline stage. []"""
    return step_batch / batch_groups


def matmul_flops(step_batch: Real, computed_params: Real) -> Real:
    """FLOPs of the matrices, those that every tensor rank computes whole included. [FLOP]"""
    return 2 * step_batch * computed_params


def prefill_matmul_flops(computed_params: Real, head_params: Real, prompt_tokens: Real) -> Real:
    """FLOPs of the matrices over the prompt, those that every tensor rank computes whole included. [FLOP]"""
    return 2 * (computed_params - head_params) * prompt_tokens + 2 * head_params


def handoff_send_bytes_per_s(n_chips: Real, data_groups: Real, dcn_bytes_per_s_per_chip: Real) -> Real:
    """Rate at which the data-parallel group that holds a prompt's cache sends it out. [B/s]"""
    return n_chips / data_groups * dcn_bytes_per_s_per_chip


def handoff_receive_bytes_per_s(n_chips: Real, data_groups: Real, dcn_bytes_per_s_per_chip: Real) -> Real:
    """Rate at which one data-parallel group takes a prompt's cache in. [B/s]"""
    return n_chips / data_groups * dcn_bytes_per_s_per_chip


def attention_flops(step_batch: Real, caches: tuple[Cache, ...], context_tokens: Real) -> Real:
    """FLOPs of scores, weighted values and recurrent states, were each group as busy as the busiest. [FLOP]"""
    return layered_attention_flops(step_batch, caches, context_tokens)


def kv_read_bytes(step_batch: Real, kv_read_bytes_per_sequence: Real) -> Real:
    """Cache bytes that a decode step reads, were each group as busy as the busiest. [B]"""
    return step_batch * kv_read_bytes_per_sequence


def all_gather_bytes(step_batch: Real, batch_groups: Real, d_model: Real, activation_bytes_per_element: Real) -> Real:
    """Bytes of activations that one tensor-parallel group moves: b_a B D over the groups that share the batch. [B]"""
    return step_batch / batch_groups * d_model * activation_bytes_per_element


def critical_batch(flops_per_s: Real, hbm_bytes_per_s: Real, weight_bytes_per_param: Real, batch_groups: Real) -> Real:
    """Batch from which matmuls are compute bound: C / W * b_w / 2 for each group that reads the weights by itself. []

    Source: scaling-book-inference
    """
    return limits_critical_batch(flops_per_s, hbm_bytes_per_s, weight_bytes_per_param) * batch_groups


def model_parallel_limit_hbm_bound(
    d_ff: Real,
    all_gather_bytes_per_s: Real,
    hbm_bytes_per_s: Real,
    weight_bytes_per_param: Real,
    activation_bytes_per_element: Real,
    step_batch: Real,
    batch_groups: Real,
) -> Real:
    """Tensor-parallel ranks beyond which the network binds, where HBM binds otherwise: F b_w W_ici / (b_a W B). []

    B is the batch of one group.
    Source: scaling-book-inference
    """
    return (
        d_ff
        * weight_bytes_per_param
        * all_gather_bytes_per_s
        * batch_groups
        / (activation_bytes_per_element * hbm_bytes_per_s * step_batch)
    )


def gate_matmul_hbm_s(
    d_model: Real, d_ff: Real, weight_bytes_per_param: Real, tensor_ranks: Real, hbm_bytes_per_s: Real
) -> Real:
    """Time of a group's tensor-parallel ranks to read one gate matrix. [s]

    Source: scaling-book-applied-inference
    """
    return limits_gate_hbm_s(d_model, d_ff, weight_bytes_per_param, tensor_ranks, hbm_bytes_per_s)
