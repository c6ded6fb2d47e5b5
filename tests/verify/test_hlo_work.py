"""Estimates in compiled programs: cycles, bytes that matmuls read from HBM, and prefetches into VMEM."""

import pytest

from slicewise.verify.hlo import Module, parse, scope_of
from slicewise.verify.hlo_work import Operation, prefetch_bytes, work

SCOPES = ("embed", "attention", "cache_write", "mlp", "head")
CYCLES = 'backend_config={"window_config":{"estimated_cycles":"%d","iteration_bounds":["1"]}}'


def scope(op_name: str) -> str:
    return scope_of(op_name, SCOPES)


def program(lines: str, before: str = "") -> Module:
    return parse(f"HloModule m\n\n{before}\nENTRY %main () -> f32[] {{\n{lines}\n}}\n")


# -- cycles and reads ------------------------------------------------------------------------------------------------

# The gate of a layer under a loop: the fusion takes the weights of all 80 layers, and slices its own.
GATE = """%copy_fusion.7 (input.7: s8[80,8192,1792]) -> s8[80,8192,1792] {
  %input.7 = s8[80,8192,1792]{2,1,0:T(32,128)(4,1)} parameter(0)
  ROOT %copy.108 = s8[80,8192,1792]{2,1,0:T(8,128)(4,1)} copy(%input.7)
}

%sliced (param_0.553: s8[80,8192,1792], param_1.602: s32[]) -> s8[8192,1792] {
  %param_0.553 = s8[80,8192,1792]{2,1,0:T(32,128)(4,1)} parameter(0)
  %fusion.196 = s8[80,8192,1792]{2,1,0:T(8,128)(4,1)} fusion(%param_0.553), kind=kLoop, \
output_to_operand_aliasing={{}: (0, {})}, calls=%copy_fusion.7
  %param_1.602 = s32[]{:T(128)} parameter(1)
  %zero = s32[]{:T(128)} constant(0)
  %dynamic_slice.251 = s8[1,8192,1792]{2,1,0:T(8,128)(4,1)} dynamic-slice(%fusion.196, %param_1.602, %zero, %zero), \
dynamic_slice_sizes={1,8192,1792}
  ROOT %bitcast.125 = s8[8192,1792]{1,0:T(8,128)(4,1)} bitcast(%dynamic_slice.251)
}

%gate (param_0: s8[80,8192,1792], param_1: s32[], param_2: bf16[32,8192], param_3: f32[1792]) -> bf16[32,1792] {
  %param_2 = bf16[32,8192]{1,0:T(8,128)(2,1)} parameter(2)
  %param_0 = s8[80,8192,1792]{2,1,0:T(32,128)(4,1)} parameter(0)
  %param_1 = s32[]{:T(128)} parameter(1)
  %fusion.171 = s8[8192,1792]{1,0:T(8,128)(4,1)} fusion(%param_0, %param_1), kind=kLoop, calls=%sliced
  %convolution.41 = f32[32,1792]{1,0:T(8,128)} convolution(%param_2, %fusion.171), dim_labels=bf_io->bf
  %param_3 = f32[1792]{0:T(1024)S(1)} parameter(3)
  %scale = f32[32,1792]{1,0:T(8,128)} broadcast(%param_3), dimensions={1}
  %mul.853 = f32[32,1792]{1,0:T(8,128)} multiply(%convolution.41, %scale)
  ROOT %convert = bf16[32,1792]{1,0:T(8,128)(2,1)S(1)} convert(%mul.853)
}
"""
GATE_LINES = f"""  %w = s8[80,8192,1792]{{2,1,0:T(32,128)(4,1)}} parameter(0)
  %i = s32[]{{:T(128)}} parameter(1)
  %x = bf16[32,8192]{{1,0:T(8,128)(2,1)S(1)}} parameter(2)
  %s = f32[1792]{{0:T(1024)S(1)}} parameter(3)
  ROOT %g = bf16[32,1792]{{1,0:T(8,128)(2,1)S(1)}} fusion(%w, %i, %x, %s), kind=kOutput, calls=%gate, \
metadata={{op_name="jit(step)/mlp/bd,df->bf/dot_general"}}, {CYCLES % 18215}"""


def test_a_matmul_reads_the_slice_of_the_weights_that_it_takes() -> None:
    assert work(program(GATE_LINES, GATE), scope) == (
        Operation(scope="mlp", name="g", cycles=18215, times=1, hbm_bytes=8192 * 1792),
    )


def test_activations_in_hbm_are_read_too_and_arrays_in_vmem_are_not() -> None:
    lines = GATE_LINES.replace("(2,1)S(1)} parameter(2)", "(2,1)} parameter(2)")
    assert work(program(lines, GATE), scope)[0].hbm_bytes == 8192 * 1792 + 2 * 32 * 8192
    lines = GATE_LINES.replace("(4,1)} parameter(0)", "(4,1)S(1)} parameter(0)")
    assert work(program(lines, GATE), scope)[0].hbm_bytes == 0


def test_a_bare_matmul_reads_its_operands_in_hbm_once_each() -> None:
    lines = f"""  %x = bf16[64,64]{{1,0:T(8,128)(2,1)}} parameter(0)
  %v = bf16[64,64]{{1,0:T(8,128)(2,1)S(1)}} parameter(1)
  %c = f32[64,64]{{1,0}} convolution(%x, %x), dim_labels=bf_io->bf, {CYCLES % 500}
  ROOT %d = f32[64,64]{{1,0}} convolution(%v, %x), dim_labels=bf_io->bf, {CYCLES % 400}"""
    assert [(each.name, each.cycles, each.hbm_bytes) for each in work(program(lines), scope)] == [
        ("c", 500, 2 * 64 * 64),
        ("d", 400, 2 * 64 * 64),
    ]


def test_what_multiplies_no_matrices_reads_nothing_that_counts() -> None:
    lines = f"""  %cache = s8[16,1,8192,128]{{3,2,1,0}} parameter(0)
  %new = s8[16,1,1,128]{{3,2,1,0:S(1)}} parameter(1)
  ROOT %u = s8[16,1,8192,128]{{3,2,1,0}} dynamic-update-slice(%cache, %new), \
metadata={{op_name="jit(step)/attention/cache_write/dynamic_update_slice"}}, {CYCLES % 9618}"""
    assert work(program(lines), scope) == (
        Operation(scope="cache_write", name="u", cycles=9618, times=1, hbm_bytes=0.0),
    )


FUSED = """%fused (p: bf16[64,64], q: bf16[64,64], r: bf16[8,64,64], g: bf16[16,64]) -> (bf16[8,64,64], f32[64,64]) {
  %p = bf16[64,64]{1,0} parameter(0)
  %q = bf16[64,64]{1,0} parameter(1)
  %r = bf16[8,64,64]{2,1,0} parameter(2)
  %g = bf16[16,64]{1,0} parameter(3)
  %gathered = bf16[64,64]{1,0} all-gather(%g), replica_groups=[1,4]<=[4], dimensions={0}
  %a = bf16[32,64]{1,0} slice(%q), slice={[0:32], [0:64]}
  %b = bf16[32,64]{1,0} slice(%q), slice={[32:64], [0:64]}
  %both = bf16[64,64]{1,0} concatenate(%a, %b), dimensions={0}
  %c = f32[64,64]{1,0} convolution(%p, %both), dim_labels=bf_io->bf
  %d = f32[64,64]{1,0} convolution(%p, %p), dim_labels=bf_io->bf
  %sum = f32[64,64]{1,0} add(%c, %d)
  %u = bf16[8,64,64]{2,1,0} dynamic-update-slice(%r, %sum)
  ROOT %t = (bf16[8,64,64]{2,1,0}, f32[64,64]{1,0}) tuple(%u, %sum)
}
"""


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        (("hbm", "vmem", "vmem", "vmem"), 2 * 64 * 64),  # p: three uses, read once
        (("vmem", "hbm", "vmem", "vmem"), 2 * 64 * 64),  # q: two slices of half
        (("vmem", "vmem", "hbm", "vmem"), 0),  # r: written in place
        (("vmem", "vmem", "vmem", "hbm"), 0),  # g: for a collective that goes on meanwhile
    ],
)
def test_reads_are_followed_inside_a_fusion(operands: tuple[str, ...], expected: int) -> None:
    shapes = ("bf16[64,64]{1,0%s}", "bf16[64,64]{1,0%s}", "bf16[8,64,64]{2,1,0%s}", "bf16[16,64]{1,0%s}")
    lines = "\n".join(
        f"  %x{at} = {shape % (':S(1)' if where == 'vmem' else '')} parameter({at})"
        for at, (shape, where) in enumerate(zip(shapes, operands, strict=True))
    )
    lines += (
        "\n  ROOT %f = (bf16[8,64,64], f32[64,64]) fusion(%x0, %x1, %x2, %x3), kind=kOutput, calls=%fused, "
        + CYCLES % 10
    )
    assert [each.hbm_bytes for each in work(program(lines, FUSED), scope)] == [expected]


def test_work_in_a_loop_has_its_trips_and_estimates_inside_fusions_do_not_count_twice() -> None:
    body = f"""%inner (p: f32[8]) -> f32[8] {{
  %p = f32[8]{{0}} parameter(0)
  ROOT %n = f32[8]{{0}} negate(%p), {CYCLES % 5}
}}

%body (x: f32[8]) -> f32[8] {{
  %x = f32[8]{{0}} parameter(0)
  ROOT %f = f32[8]{{0}} fusion(%x), kind=kLoop, calls=%inner, {CYCLES % 7}
}}
"""
    lines = """  %y = f32[8]{0} parameter(0)
  ROOT %w = f32[8]{0} while(%y), condition=%test, body=%body, backend_config={"known_trip_count":{"n":"80"}}"""
    assert work(program(lines, body), scope) == (Operation(scope="other", name="f", cycles=7, times=80, hbm_bytes=0.0),)


# -- prefetches ------------------------------------------------------------------------------------------------------

PREFETCH = """  %wd = s8[1792,8192]{1,0:T(32,128)(4,1)} parameter(0)
  %k = s8[16,1,8192,128]{3,2,1,0:T(32,128)(4,1)} parameter(1)
  %ks = bf16[16,1,8192]{2,0,1:T(8,128)(2,1)} parameter(2)
  %v = f32[8]{0:T(128)S(1)} parameter(3)
  %slice-start = ((s8[1792,8192]{1,0:T(32,128)(4,1)}), s8[448,8192]{1,0:T(32,128)(4,1)S(1)}, s32[]{:S(2)}) \
slice-start(%wd), slice={[0:448], [0:8192]}
  %slice-start.1 = ((s8[1792,8192]{1,0:T(32,128)(4,1)}), s8[448,8192]{1,0:T(32,128)(4,1)S(1)}, s32[]{:S(2)}) \
slice-start(%wd), slice={[448:896], [0:8192]}
  %copy-start = (s8[16,1,8192,128]{3,2,1,0:T(32,128)(4,1)S(1)}, s8[16,1,8192,128]{3,2,1,0:T(32,128)(4,1)}, \
u32[]{:S(2)}) copy-start(%k)
  %copy-start.1 = (bf16[16,1,8192]{2,0,1:T(8,128)(2,1)S(1)}, bf16[16,1,8192]{2,0,1:T(8,128)(2,1)}, u32[]{:S(2)}) \
copy-start(%ks)
  %slice-done = s8[448,8192]{1,0:T(32,128)(4,1)S(1)} slice-done(%slice-start)
  %slice-done.1 = s8[448,8192]{1,0:T(32,128)(4,1)S(1)} slice-done(%slice-start.1)
  %copy-done = s8[16,1,8192,128]{3,2,1,0:T(32,128)(4,1)S(1)} copy-done(%copy-start)
  %copy-done.1 = bf16[16,1,8192]{2,0,1:T(8,128)(2,1)S(1)} copy-done(%copy-start.1)
  %custom-call.7 = s8[896,8192]{1,0:T(32,128)(4,1)S(1)} custom-call(%slice-done, %slice-done.1), \
custom_call_target="ConcatBitcast"
  %down = bf16[32,8192]{1,0:T(8,128)(2,1)S(1)} fusion(%custom-call.7), kind=kOutput, calls=%f, \
metadata={op_name="jit(step)/mlp/bd,df->bf/dot_general"}
  %written = s8[16,1,8192,128]{3,2,1,0:T(32,128)(4,1)S(1)} dynamic-update-slice(%copy-done, %v), \
metadata={op_name="jit(step)/attention/cache_write/dynamic_update_slice"}
  %bits = s8[16,8192,128]{2,1,0:T(32,128)(4,1)S(1)} bitcast(%written)
  %core = bf16[16,8,128]{2,1,0:T(8,128)(2,1)S(1)} fusion(%bits), kind=kOutput, calls=%f, \
metadata={op_name="jit(step)/attention/core/bkgs,bksh->bkgh/dot_general"}
  %moved = bf16[16,1,8192]{2,1,0:T(8,128)(2,1)S(1)} copy(%copy-done.1)
  %back = (s8[16,1,8192,128]{3,2,1,0}, s8[16,1,8192,128]{3,2,1,0:S(1)}, u32[]{:S(2)}) copy-start(%written)
  %back-done = s8[16,1,8192,128]{3,2,1,0} copy-done(%back)
  %next = (f32[8]{0:S(1)}, f32[8]{0:S(1)}, u32[]{:S(2)}) copy-start(%v)
  %next-done = f32[8]{0:S(1)} copy-done(%next)
  %again = (s8[1792,8192]{1,0:S(1)}, s8[1792,8192]{1,0}, u32[]{:S(2)}) copy-start(%wd)
  %again-done = s8[1792,8192]{1,0:S(1)} copy-done(%again)
  ROOT %out = (bf16[32,8192], bf16[16,8,128]) tuple(%down, %core, %back-done, %next-done, %moved)"""


def test_prefetches_count_for_what_reads_them() -> None:
    # Two slices of the weights; the cache, which is written in VMEM first; scales that a copy without a scope takes.
    # What leaves VMEM, stays in it, or waits for the next run is no prefetch of this one.
    assert prefetch_bytes(program(PREFETCH), scope) == {
        "mlp": 2 * 448 * 8192,
        "attention": 16 * 8192 * 128,
        "other": 2 * 16 * 8192,
    }


def test_v4_fetches_to_a_memory_of_its_own() -> None:
    """What lies there in the end counts alike; another space, such as that of scalars, does not."""
    in_vmem = prefetch_bytes(program(PREFETCH), scope)
    assert prefetch_bytes(program(PREFETCH.replace("S(1)", "S(3)")), scope) == in_vmem
    assert prefetch_bytes(program(PREFETCH.replace("S(1)", "S(6)")), scope) == {}


def test_prefetches_in_a_loop_have_its_trips() -> None:
    lines = """  %y = f32[8]{0} parameter(0)
  ROOT %w = f32[8]{0} while(%y), condition=%test, body=%main, backend_config={"known_trip_count":{"n":"80"}}"""
    text = f"HloModule m\n\n%main () -> f32[] {{\n{PREFETCH}\n}}\n\nENTRY %entry () -> f32[] {{\n{lines}\n}}\n"
    assert prefetch_bytes(parse(text), scope)["mlp"] == 80 * 2 * 448 * 8192


def test_a_wrapped_slice_and_a_collective_are_told_apart() -> None:
    lines = """  %w = bf16[8,64]{1,0} parameter(0)
  %i = s32[] constant(3)
  %start = ((bf16[8,64]{1,0}, s32[]), bf16[1,64]{1,0:S(1)}, u32[]{:S(2)}) dynamic-slice-start(%w, %i)
  %done = bf16[1,64]{1,0:S(1)} dynamic-slice-done(%start)
  %gather = (bf16[8,64]{1,0}, bf16[16,64]{1,0:S(1)}) all-gather-start(%w), replica_groups=[1,2]<=[2], dimensions={0}
  %gather-done = bf16[16,64]{1,0:S(1)} all-gather-done(%gather)
  ROOT %r = bf16[17,64]{1,0} concatenate(%done, %gather-done), metadata={op_name="jit(step)/head/concatenate"}"""
    assert prefetch_bytes(program(lines), scope) == {"head": 2 * 64}
