"""Where arrays lie: neighbours of the torus stay neighbours, and each device holds one block."""

import itertools
import math

import pytest

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

from jax.sharding import PartitionSpec

from helpers.programs import mesh
from slicewise.program.sharding import RULES, partition, ways

SHAPES = [(1,), (2,), (8,), (2, 4), (4, 2), (8, 1), (1, 8), (2, 2, 2), (2, 2, 1), (4, 1, 2)]
SPLITS = [
    (shape, split)
    for shape in SHAPES
    for split in itertools.product(*([ways for ways in (1, 2, 4, 8) if length % ways == 0] for length in shape))
]


@pytest.mark.parametrize(("shape", "split"), SPLITS)
def test_chips_that_share_a_kv_head_are_a_box_of_neighbours(shape: tuple[int, ...], split: tuple[int, ...]) -> None:
    made = mesh(shape, split)
    assert made.axis_names == ("y", "z")
    assert made.devices.shape == (math.prod(split), math.prod(shape) // math.prod(split))
    places = dict(zip(range(math.prod(shape)), itertools.product(*map(range, shape)), strict=True))
    groups = [[places[device.id] for device in group] for group in made.devices]
    assert sorted(place for group in groups for place in group) == sorted(places.values())
    for group in groups:
        sides = [sorted(set(along)) for along in zip(*group, strict=True)]
        assert [len(side) for side in sides] == [length // cut for length, cut in zip(shape, split, strict=True)]
        assert all(side[-1] - side[0] == len(side) - 1 for side in sides)


def test_an_axis_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="reshape"):
        mesh((3,), (2,))


def test_every_axis_is_cut_as_the_table_says() -> None:
    shape = {"y": 2, "z": 4}
    assert {axis: ways(axis, shape) for axis in RULES} == {
        "heads": 8, "kv_heads": 8, "ff": 8, "vocab": 8, "cache_heads": 2, "batch": 4, "layers": 1, "embed": 1, "": 1,
    }  # fmt: skip


def test_a_partition_names_the_mesh_axes_of_each_dimension() -> None:
    assert partition(("layers", "embed", "heads")) == PartitionSpec(None, None, ("y", "z"))
    assert partition(("", "batch", "cache_heads", "", "")) == PartitionSpec(None, ("z",), ("y",), None, None)
