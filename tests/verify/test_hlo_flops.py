"""FLOPs of compiled programs, in each form that XLA gives a matrix multiplication."""

import itertools

import pytest

from slicewise.verify.hlo import parse, scope_of
from slicewise.verify.hlo_flops import flops, instruction_flops


def of(result: str, left: str, right: str, attributes: str, opcode: str = "convolution") -> int:
    """FLOPs of one instruction with two operands, given their shapes."""
    module = parse(
        "HloModule m\n\nENTRY %main () -> f32[] {\n"
        f"  %l = {left} parameter(0)\n  %r = {right} parameter(1)\n"
        f"  ROOT %out = {result} {opcode}(%l, %r), {attributes}\n}}\n"
    )
    main = module.computations["main"]
    return instruction_flops(main, main.instructions["out"])


# -- LLaMA 70B on 16 chips of v5e, 8 ways by heads and 2 by batch: 32 sequences, 8192 tokens -------------------------


@pytest.mark.parametrize(
    ("result", "left", "right", "attributes", "expected"),
    [
        pytest.param(
            "f32[32,1792]{1,0:T(8,128)}",
            "bf16[32,8192]{1,0:T(8,128)(2,1)}",
            "s8[8192,1792]{1,0:T(8,128)(4,1)}",
            "dim_labels=bf_io->bf",
            2 * 32 * 8192 * 1792,
            id="gate",
        ),
        pytest.param(
            "f32[16,8,8192]{2,1,0}",
            "bf16[16,8,128]{2,1,0}",
            "s8[16,8192,128]{2,1,0}",
            "window={size=16 stride=15 lhs_dilate=16}, dim_labels=0bf_0oi->0bf",
            2 * 16 * 8 * 8192 * 128,
            id="bkgh,bksh->bkgs",
        ),
        pytest.param(
            "f32[16,8,128]{2,1,0}",
            "bf16[16,8,8192]{2,1,0}",
            "s8[16,8192,128]{2,1,0}",
            "window={size=16 stride=15 lhs_dilate=16}, dim_labels=0bf_0io->0bf",
            2 * 16 * 8 * 8192 * 128,
            id="bkgs,bksh->bkgh",
        ),
        # A part of a prefill: 1024 queries of 4 heads, which share the keys and values of 2048 tokens. The heads are
        # positions of the kernel, of which each of the output meets one.
        pytest.param(
            "f32[2048,1024,4]{1,0,2:T(8,128)}",
            "bf16[2048,128,1]{0,1,2:T(8,128)(2,1)}",
            "bf16[1024,4,128]{2,0,1:T(8,128)(2,1)}",
            "window={size=4 pad=3_3 rhs_reversal=1}, dim_labels=bf0_o0i->bf0",
            2 * 4 * 2048 * 1024 * 128,
            id="queries by keys",
        ),
        pytest.param(
            "f32[128,4,1024]{2,0,1:T(8,128)}",
            "bf16[2048,128,1]{0,1,2:T(8,128)(2,1)}",
            "bf16[4,1024,2048]{1,2,0:T(8,128)(2,1)}",
            "window={size=4 pad=3_3 rhs_reversal=1}, dim_labels=fb0_0oi->b0f",
            2 * 4 * 2048 * 1024 * 128,
            id="scores by values",
        ),
        # A part of a product whose sums go round a ring: 2 blocks of 512 columns.
        pytest.param(
            "f32[1024,2,512]{2,0,1}",
            "bf16[1024,1792,1]{1,0,2}",
            "bf16[1792,2,512]{2,0,1}",
            "window={size=2 pad=1_1 rhs_reversal=1}, dim_labels=bf0_i0o->b0f",
            2 * 1024 * 1792 * 1024,
            id="blocks",
        ),
    ],
)
def test_a_dot_as_a_convolution_costs_what_the_dot_costs(
    result: str, left: str, right: str, attributes: str, expected: int
) -> None:
    assert of(result, left, right, attributes) == expected


# -- convolutions in general -----------------------------------------------------------------------------------------

WINDOWS = [
    {"size": 3},
    {"size": 3, "stride": 2, "pad": (1, 1)},
    {"size": 5, "pad": (4, 4), "lhs_dilate": 3},
    {"size": 4, "stride": 3, "pad": (0, 0), "lhs_dilate": 4},
    {"size": 4, "stride": 2, "pad": (5, 2), "lhs_dilate": 6, "rhs_dilate": 3},
    {"size": 2, "stride": 1, "pad": (-2, -1), "rhs_dilate": 2},
    {"size": 3, "stride": 4, "pad": (0, 3), "lhs_dilate": 2, "rhs_dilate": 4},
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("left", [6, 7, 16])
def test_only_products_that_meet_an_element_count(window: dict, left: int) -> None:
    low, high = window.get("pad", (0, 0))
    stride, apart, step = (window.get(name, 1) for name in ("stride", "lhs_dilate", "rhs_dilate"))
    length = (left - 1) * apart + 1 + low + high
    out = (length - (window["size"] - 1) * step - 1) // stride + 1
    elements = {low + apart * at for at in range(left)}
    met = sum(o * stride + k * step in elements for o, k in itertools.product(range(out), range(window["size"])))
    text = " ".join(f"{name}={'_'.join(map(str, at)) if name == 'pad' else at}" for name, at in window.items())
    shapes = f"f32[2,{out},5]", f"f32[2,{left},3]", f"f32[{window['size']},3,5]"
    assert met > 0
    # 2 in the batch, 3 features in, 5 out.
    assert of(*shapes, f"window={{{text}}}, dim_labels=b0f_0io->b0f") == 2 * 2 * 3 * 5 * met


def test_spatial_dimensions_multiply_and_groups_divide() -> None:
    shapes = "f32[2,6,6,8]{3,2,1,0}", "f32[2,8,7,4]{3,2,1,0}", "f32[3,2,2,8]{3,2,1,0}"
    attributes = "window={size=3x2}, dim_labels=b01f_01io->b01f"
    # 6 x 3 and 6 x 2 pairs; 4 features in, in 2 groups; 8 out.
    assert of(*shapes, f"{attributes}, feature_group_count=2") == 2 * 2 * (6 * 3) * (6 * 2) * (4 // 2) * 8
    assert of(*shapes, f"{attributes}, batch_group_count=2") == 2 * (2 // 2) * (6 * 3) * (6 * 2) * 4 * 8


def test_a_convolution_without_labels_is_passed_over() -> None:
    assert of("f32[2,2]", "f32[2,2]", "f32[2,2]", "window={size=1}") == 0


# -- other forms -----------------------------------------------------------------------------------------------------


def test_a_dot_counts_its_contracted_dimensions() -> None:
    batched = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"
    assert of("f32[16,2,32]", "bf16[16,2,64]", "bf16[16,64,32]", batched, "dot") == 2 * 16 * 2 * 32 * 64
    several = "lhs_contracting_dims={0,2}, rhs_contracting_dims={0,1}"
    assert of("f32[3,7]", "f32[2,3,5]", "f32[2,5,7]", several, "dot") == 2 * 3 * 7 * (2 * 5)
    assert of("f32[3,7]", "f32[3]", "f32[7]", "lhs_contracting_dims={}", "dot") == 2 * 3 * 7


@pytest.mark.parametrize("right", ["f32[4,64,32]", "f32[4,32,64]"])
def test_a_call_of_a_matmul_library_counts_either_way_round(right: str) -> None:
    target = 'custom_call_target="__onednn$matmul"'
    assert of("f32[4,8,32]", "f32[4,8,64]", right, target, "custom-call") == 2 * 4 * 8 * 32 * 64
    assert of("f32[4,8,32]", "f32[4,8,64]", right, 'custom_call_target="ConcatBitcast"', "custom-call") == 0


VECTOR = """HloModule m

%fused (w: s8[8192,8016], x: f32[8192]) -> f32[8016] {
  %w = f32[8192,8016]{0,1} parameter(0)
  %x = f32[8192,8016]{0,1} parameter(1)
  %product = f32[8192,8016]{0,1:T(8,128)} multiply(%w, %x)
  %zero = f32[] constant(0)
  ROOT %sum = f32[8016]{0} reduce(%product, %zero), dimensions={0}, to_apply=%add, \
metadata={op_name="jit(step)/head/bd,dv->bv/dot_general" stack_frame_id=58}
}

ENTRY %main (w: f32[8192,8016]) -> f32[8016] {
  %p = f32[8192,8016]{0,1} parameter(0)
  ROOT %f = f32[8016]{0} fusion(%p, %p), kind=kLoop, calls=%fused
}
"""


def by_scope(text: str) -> dict[str, float]:
    return flops(parse(text), lambda name: scope_of(name, ("mlp", "head")))


def test_a_dot_with_a_vector_is_the_reduction_of_a_product() -> None:
    assert by_scope(VECTOR) == {"head": 2 * 8192 * 8016}
    # Other sums are no dots.
    assert by_scope(VECTOR.replace("/dot_general", "/reduce_sum")) == {}
    assert by_scope(VECTOR.replace("multiply(", "add(")) == {}


def test_flops_are_counted_where_they_run_and_as_often() -> None:
    text = """HloModule m

%inner (a: bf16[32,8192], b: bf16[8192,1792]) -> f32[32,1792] {
  %a = bf16[32,8192]{1,0} parameter(0)
  %b = bf16[8192,1792]{1,0} parameter(1)
  ROOT %dot.4 = f32[32,1792]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (t: (bf16[32,8192], bf16[8192,1792])) -> (bf16[32,8192], bf16[8192,1792]) {
  %t = (bf16[32,8192]{1,0}, bf16[8192,1792]{1,0}) parameter(0)
  %h = bf16[32,8192]{1,0} get-tuple-element(%t), index=0
  %w = bf16[8192,1792]{1,0} get-tuple-element(%t), index=1
  %ynn_fusion = f32[32,1792]{1,0} fusion(%h, %w), kind=kCustom, calls=%inner
  %used = bf16[32,1792]{1,0} convert(%ynn_fusion), metadata={op_name="jit(step)/mlp/convert"}
  ROOT %out = (bf16[32,8192]{1,0}, bf16[8192,1792]{1,0}) tuple(%h, %w)
}

ENTRY %main (x: bf16[32,8192], w: bf16[8192,8016]) -> f32[32,8016] {
  %x = bf16[32,8192]{1,0} parameter(0)
  %v = bf16[8192,8016]{1,0} parameter(1)
  %all = (bf16[32,8192]{1,0}, bf16[8192,1792]{1,0}) tuple(%x, %v)
  %loop = (bf16[32,8192]{1,0}, bf16[8192,1792]{1,0}) while(%all), condition=%test, body=%body, \
backend_config={"known_trip_count":{"n":"80"}}
  ROOT %c = f32[32,8016]{1,0} convolution(%x, %v), dim_labels=bf_io->bf, \
metadata={op_name="jit(step)/head/bd,dv->bv/dot_general"}
}
"""
    assert by_scope(text) == {"mlp": 80 * 2 * 32 * 8192 * 1792, "head": 2 * 32 * 8192 * 8016}
