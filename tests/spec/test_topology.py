"""Slices: which axes are rings, how chips and hosts count."""

import math

import pytest
from hypothesis import given

from slicewise.catalog.load import find_chip
from slicewise.catalog.slices import load_slice, standard_slices
from slicewise.spec.topology import Axis, Domain, Slice

V5E_LIKE = {  # Wraparound of v5e and v6e: an axis of 16 only. Google Cloud TPU documentation, pages of v5e and v6e.
    "1x1": "",
    "2x2": "line of 2, line of 2",
    "2x4": "line of 2, line of 4",
    "4x4": "line of 4, line of 4",
    "4x8": "line of 4, line of 8",
    "8x8": "line of 8, line of 8",
    "8x16": "line of 8, ring of 16",
    "16x16": "ring of 16, ring of 16",
}
CUBES = {  # Wraparound of v4, v5p and TPU7x: slices of whole 4x4x4 cubes.
    "2x2x1": "line of 2, line of 2",
    "2x2x2": "line of 2, line of 2, line of 2",
    "2x2x4": "line of 2, line of 2, line of 4",
    "2x4x4": "line of 2, line of 4, line of 4",
    "4x4x4": "ring of 4, ring of 4, ring of 4",
    "4x4x8": "ring of 4, ring of 4, ring of 8",
    "4x8x8": "ring of 4, ring of 8, ring of 8",
    "8x8x8": "ring of 8, ring of 8, ring of 8",
    "8x8x16": "ring of 8, ring of 8, ring of 16",
    "8x16x16": "ring of 8, ring of 16, ring of 16",
    "16x16x16": "ring of 16, ring of 16, ring of 16",
    "16x16x24": "ring of 16, ring of 16, ring of 24",
}


@pytest.mark.parametrize("chip", ["v5e", "v6e", "v4", "v5p", "tpu7x"])
def test_the_axes_of_every_standard_slice_wrap_as_documented(chip: str) -> None:
    expected = V5E_LIKE if chip in ("v5e", "v6e") else CUBES
    for slice_ in standard_slices(find_chip(chip)):
        assert ", ".join(map(str, slice_.axes)) == expected[slice_.topology]


def test_the_documented_slices_are_standard() -> None:
    assert [s.topology for s in standard_slices(find_chip("v5e"))] == list(V5E_LIKE)
    assert [s.topology for s in standard_slices(find_chip("v6e"))] == list(V5E_LIKE)
    assert {"2x2x1", "2x2x2", "2x4x4", "4x4x4", "16x16x24"} <= {s.topology for s in standard_slices(find_chip("v5p"))}


def test_a_slice_of_partial_cubes_has_no_rings() -> None:
    slice_ = Slice(chip=find_chip("v4"), shape=(4, 4, 6))
    assert not any(axis.wraps for axis in slice_.axes)


def test_an_axis_carries_the_link_of_its_chip() -> None:
    assert load_slice("v5e:8x16").axes == (
        Axis(length=8, wraps=False, link_bytes_per_s=4.5e10),
        Axis(length=16, wraps=True, link_bytes_per_s=4.5e10),
    )


@given(...)
def test_chips_are_the_product_of_the_axes(slice_: Slice) -> None:
    assert slice_.n_chips == math.prod(slice_.shape)
    if slice_.chip.is_gpu:
        assert slice_.axes == ()
        assert slice_.domain is not None
        assert slice_.domain.n_chips == slice_.n_chips
    else:
        assert math.prod(axis.length for axis in slice_.axes) == slice_.n_chips
        assert slice_.domain is None


@given(...)
def test_hosts_hold_all_chips(slice_: Slice) -> None:
    chip = slice_.chip
    per_host = chip.single_host_chips if slice_.n_hosts == 1 else chip.chips_per_host
    assert slice_.n_hosts * per_host >= slice_.n_chips > (slice_.n_hosts - 1) * chip.chips_per_host


def test_a_host_that_is_not_full_is_a_host() -> None:
    assert Slice(chip=find_chip("v5e"), shape=(3, 3)).n_hosts == 3


def test_names_are_chip_and_topology() -> None:
    assert load_slice("v5e:4x2").name == "v5e:2x4"
    assert load_slice("h100:8").name == "h100:8"


def test_a_gpu_slice_knows_its_domains() -> None:
    domain = load_slice("h100:16").domain
    assert domain == Domain(n_chips=16, domain_chips=8, link_bytes_per_s=4.5e11, node_bytes_per_s=4.0e11)
    assert str(domain) == "16 GPUs in 2 domains of up to 8"
    assert str(load_slice("h100:4").domain) == "4 GPUs in 1 domain of up to 8"
