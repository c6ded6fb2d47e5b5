"""Reading weights and moving activations where layers differ, towers stand idle, or ranks share the work unequally."""

from __future__ import annotations

from slicewise.costs.real import Real


def step_batch(batch: Real) -> Real:
    """Sequences of a step. []"""
    return batch


def param_read_bytes(weight_bytes: Real, idle_bytes: Real) -> Real:
    """Bytes of weights that a decode step reads: all but towers, which stand idle. [B]"""
    return weight_bytes - idle_bytes


def prefill_param_read_bytes(weight_bytes: Real, idle_bytes: Real) -> Real:
    """Bytes of weights that the prefill of one prompt of text reads: all but towers. [B]"""
    return weight_bytes - idle_bytes


def param_load_s(param_read_bytes: Real, pipeline_stages: Real, n_chips: Real, hbm_bytes_per_s: Real) -> Real:
    """Time to read the weights of a step; pipeline stages read theirs one after the other. [s]

    Source: scaling-book-inference
    """
    return param_read_bytes * pipeline_stages / (n_chips * hbm_bytes_per_s)


def ici_s(n_all_gathers: Real, all_gather_s: Real, n_all_to_alls: Real, all_to_all_s: Real) -> Real:
    """Time of all collectives of a step: around mixers and feed-forwards, and queries to batch shards and back. [s]"""
    return n_all_gathers * all_gather_s + n_all_to_alls * all_to_all_s


def prefill_ici_s(n_all_gathers: Real, prefill_all_gather_s: Real) -> Real:
    """Time of all collectives of a prompt. [s]"""
    return n_all_gathers * prefill_all_gather_s
