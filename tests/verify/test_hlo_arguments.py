"""What arguments weigh as the compiler lays them out."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.verify.hlo import parse
from slicewise.verify.hlo_arguments import argument_bytes, tiled_bytes
from slicewise.verify.hlo_text import n_bytes

MODULE = """
HloModule jit_step, is_scheduled=true, num_partitions=8

ENTRY %main (w: s8[64,100], x: s32[]) -> s8[64,100] {
  %x = s32[]{:T(128)} parameter(1)
  %w = s8[64,100]{1,0:T(32,128)(4,1)} parameter(0), sharding={devices=[8]<=[8]}
  ROOT %out = s8[64,100]{1,0:T(32,128)(4,1)} copy(%w)
}
"""
DTYPES = {"s4": 4, "s8": 8, "bf16": 16, "f32": 32}
SIDES = st.sampled_from([1, 2, 8, 32, 128, 1024]) | st.integers(1, 300)
TILES = st.sampled_from([(128,), (1024,), (8, 128), (32, 128), (2, 4, 128)])


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The text of a shape, its sides from the innermost out, and those of its tile."""
    dims = tuple(draw(st.lists(SIDES, min_size=1, max_size=4)))
    order = tuple(draw(st.permutations(range(len(dims)))))
    tile = draw(TILES)
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    words = [",".join(map(str, each)) for each in (dims, order, tile)]
    return f"{dtype}[{words[0]}]{{{words[1]}:T({words[2]})}}", dims, tuple(dims[axis] for axis in order), tile


@given(layouts())
def test_tiles_only_add(shaped: tuple) -> None:
    shape, dims, _, _ = shaped
    bits = DTYPES[shape.partition("[")[0]]
    assert tiled_bytes(shape) >= math.prod(dims) * bits / 8


@given(layouts())
def test_sides_are_filled_up_to_whole_tiles_and_no_more(shaped: tuple) -> None:
    shape, dims, sides, tile = shaped
    bits = DTYPES[shape.partition("[")[0]]
    elements = tiled_bytes(shape) * 8 / bits
    tiled = list(zip(sides, reversed(tile), strict=False))
    assert elements % math.prod(side for _, side in tiled) == 0
    assert elements < math.prod(dims) * math.prod((size + side) / size for size, side in tiled)


@given(layouts())
def test_what_divides_weighs_what_it_holds(shaped: tuple) -> None:
    shape, _, sides, tile = shaped
    if all(size % side == 0 for size, side in zip(sides, reversed(tile), strict=False)):
        assert tiled_bytes(shape) == n_bytes(shape)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("s8[8192,64]{0,1:T(32,128)(4,1)}", 8192 * 64),
        ("s8[8192,64]{1,0:T(32,128)(4,1)}", 8192 * 128),
        ("bf16[80,8192]{1,0:T(8,128)(2,1)}", 80 * 8192 * 2),
        ("s4[100,256]{1,0:T(64,128)(8,1)E(4)}", 128 * 256 / 2),
        ("f32[130]{0:T(128)}", 256 * 4),
        ("f32[130]{0}", 130 * 4),
        ("f32[130]", 130 * 4),
        ("s32[]{:T(128)}", 4),
        ("bf16[0,128]{1,0:T(8,128)}", 0),
    ],
)
def test_arrays_weigh_what_their_layout_says(shape: str, expected: float) -> None:
    assert tiled_bytes(shape) == expected


def test_arguments_are_found_by_number() -> None:
    assert argument_bytes(parse(MODULE)) == {0: 64 * 128, 1: 4}
