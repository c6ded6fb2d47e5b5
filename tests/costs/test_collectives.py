"""Collectives: published bandwidths and hop floors, and what more chips or nodes may do to them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.slices import load_slice
from slicewise.costs.collectives import (
    axis_bytes_per_s,
    axis_hops,
    collective_s,
    no_bytes_per_s,
    no_latency_s,
    switch_all_gather_bytes_per_s,
    switch_all_gather_latency_s,
    switch_all_to_all_bytes_per_s,
    switch_expert_all_to_all_bytes_per_s,
    switch_expert_all_to_all_latency_s,
    switch_one_axis_bytes_per_s,
    torus_all_gather_bytes_per_s,
    torus_all_gather_latency_s,
    torus_all_to_all_bytes_per_s,
    torus_all_to_all_latency_s,
    torus_expert_all_to_all_bytes_per_s,
    torus_expert_all_to_all_latency_s,
    torus_one_axis_bytes_per_s,
)
from slicewise.spec.topology import Axis, Domain

LINK = 4.5e10  # v5e, one link one way
HOP = 1e-6
RING = Axis(length=16, wraps=True, link_bytes_per_s=LINK)
LINE = Axis(length=8, wraps=False, link_bytes_per_s=LINK)
MB = 1e6


# -- a torus ---------------------------------------------------------------------------------------------------------


def test_a_ring_carries_both_ways_and_a_line_one() -> None:
    assert (axis_bytes_per_s(RING), axis_bytes_per_s(LINE)) == (2 * LINK, LINK)


def test_the_farthest_chip_is_half_round_a_ring_and_at_the_end_of_a_line() -> None:
    assert (axis_hops(RING), axis_hops(LINE)) == (8, 7)


# How to Scale Your Model, ch. 8, exercise 3 worked out: W_eff, and the hop floor of 504 collectives of 1 us a hop.
@pytest.mark.parametrize(
    ("slice_", "bytes_per_s", "hop_floor_s"),
    [
        ("v5e:4x8", 9.0e10, 5.04e-3),
        ("v5e:8x8", 9.0e10, 7.056e-3),
        ("v5e:8x16", 1.35e11, 7.56e-3),
        ("v5e:16x16", 1.8e11, 8.064e-3),
    ],
)
def test_axes_add_up_and_so_do_their_hops(slice_: str, bytes_per_s: float, hop_floor_s: float) -> None:
    axes = load_slice(slice_).axes
    assert torus_all_gather_bytes_per_s(axes) == bytes_per_s
    assert 504 * torus_all_gather_latency_s(axes, HOP) == pytest.approx(hop_floor_s, rel=1e-12)


def test_an_all_gather_of_34_mb_over_one_ring() -> None:
    # How to Scale Your Model, ch. 3: the ring formula gives 377 us.
    assert collective_s(34 * MB, axis_bytes_per_s(RING), 0.0) == pytest.approx(377e-6, rel=3e-3)


def test_a_small_message_takes_its_hops() -> None:
    axes = load_slice("v5e:8x16").axes
    assert collective_s(1000, torus_all_gather_bytes_per_s(axes), torus_all_gather_latency_s(axes, HOP)) == (
        pytest.approx(15e-6)
    )


def test_an_all_to_all_on_a_ring_takes_a_quarter_of_an_all_gather() -> None:
    # How to Scale Your Model, ch. 3: V / (4 W_ici).
    assert torus_all_to_all_bytes_per_s((RING,), 16) == 4 * torus_all_gather_bytes_per_s((RING,))


def test_an_all_to_all_over_several_axes_is_bound_by_the_longest_and_the_slowest() -> None:
    # V max(A, B) / (4 N W): the line carries half of what the ring does.
    assert torus_all_to_all_bytes_per_s((RING, LINE), 128) == 4 * 128 * LINK / 16
    assert torus_all_to_all_latency_s((RING, LINE), HOP) == pytest.approx(15e-6)
    assert torus_all_to_all_bytes_per_s((), 1) == math.inf


def test_the_fastest_axis_stands_for_one() -> None:
    assert torus_one_axis_bytes_per_s((LINE, RING)) == 2 * LINK


AXES = st.lists(
    st.builds(Axis, length=st.integers(2, 24), wraps=st.booleans(), link_bytes_per_s=st.floats(1e9, 1e12)),
    min_size=1,
    max_size=3,
).map(tuple)


@given(AXES, st.floats(1, 1e12))
def test_joining_the_ends_of_an_axis_never_slows_a_collective(axes: tuple[Axis, ...], n_bytes: float) -> None:
    rings = tuple(Axis(length=a.length, wraps=True, link_bytes_per_s=a.link_bytes_per_s) for a in axes)
    shards = math.prod(axis.length for axis in axes)
    for bandwidth, latency in (
        (torus_all_gather_bytes_per_s, torus_all_gather_latency_s),
        (lambda axes: torus_all_to_all_bytes_per_s(axes, shards), torus_all_to_all_latency_s),
    ):
        as_rings = collective_s(n_bytes, bandwidth(rings), latency(rings, HOP))
        assert as_rings <= collective_s(n_bytes, bandwidth(axes), latency(axes, HOP))


@given(AXES, st.floats(1.0, 10.0), st.floats(1, 1e12))
def test_faster_links_never_slow_a_collective(axes: tuple[Axis, ...], factor: float, n_bytes: float) -> None:
    faster = tuple(Axis(length=a.length, wraps=a.wraps, link_bytes_per_s=a.link_bytes_per_s * factor) for a in axes)
    assert torus_all_gather_bytes_per_s(faster) >= torus_all_gather_bytes_per_s(axes)
    assert torus_all_to_all_bytes_per_s(faster, 16) >= torus_all_to_all_bytes_per_s(axes, 16)


# -- switches --------------------------------------------------------------------------------------------------------


def gpus(n_chips: int, node_bytes_per_s: float | None = 4.0e11) -> Domain:
    return Domain(n_chips=n_chips, domain_chips=8, link_bytes_per_s=4.5e11, node_bytes_per_s=node_bytes_per_s)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_gpus_of_one_domain_gather_and_exchange_at_their_links(n: int) -> None:
    # How to Scale Your Model, ch. 12: V (n - 1) / (n w), and V (n - 1) / (n^2 w).
    volume, link = 64 * MB, 4.5e11
    assert volume / switch_all_gather_bytes_per_s(gpus(n)) == pytest.approx(volume * (n - 1) / (n * link), rel=1e-12)
    assert volume / switch_all_to_all_bytes_per_s(gpus(n), n) == pytest.approx(
        volume * (n - 1) / (n**2 * link), rel=1e-12
    )
    assert switch_one_axis_bytes_per_s(gpus(n)) == link


def test_across_nodes_the_slower_of_links_and_egress_decides() -> None:
    # 16 H100: 7/8 through 450 GB/s inside, 1/2 through 400 GB/s across; 64: 7/8 through 400 GB/s.
    assert switch_all_gather_bytes_per_s(gpus(16)) == pytest.approx(4.5e11 * 8 / 7, rel=1e-12)
    assert switch_all_gather_bytes_per_s(gpus(64)) == pytest.approx(4.0e11 * 8 / 7, rel=1e-12)
    assert switch_all_gather_bytes_per_s(gpus(16, 1e10)) == pytest.approx(2e10, rel=1e-12)


def test_an_all_to_all_across_nodes_shares_the_egress() -> None:
    # All 16 GPUs of two nodes exchange V: half of it sits in each node, and half of that leaves through 400 GB/s.
    volume = 64 * MB
    assert volume / switch_all_to_all_bytes_per_s(gpus(16), 16) == pytest.approx(volume / 4 / 4.0e11, rel=1e-12)
    # Eight groups of two, one GPU in each node: each group sends V / 4 out of a node, through an eighth of its egress.
    assert volume / switch_all_to_all_bytes_per_s(gpus(16), 2) == pytest.approx(volume / 4 / 5.0e10, rel=1e-12)


@given(st.integers(1, 64), st.floats(1e9, 1e12), st.sampled_from([1, 2, 4, 8, 16, 64]))
def test_more_nodes_are_never_faster(nodes: int, egress: float, shards: int) -> None:
    fewer, more = gpus(8 * nodes, egress), gpus(8 * (nodes + 1), egress)
    slack = 1 + 1e-12
    assert switch_all_gather_bytes_per_s(more) <= switch_all_gather_bytes_per_s(fewer) * slack
    if shards > 1:
        assert switch_all_to_all_bytes_per_s(more, shards) <= switch_all_to_all_bytes_per_s(fewer, shards) * slack


@given(st.integers(2, 64), st.floats(1e9, 1e12), st.floats(1.0, 10.0))
def test_more_egress_is_never_slower(nodes: int, egress: float, factor: float) -> None:
    for bandwidth in (switch_all_gather_bytes_per_s, lambda domain: switch_all_to_all_bytes_per_s(domain, nodes)):
        assert bandwidth(gpus(8 * nodes, egress * factor)) >= bandwidth(gpus(8 * nodes, egress))


def test_a_second_domain_adds_a_latency() -> None:
    assert switch_all_gather_latency_s(gpus(8), 2e-6) == 2e-6
    assert switch_all_gather_latency_s(gpus(16), 2e-6) == 4e-6


def test_gpus_beyond_one_domain_cross_the_network() -> None:
    """A group of 12 has a second node, though not a full one."""
    assert switch_all_gather_bytes_per_s(gpus(12, 1.0)) == switch_all_gather_bytes_per_s(gpus(16, 1.0)) == 2.0
    assert str(gpus(12)) == "12 GPUs in 2 domains of up to 8"


# -- to the experts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [(RING,), (LINE, LINE), (RING, LINE)])
def test_experts_on_all_chips_of_a_torus_are_reached_as_all_batch_shards_are(axes: tuple[Axis, ...]) -> None:
    n = math.prod(axis.length for axis in axes)
    assert torus_expert_all_to_all_bytes_per_s(axes, n) == torus_all_to_all_bytes_per_s(axes, n)
    assert torus_expert_all_to_all_latency_s(axes, HOP) == torus_all_to_all_latency_s(axes, HOP)


def test_experts_on_a_ring_of_16_are_reached_in_a_quarter_of_an_all_gather() -> None:
    # How to Scale Your Model, ch. 3: an AllToAll on a ring takes V / (4 w), an AllGather V / w.
    assert torus_expert_all_to_all_bytes_per_s((RING,), 16) == 4 * torus_all_gather_bytes_per_s((RING,))


@pytest.mark.parametrize("n", [2, 8, 12, 16, 64])
def test_experts_behind_switches_are_reached_at_the_pace_of_the_slower_of_links_and_egress(n: int) -> None:
    """Every GPU has V / n^2 for every other one, and hands what leaves its node to the neighbour that sends it on."""
    volume, link, egress, latency_s = 64 * MB, 4.5e11, 4.0e11, 2e-6
    inside = min(8, n)
    by_links = volume / n * (inside - 1) / inside / link
    by_egress = inside * (n - inside) * volume / n**2 / egress
    found = volume / switch_expert_all_to_all_bytes_per_s(gpus(n))
    assert found == pytest.approx(max(by_links, by_egress), rel=1e-12)
    assert switch_expert_all_to_all_latency_s(gpus(n), latency_s) == latency_s * (1 if n <= 8 else 2)


def test_no_network_costs_nothing() -> None:
    assert collective_s(1e9, no_bytes_per_s(), no_latency_s()) == 0
