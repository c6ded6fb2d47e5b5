"""The largest arrays beside the arguments: what is made counts, what is handed on or written in place does not."""

from slicewise.verify.hlo import parse
from slicewise.verify.hlo_arguments import filled_sides
from slicewise.verify.hlo_buffers import buffers

TEXT = """HloModule jit_step, is_scheduled=true, num_partitions=2

%written (cache: s8[4,8,96], row: s8[4,1,96], at: s32[]) -> s8[4,8,96] {
  %cache = s8[4,8,96]{2,1,0:T(8,128)(4,1)} parameter(0)
  %row = s8[4,1,96]{2,1,0:T(8,128)(4,1)} parameter(1)
  %at = s32[]{:T(128)} parameter(2)
  %inside = f32[4,8,96]{2,1,0:T(8,128)} convert(%cache)
  ROOT %update = s8[4,8,96]{2,1,0:T(8,128)(4,1)} dynamic-update-slice(%cache, %row, %at, %at, %at)
}

%multiplied (a: bf16[16,128]) -> bf16[16,128] {
  %a = bf16[16,128]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT %product = bf16[16,128]{1,0:T(8,128)(2,1)} multiply(%a, %a)
}

ENTRY %main (kv: s8[4,8,96], x: bf16[16,128], slot: s32[]) -> (bf16[16,128], s8[4,8,96]) {
  %kv = s8[4,8,96]{2,1,0:T(8,128)(4,1)} parameter(0)
  %x = bf16[16,128]{1,0:T(8,128)(2,1)} parameter(1)
  %slot = s32[]{:T(128)} parameter(2)
  %row = s8[4,1,96]{2,1,0:T(8,128)(4,1)} slice(%kv), slice={[0:4], [0:1], [0:96]}, metadata={op_name="jit(step)/layers/attention/slice"}
  %kept = s8[4,8,96]{2,1,0:T(8,128)(4,1)} fusion(%kv, %row, %slot), kind=kLoop, calls=%written, metadata={op_name="jit(step)/layers/attention/cache_write/dynamic_update_slice"}
  %near = bf16[16,128]{1,0:T(8,128)(2,1)S(1)} copy(%x), metadata={op_name="jit(step)/layers/mlp/copy"}
  %h = bf16[16,128]{1,0:T(8,128)(2,1)} fusion(%near), kind=kLoop, calls=%multiplied, metadata={op_name="jit(step)/layers/mlp/mul"}
  %view = bf16[128,16]{0,1:T(8,128)(2,1)} bitcast(%h)
  ROOT %out = (bf16[16,128]{1,0:T(8,128)(2,1)}, s8[4,8,96]{2,1,0:T(8,128)(4,1)}) tuple(%h, %kept)
}
"""  # noqa: E501


def scope(op_name: str) -> str:
    return next((name for name in ("cache_write", "attention", "mlp") if name in op_name), "other")


def test_what_operations_make_in_hbm_counts_alone() -> None:
    found = buffers(parse(TEXT), scope, 10)
    assert [(each.scope, each.n_bytes) for each in found] == [("mlp", 16 * 128 * 2), ("attention", 4 * 96)]


def test_the_largest_come_first_and_no_more_than_asked_for() -> None:
    assert [each.n_bytes for each in buffers(parse(TEXT), scope, 1)] == [4096]


def test_sides_that_tiles_fill_up_are_those_of_arguments() -> None:
    assert filled_sides(parse(TEXT)) == {0: ((96, 128),), 1: (), 2: ()}
