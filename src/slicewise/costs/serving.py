"""Steady state: what flows through a server, and how prefill and decode share the work. Means, no queues."""

from __future__ import annotations

import numpy as np

from slicewise.costs.real import Real


def sequences_finished_per_step(batch: Real, output_tokens: Real) -> Real:
    """Sequences that finish in a decode step, on average. []

    Source: scaling-book-applied-inference
    """
    return batch / output_tokens


def tokens_evicted_per_step(batch: Real, prompt_tokens: Real, output_tokens: Real) -> Real:
    """Tokens that leave the cache in a decode step, on average: B (T + G) / G. []

    Source: scaling-book-applied-inference
    """
    return batch * (prompt_tokens + output_tokens) / output_tokens


def decode_s_per_request(output_tokens: Real, step_s: Real, batch: Real) -> Real:
    """A replica's time that decoding one request takes: G steps shared by B. [s]"""
    return output_tokens * step_s / batch


def replica_s_per_request(prefill_s: Real, decode_s_per_request: Real) -> Real:
    """A replica's time that one request takes where prefill and decode share the chips. [s]"""
    return prefill_s + decode_s_per_request


def requests_per_s_shared(replica_s_per_request: Real) -> Real:
    """Requests that one replica finishes a second where prefill and decode share it. [1/s]"""
    return 1.0 / replica_s_per_request


def prefill_requests_per_s(prefill_s: Real) -> Real:
    """Prompts that one prefill server takes in a second. [1/s]"""
    return 1.0 / prefill_s


def decode_requests_per_s(decode_s_per_request: Real) -> Real:
    """Requests that one decode server finishes a second. [1/s]"""
    return 1.0 / decode_s_per_request


def replicas(requests_per_s: Real, replica_s_per_request: Real) -> Real:
    """Servers that do both phases, for a rate of requests. []"""
    return np.ceil(requests_per_s * replica_s_per_request)


def prefill_servers(requests_per_s: Real, prefill_s: Real) -> Real:
    """Servers that only prefill, for a rate of requests. []"""
    return np.ceil(requests_per_s * prefill_s)


def decode_servers(requests_per_s: Real, decode_s_per_request: Real) -> Real:
    """Servers that only decode, for a rate of requests. []"""
    return np.ceil(requests_per_s * decode_s_per_request)


def tpot_shared_s(replica_s_per_request: Real, batch: Real, output_tokens: Real) -> Real:
    """Mean time a token where prefill and decode share the chips: steps, and prefills in between. [s]"""
    return replica_s_per_request * batch / output_tokens


def prefill_servers_per_decode_server(prefill_s: Real, decode_s_per_request: Real) -> Real:
    """Prefill servers that keep one decode server busy: B prefill_s / (step_s G). []

    Source: scaling-book-applied-inference
    """
    return prefill_s / decode_s_per_request


def handoff_bytes(prefill_window_tokens: Real, kv_bytes_per_token: Real) -> Real:
    """Bytes of the prompt's cache that go from prefill to decode. [B]"""
    return prefill_window_tokens * kv_bytes_per_token


def handoff_send_bytes_per_s(n_chips: Real, dcn_bytes_per_s_per_chip: Real) -> Real:
    """Rate at which the prefill slice sends a cache out. [B/s]"""
    return n_chips * dcn_bytes_per_s_per_chip


def handoff_receive_bytes_per_s(n_chips: Real, dcn_bytes_per_s_per_chip: Real) -> Real:
    """Rate at which the decode slice takes a cache in. [B/s]"""
    return n_chips * dcn_bytes_per_s_per_chip


def handoff_bytes_per_s(handoff_send_bytes_per_s: Real, handoff_receive_bytes_per_s: Real) -> Real:
    """Rate of the hand-off: that of the slower end. [B/s]"""
    return np.minimum(handoff_send_bytes_per_s, handoff_receive_bytes_per_s)


def handoff_s(handoff_bytes: Real, handoff_bytes_per_s: Real) -> Real:
    """Time to hand one prompt's cache over, when nothing else uses the link. [s]"""
    return handoff_bytes / handoff_bytes_per_s


def ttft_split_s(prefill_s: Real, handoff_s: Real) -> Real:
    """Time to the first token where prefill and decode are split, unqueued: prefill, then the hand-off. [s]"""
    return prefill_s + handoff_s


def mean_context_tokens(prompt_tokens: Real, output_tokens: Real) -> Real:
    """Tokens that a sequence holds on average while it decodes: T + G / 2. []"""
    return prompt_tokens + output_tokens / 2


def longest_context_tokens(prompt_tokens: Real, output_tokens: Real) -> Real:
    """Tokens that a sequence holds at its end: T + G. []"""
    return prompt_tokens + output_tokens


def replicas_chips(replicas: Real, n_chips: Real) -> Real:
    """Chips of the servers that do both phases. []"""
    return replicas * n_chips


def split_chips(prefill_servers: Real, decode_servers: Real, n_chips: Real) -> Real:
    """Chips of the prefill and the decode servers, on slices of one kind. []"""
    return (prefill_servers + decode_servers) * n_chips
