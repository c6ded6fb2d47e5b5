"""Collectives: bandwidth and latency of AllGather, ReduceScatter and AllToAll on a torus or behind a switch.

Every collective costs `max(bytes / bandwidth, latency)`. On a torus the latency is hops; behind a switch it is a
constant. Neglects: overlap between collectives, and the ramp of small messages beyond the hop floor.
"""

from __future__ import annotations

import numpy as np

from slicewise.costs.real import Real
from slicewise.spec.topology import Axis, Domain


def collective_s(n_bytes: Real, bytes_per_s: Real, latency_s: Real) -> Real:
    """Time of one collective: the longer of its bandwidth time and its latency. [s]

    Source: scaling-book-sharding
    """
    return np.maximum(n_bytes / bytes_per_s, latency_s)


def axis_bytes_per_s(axis: Axis) -> float:
    """Bandwidth of one mesh axis: both ways round a ring, one way along a line. [B/s]"""
    return (2.0 if axis.wraps else 1.0) * axis.link_bytes_per_s


def axis_hops(axis: Axis) -> float:
    """Hops to the farthest chip of one mesh axis: half round a ring, all along a line. []"""
    return axis.length / 2 if axis.wraps else axis.length - 1.0


def torus_all_gather_bytes_per_s(ici_axes: tuple[Axis, ...]) -> float:
    """Gathered bytes a second of an AllGather or ReduceScatter over all axes: the axes add up. [B/s]"""
    return sum(axis_bytes_per_s(axis) for axis in ici_axes)


def torus_all_gather_latency_s(ici_axes: tuple[Axis, ...], hop_s: Real) -> Real:
    """Latency of an AllGather or ReduceScatter over all axes: their hops. [s]"""
    return hop_s * sum(axis_hops(axis) for axis in ici_axes)


def torus_all_to_all_bytes_per_s(kv_batch_axes: tuple[Axis, ...], kv_batch_shards: Real) -> Real:
    """Bytes a second of an AllToAll over the batch axes: 4 Z w / longest axis. [B/s]

    Source: scaling-book-sharding
    """
    slowest = min((axis_bytes_per_s(axis) for axis in kv_batch_axes), default=np.inf)
    longest = max((axis.length for axis in kv_batch_axes), default=1)
    return 4.0 * kv_batch_shards * slowest / longest


def torus_all_to_all_latency_s(kv_batch_axes: tuple[Axis, ...], hop_s: Real) -> Real:
    """Latency of an AllToAll over the batch axes: their hops. [s]"""
    return hop_s * sum(axis_hops(axis) for axis in kv_batch_axes)


def torus_expert_gather_bytes_per_s(expert_axes: tuple[Axis, ...]) -> float:
    """Gathered bytes a second of an AllGather or ReduceScatter over a stage's axes. [B/s]"""
    return torus_all_gather_bytes_per_s(expert_axes)


def torus_expert_gather_latency_s(expert_axes: tuple[Axis, ...], hop_s: Real) -> Real:
    """Latency of an AllGather or ReduceScatter over a stage's axes: their hops. [s]"""
    return torus_all_gather_latency_s(expert_axes, hop_s)


def switch_expert_gather_bytes_per_s(expert_domain: Domain) -> float:
    """Gathered bytes a second of an AllGather or ReduceScatter over a stage's GPUs. [B/s]"""
    return switch_all_gather_bytes_per_s(expert_domain)


def switch_expert_gather_latency_s(expert_domain: Domain, hop_s: Real) -> Real:
    """Latency of one collective over a stage's GPUs, once inside a domain and once across. [s]"""
    return switch_all_gather_latency_s(expert_domain, hop_s)


def torus_expert_all_to_all_bytes_per_s(expert_axes: tuple[Axis, ...], stage_chips: Real) -> Real:
    """Bytes a second of an AllToAll over a stage's chips. [B/s]

    Source: scaling-book-sharding
    """
    return torus_all_to_all_bytes_per_s(expert_axes, stage_chips)


def torus_expert_all_to_all_latency_s(expert_axes: tuple[Axis, ...], hop_s: Real) -> Real:
    """Latency of an AllToAll over a stage's chips: its hops. [s]"""
    return torus_all_to_all_latency_s(expert_axes, hop_s)


def torus_one_axis_bytes_per_s(ici_axes: tuple[Axis, ...]) -> float:
    """Bandwidth of one mesh axis, the fastest. [B/s]"""
    return max(axis_bytes_per_s(axis) for axis in ici_axes)


def switch_all_gather_bytes_per_s(domain: Domain) -> float:
    """Gathered bytes a second of an AllGather or ReduceScatter over the GPUs. [B/s]

    Inside a domain of d: V (d - 1) / (d w). Across m domains each takes in V (m - 1) / m through its node's network,
    and the slower of the two decides.
    Source: scaling-book-gpus
    """
    inside = min(domain.n_chips, domain.domain_chips)
    nodes = -(-domain.n_chips // domain.domain_chips)
    inside_s_per_byte = (inside - 1) / (inside * domain.link_bytes_per_s)
    across_s_per_byte = (nodes - 1) / (nodes * domain.node_bytes_per_s)
    return 1.0 / max(inside_s_per_byte, across_s_per_byte)


def switch_all_gather_latency_s(domain: Domain, hop_s: Real) -> Real:
    """Latency of one collective over the GPUs, once inside a domain and once across. [s]"""
    return hop_s * (1.0 if domain.n_chips <= domain.domain_chips else 2.0)


def switch_all_to_all_bytes_per_s(domain: Domain, kv_batch_shards: Real) -> Real:
    """Bytes a second of an AllToAll over groups of Z GPUs. [B/s]

    Each GPU sends V (Z - 1) / Z^2. Head shards fill a domain first, so of a group z sit in one domain, and what leaves
    it shares the node's network with the domain's other GPUs.
    Source: scaling-book-gpus
    """
    nodes = -(-domain.n_chips // domain.domain_chips)
    inside = max(1.0, kv_batch_shards / nodes)
    inside_s_per_byte = (kv_batch_shards - 1) / (kv_batch_shards**2 * domain.link_bytes_per_s)
    share = domain.node_bytes_per_s / domain.domain_chips
    across_s_per_byte = 0.0 if nodes == 1 else (1 - inside / kv_batch_shards) / (kv_batch_shards * share)
    return 1.0 / max(inside_s_per_byte, across_s_per_byte)


def switch_expert_all_to_all_bytes_per_s(expert_domain: Domain) -> Real:
    """Bytes a second of an AllToAll over the GPUs that hold the experts. [B/s]

    Each GPU sends V (n - 1) / n^2; what leaves a domain shares the node's network with its other GPUs.
    Source: scaling-book-gpus
    """
    n = expert_domain.n_chips
    inside = min(expert_domain.n_chips, expert_domain.domain_chips)
    inside_s_per_byte = (inside - 1) / (inside * n * expert_domain.link_bytes_per_s)
    share = expert_domain.node_bytes_per_s / expert_domain.domain_chips
    across_s_per_byte = (1 - inside / n) / (n * share)
    return 1.0 / max(inside_s_per_byte, across_s_per_byte)


def switch_expert_all_to_all_latency_s(expert_domain: Domain, hop_s: Real) -> Real:
    """Latency of one AllToAll over the GPUs that hold the experts, once inside a domain and once across. [s]"""
    return hop_s * (1.0 if expert_domain.n_chips <= expert_domain.domain_chips else 2.0)


def switch_one_axis_bytes_per_s(domain: Domain) -> float:
    """Scale-up bandwidth of one GPU. [B/s]"""
    return domain.link_bytes_per_s


def no_bytes_per_s() -> float:
    """No transfer: bandwidth without limit. [B/s]"""
    return np.inf


def no_latency_s() -> float:
    """No transfer: no latency. [s]"""
    return 0.0
