"""The memory ledger of a slice: what it grants, what is used, and what still fits.

Neglects: the program, fragmentation, prefill's activations; `memory_fraction` is the reserve for them.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.real import Real

LOGIT_BYTES = 4.0
"""Logits are float32. [B]"""

HALF_BYTE = 0.5
"""Bytes are whole: what is over by less than this is a rounding error of the sum, and fits. [B]

A sequence that takes less takes nothing: however many there are, they fit.
"""


def activation_bytes_per_sequence(vocab_size: Real, d_ff: Real, activation_bytes_per_element: Real) -> Real:
    """Peak decode activations of one sequence: float32 logits 4 V, and the MLP's gate and up 2 b_a F. [B]"""
    return LOGIT_BYTES * vocab_size + 2 * activation_bytes_per_element * d_ff


def activation_bytes_per_sequence_neglected() -> float:
    """Activations, which the book calls negligible at decode. [B]"""
    return 0.0


def logit_bytes_per_chip(batch: Real, vocab_size: Real, n_chips: Real) -> Real:
    """Logits of the batch on a chip, in float32: 4 B V over the chips. [B]"""
    return LOGIT_BYTES * batch * vocab_size / n_chips


def logit_bytes_per_chip_neglected() -> float:
    """Logits, which the book calls negligible at decode. [B]"""
    return 0.0


def mlp_activation_bytes_per_chip(activation_bytes_per_chip: Real, logit_bytes_per_chip: Real) -> Real:
    """Peak decode activations of a chip beside the logits: gate and up. [B]"""
    return activation_bytes_per_chip - logit_bytes_per_chip


def activation_bytes(batch: Real, activation_bytes_per_sequence: Real) -> Real:
    """Peak decode activations of the batch. [B]"""
    return batch * activation_bytes_per_sequence


def total_bytes(weight_bytes: Real, kv_bytes: Real, activation_bytes: Real) -> Real:
    """Bytes that the slice must hold. [B]"""
    return weight_bytes + kv_bytes + activation_bytes


def hbm_bytes(n_chips: Real, hbm_bytes_per_chip: Real, memory_fraction: Real) -> Real:
    """Bytes that the slice grants. [B]"""
    return n_chips * hbm_bytes_per_chip * memory_fraction


def hbm_bytes_beside_reserve(
    n_chips: Real, hbm_bytes_per_chip: Real, memory_fraction: Real, reserve_bytes_per_chip: Real
) -> Real:
    """Bytes that the slice grants to weights, cache and decode, beside what an engine keeps. [B]"""
    return n_chips * (hbm_bytes_per_chip * memory_fraction - reserve_bytes_per_chip)


def free_bytes(hbm_bytes: Real, total_bytes: Real) -> Real:
    """Bytes granted and not used; below zero where it does not fit. [B]"""
    return hbm_bytes - total_bytes


def fraction_bytes_per_chip(hbm_bytes_per_chip: Real, memory_fraction: Real) -> Real:
    """Bytes of a chip within the memory fraction, before what an engine keeps. [B]"""
    return hbm_bytes_per_chip * memory_fraction


def total_bytes_per_chip(total_bytes: Real, n_chips: Real) -> Real:
    """Bytes that the fullest chip must hold. [B]"""
    return total_bytes / n_chips


def held_kv_bytes_per_chip(kv_bytes: Real, n_chips: Real) -> Real:
    """Cache that the fullest chip must hold. [B]"""
    return kv_bytes / n_chips


def activation_bytes_per_chip(activation_bytes: Real, n_chips: Real) -> Real:
    """Peak decode activations of a chip. [B]"""
    return activation_bytes / n_chips


def granted_bytes_per_chip(hbm_bytes: Real, n_chips: Real) -> Real:
    """Bytes that a chip grants. [B]"""
    return hbm_bytes / n_chips


def unused_bytes_per_chip(free_bytes: Real, n_chips: Real) -> Real:
    """Bytes of the fullest chip granted and not used; below zero where it does not fit. [B]"""
    return free_bytes / n_chips


def excess_bytes_per_chip(unused_bytes_per_chip: Real) -> Real:
    """Bytes that the fullest chip must hold beyond what is granted. [B]"""
    return np.maximum(-unused_bytes_per_chip, 0.0)


def kv_budget_bytes(hbm_bytes: Real, weight_bytes: Real) -> Real:
    """Bytes left for sequences once the weights are in; below zero where they do not fit. [B]"""
    return hbm_bytes - weight_bytes


def full_rounds(
    kv_budget_bytes: Real, kv_bytes_per_sequence: Real, activation_bytes_per_sequence: Real, kv_batch_shards: Real
) -> Real:
    """Rounds of Z sequences, one a batch shard, that fit completely. []"""
    sequence_bytes = np.maximum(kv_bytes_per_sequence + activation_bytes_per_sequence, HALF_BYTE)
    return np.floor((kv_budget_bytes + HALF_BYTE) / (kv_batch_shards * sequence_bytes))


def max_batch_whole(
    full_rounds: Real,
    kv_budget_bytes: Real,
    kv_bytes_per_sequence: Real,
    activation_bytes_per_sequence: Real,
    kv_batch_shards: Real,
) -> Real:
    """Most sequences that fit, whole ones over Z batch shards. []

    Beyond the full rounds, a further one holds its Z caches at once and its activations one by one.
    """
    room = kv_budget_bytes + HALF_BYTE - (full_rounds + 1) * kv_batch_shards * kv_bytes_per_sequence
    more = np.minimum(
        np.floor(room / np.maximum(activation_bytes_per_sequence, HALF_BYTE)), (full_rounds + 1) * kv_batch_shards
    )
    return np.maximum(np.maximum(full_rounds * kv_batch_shards, more), 0.0)


def max_batch_ideal(kv_budget_bytes: Real, kv_bytes_per_sequence: Real, activation_bytes_per_sequence: Real) -> Real:
    """Most sequences that fit, split evenly. []"""
    sequence_bytes = np.maximum(kv_bytes_per_sequence + activation_bytes_per_sequence, HALF_BYTE)
    return np.maximum(np.floor((kv_budget_bytes + HALF_BYTE) / sequence_bytes), 0.0)


def max_batch_copied(
    kv_budget_bytes: Real, kv_bytes_per_sequence: Real, activation_bytes_per_sequence: Real, kv_batch_shards: Real
) -> Real:
    """Most sequences that fit where each of the Z ways beyond the heads holds them all. []"""
    sequence_bytes = np.maximum(kv_bytes_per_sequence * kv_batch_shards + activation_bytes_per_sequence, HALF_BYTE)
    return np.maximum(np.floor((kv_budget_bytes + HALF_BYTE) / sequence_bytes), 0.0)


def max_context_tokens(
    kv_budget_bytes: Real,
    activation_bytes: Real,
    batch: Real,
    kv_bytes_per_token: Real,
    kv_replication: Real,
    attention_window: Real,
) -> Real:
    """Longest context at which the batch fits; unlimited where the attention window bounds the cache first. []"""
    room = kv_budget_bytes + HALF_BYTE - activation_bytes
    tokens = np.floor(room / (batch * kv_bytes_per_token * kv_replication))
    return np.where(tokens >= attention_window, np.inf, np.maximum(tokens, 0.0))
