"""The KV layout: heads first, whole axes where possible, and what is left for the batch."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import find_chip
from slicewise.catalog.slices import load_slice
from slicewise.spec.layout import kv_layout
from slicewise.spec.topology import Slice


@pytest.mark.parametrize(
    ("slice_", "n_kv_heads", "head_shards", "batch_shards", "batch_axes"),
    [
        ("v5e:1x1", 8, 1, 1, ""),
        ("v5e:2x4", 8, 8, 1, ""),
        ("v5e:4x4", 8, 8, 2, "line of 2"),
        ("v5e:4x8", 8, 8, 4, "line of 4"),
        ("v5e:8x8", 8, 8, 8, "line of 8"),
        ("v5e:8x16", 8, 8, 16, "ring of 16"),
        ("v5e:16x16", 8, 8, 32, "line of 2, ring of 16"),
        ("v5e:4x4", 1, 1, 16, "line of 4, line of 4"),
        ("v5e:8x16", 1, 1, 128, "line of 8, ring of 16"),
        ("v5e:8x16", 16, 16, 8, "line of 8"),
        ("v5e:2x4", 4, 4, 2, "line of 2"),
        ("v5e:4x8", 40, 8, 4, "line of 4"),
        ("v5e:4x4", 5, 1, 16, "line of 4, line of 4"),
        ("v5p:4x4x4", 8, 8, 8, "line of 2, ring of 4"),
        ("v5p:4x4x8", 8, 8, 16, "ring of 4, ring of 4"),
        ("v5p:2x2x1", 8, 4, 1, ""),
        ("h100:1", 8, 1, 1, ""),
        ("h100:4", 8, 4, 1, ""),
        ("h100:8", 8, 8, 1, ""),
        ("h100:8", 2, 2, 4, ""),
        ("h100:16", 8, 8, 2, ""),
        ("h100:64", 8, 8, 8, ""),
    ],
)
def test_heads_take_whole_axes_first(
    slice_: str, n_kv_heads: int, head_shards: int, batch_shards: int, batch_axes: str
) -> None:
    layout = kv_layout(load_slice(slice_), n_kv_heads)
    assert (layout.head_shards, layout.batch_shards) == (head_shards, batch_shards)
    assert ", ".join(sorted(map(str, layout.batch_axes))) == batch_axes


SHAPES = st.lists(st.integers(1, 24), min_size=1, max_size=3).map(tuple)


@given(SHAPES, st.sampled_from(["v5e", "v6e", "v4", "v5p", "tpu7x", "h100"]), st.integers(1, 128))
def test_head_and_batch_shards_make_up_the_slice(shape: tuple[int, ...], chip: str, n_kv_heads: int) -> None:
    slice_ = Slice(chip=find_chip(chip), shape=shape)
    layout = kv_layout(slice_, n_kv_heads)
    assert layout.head_shards * layout.batch_shards == slice_.n_chips
    assert n_kv_heads % layout.head_shards == 0
    larger = range(layout.head_shards + 1, n_kv_heads + 1)
    assert not any(slice_.n_chips % ways == n_kv_heads % ways == 0 for ways in larger)


@given(SHAPES, st.sampled_from(["v5e", "v5p"]), st.integers(1, 128))
def test_the_batch_axes_make_up_the_batch_shards(shape: tuple[int, ...], chip: str, n_kv_heads: int) -> None:
    slice_ = Slice(chip=find_chip(chip), shape=shape)
    layout = kv_layout(slice_, n_kv_heads)
    assert math.prod(axis.length for axis in layout.batch_axes) == layout.batch_shards
    assert all(axis.length > 1 for axis in layout.batch_axes)
    whole = {(axis.length, axis.wraps) for axis in slice_.axes}
    assert all((axis.length, axis.wraps) in whole or not axis.wraps for axis in layout.batch_axes)


@given(...)
def test_gpus_have_no_axes(slice_: Slice) -> None:
    if slice_.chip.is_gpu:
        assert kv_layout(slice_, 2).batch_axes == ()


def test_a_layout_names_both_kinds_of_shards() -> None:
    assert str(kv_layout(load_slice("v5e:4x8"), 8)) == "8 head shards by 4 batch shards"
