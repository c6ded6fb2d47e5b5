"""Compiled programs as text: lines, shapes, how often computations run, and scopes."""

import pytest

from slicewise.errors import InputError
from slicewise.verify.hlo import labels, parse, scope_of
from slicewise.verify.hlo_text import arrays, n_bytes

SCOPES = ("embed", "layers", "attention", "cache_write", "mlp", "head")

SMALL = """
HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}, num_partitions=16

FileNames
1 "step.py"

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0:T(128)} parameter(0)
  ROOT %twice = f32[8]{0:T(128)} add(%p, %p), metadata={op_name="jit(step)/mlp/add" stack_frame_id=1}
}

ENTRY %main (x: f32[8]) -> (f32[8], s32[]) {
  %x = f32[8]{0:T(128)} parameter(0), sharding={devices=[16]<=[16]}, metadata={op_name="w[\\'x\\']"}
  %c = s32[]{:T(128)} constant(-3)
  %f = f32[8]{0:T(128)S(1)} fusion(%x), kind=kLoop, calls=%fused, backend_config={"a":{"estimated_cycles":"1826"}}
  %odd = (f32[8]{0}, /*index=1*/s32[]) brand-new-op(f32[8]{0:T(128)(2,1)} %f, /*index=1*/(s32[]) %c), flag={(1)}
  ROOT %out = (f32[8]{0:T(128)}, s32[]{:T(128)}) tuple(%f, %c)
}, execution_thread="host"
"""


# -- lines -----------------------------------------------------------------------------------------------------------


def test_a_module_has_its_computations_and_instructions_as_printed() -> None:
    module = parse(SMALL)
    assert (module.name, module.n_devices, module.entry) == ("jit_step", 16, "main")
    assert {name: list(each.instructions) for name, each in module.computations.items()} == {
        "fused": ["p", "twice"],
        "main": ["x", "c", "f", "odd", "out"],
    }
    fusion = module.computations["main"].instructions["f"]
    assert (fusion.opcode, fusion.shape, fusion.operands) == ("fusion", "f32[8]{0:T(128)S(1)}", ("x",))
    assert (fusion.called, fusion.cycles, fusion.op_name, fusion.root) == (("fused",), 1826, "", False)
    assert fusion.attributes.startswith("kind=kLoop, calls=%fused, ")


def test_parameters_and_constants_have_a_literal_and_no_operands() -> None:
    main = parse(SMALL).computations["main"]
    assert [(main.instructions[name].literal, main.instructions[name].operands) for name in ("x", "c")] == [
        ("0", ()),
        ("-3", ()),
    ]
    assert main.parameters[0].op_name == r"w[\'x\']"


def test_an_unknown_opcode_and_operands_with_shapes_are_read_alike() -> None:
    odd = parse(SMALL).computations["main"].instructions["odd"]
    assert (odd.opcode, odd.operands, odd.attributes) == ("brand-new-op", ("f", "c"), "flag={(1)}")


def test_users_come_in_the_order_of_the_schedule() -> None:
    main = parse(SMALL).computations["main"]
    assert [user.name for user in main.users["f"]] == ["odd", "out"]
    assert main.root is main.instructions["out"]
    assert "out" not in main.users


def test_a_text_without_an_entry_is_refused() -> None:
    with pytest.raises(InputError, match="no ENTRY computation"):
        parse("HloModule jit_step\n\n%fused () -> f32[] {\n}\n")


# -- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "dtype", "dims", "memory", "size"),
    [
        ("bf16[32,8192]{1,0:T(8,128)(2,1)S(1)}", "bf16", (32, 8192), 1, 2 * 32 * 8192),
        ("s8[16,1,8192,128]{3,2,1,0:T(32,128)(4,1)}", "s8", (16, 1, 8192, 128), 0, 16 * 8192 * 128),
        ("s4[8192,64]{0,1:T(64,128)(8,1)E(4)S(1)}", "s4", (8192, 64), 1, 8192 * 64 // 2),
        ("u4[3]", "u4", (3,), 0, 2),
        ("s4[8]{0:T(8)E(8)}", "s4", (8,), 0, 8),
        ("f8e4m3fn[5,7]{1,0}", "f8e4m3fn", (5, 7), 0, 35),
        ("f8e5m2[5]", "f8e5m2", (5,), 0, 5),
        ("f16[3]", "f16", (3,), 0, 6),
        ("pred[16]{0:T(512)(128)(4,1)}", "pred", (16,), 0, 16),
        ("u32[]{:T(128)S(6)}", "u32", (), 6, 4),
        ("s32[<=10,4]", "s32", (10, 4), 0, 160),
        ("token[]", "token", (), 0, 0),
    ],
)
def test_a_shape_says_dtype_dims_memory_and_bytes(
    shape: str, dtype: str, dims: tuple[int, ...], memory: int, size: int
) -> None:
    (array,) = arrays(shape)
    assert (array.dtype, array.dims, array.memory, array.n_bytes) == (dtype, dims, memory, size)


def test_a_tuple_is_its_arrays_in_order() -> None:
    shape = "((s8[8,4]{1,0:T(32,128)(4,1)}), s8[2,4]{1,0:S(1)}, /*index=2*/s32[]{:S(2)})"
    assert [(array.dims, array.memory) for array in arrays(shape)] == [((8, 4), 0), ((2, 4), 1), ((), 2)]
    assert n_bytes(shape) == 32 + 8 + 4


# -- loops -----------------------------------------------------------------------------------------------------------

LOOP = """HloModule jit_step

%inner.body (t.2: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t.2 = (s32[], f32[8]{0}) parameter(0)
  %j = s32[] get-tuple-element(%t.2), index=0
  %y = f32[8]{0} get-tuple-element(%t.2), index=1
  %two = s32[] constant(2)
  %j.next = s32[] add(%two, %j)
  ROOT %inner.out = (s32[], f32[8]{0}) tuple(%j.next, %y)
}

%inner.test (t.3: (s32[], f32[8])) -> pred[] {
  %t.3 = (s32[], f32[8]{0}) parameter(0)
  %j.3 = s32[] get-tuple-element(%t.3), index=0
  %limit = s32[] constant(9)
  ROOT %less = pred[] compare(%j.3, %limit), direction=LT
}

%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %x.1 = f32[8]{0} get-tuple-element(%t), index=1
  %four = s32[] constant(4)
  %four.copy = s32[] copy(%four)
  %start = (s32[], f32[8]{0}) tuple(%four.copy, %x.1)
  ROOT %inner = (s32[], f32[8]{0}) while(%start), condition=%inner.test, body=%inner.body
}

%test (t.1: (s32[], f32[8])) -> pred[] {
  %t.1 = (s32[], f32[8]{0}) parameter(0)
  ROOT %always = pred[] constant(true)
}

ENTRY %main (x: (s32[], f32[8])) -> (s32[], f32[8]) {
  %x = (s32[], f32[8]{0}) parameter(0)
  ROOT %outer = (s32[], f32[8]{0}) while(%x), condition=%test, body=%body, \
backend_config={"known_trip_count":{"n":"80"}}
}
"""


def test_bodies_and_conditions_run_once_a_trip_and_nesting_multiplies() -> None:
    module = parse(LOOP)
    # 80 as XLA notes, and from 4 to 9 in steps of 2: 4, 6, 8.
    assert dict(module.times) == {"main": 1, "body": 80, "test": 80, "inner.body": 240, "inner.test": 240}
    assert next(iter(module.times)) == "main"
    assert module.unknown_trip_count == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("direction=LT", "direction=NE"),
        ("constant(9)", "parameter(1)"),
        ("add(%two, %j)", "multiply(%two, %j)"),
        ("constant(2)", "constant(-2)"),
        ("copy(%four)", "negate(%four)"),
        ("tuple(%j.next, %y)", "fusion(%j.next, %y)"),
    ],
)
def test_a_loop_that_does_not_count_to_a_constant_runs_once_and_is_named(before: str, after: str) -> None:
    module = parse(LOOP.replace(before, after))
    assert (module.times["inner.body"], module.unknown_trip_count) == (80, ("inner",))


def test_an_empty_loop_runs_not_at_all() -> None:
    assert parse(LOOP.replace("constant(9)", "constant(3)")).times["inner.body"] == 0


def test_what_several_call_runs_as_often_as_all_of_them() -> None:
    text = """HloModule m, replica_count=4, num_partitions=2

%branch (p: f32[]) -> f32[] {
  ROOT %p = f32[] parameter(0)
}

%dead (q: f32[]) -> f32[] {
  ROOT %q = f32[] parameter(0)
}

ENTRY %main (x: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %k = s32[] constant(0)
  %a = f32[] call(%x), to_apply=%branch
  ROOT %b = f32[] conditional(%k, %a, %a), branch_computations={%branch, %branch}
}
"""
    module = parse(text)
    assert dict(module.times) == {"main": 1, "branch": 3}
    assert module.n_devices == 8
    assert module.callers["branch"][1].name == "a"
    assert not module.is_fused("branch")
    assert not module.is_fused("main")


# -- scopes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op_name", "scope"),
    [
        ("jit(step)/shard_map/layers/attention/core/bkgh,bksh->bkgs/dot_general", "attention"),
        ("jit(step)/shard_map/while/body/layers/attention/cache_write/mul", "cache_write"),
        ("jit(step)/layers/while", "layers"),
        ("jit(step)/attention/reshape;mlp/reshape", "mlp"),
        ("jit(step)/attentions/mul", "other"),
        ("", "other"),
    ],
)
def test_the_innermost_scope_counts(op_name: str, scope: str) -> None:
    assert scope_of(op_name, SCOPES) == scope


def test_what_has_no_scope_belongs_to_its_first_user_or_else_its_caller() -> None:
    text = """HloModule m

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %a = f32[8]{0} negate(%p), metadata={op_name="jit(step)/embed/neg"}
  ROOT %r = f32[8]{0} copy(%a)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0), metadata={op_name="x"}
  %s = f32[8]{0} copy(%x)
  %f = f32[8]{0} fusion(%s), kind=kLoop, calls=%fused, metadata={op_name="jit(step)/mlp/neg"}
  %late = f32[8]{0} copy(%f), metadata={op_name="jit(step)/convert.9"}
  %t = (f32[8]{0}) tuple(%late)
  ROOT %e = f32[8]{0} exponential(%t), metadata={op_name="jit(step)/head/exp"}
}
"""
    found = labels(parse(text), lambda name: scope_of(name, SCOPES))
    assert found == {
        "main": {"x": "mlp", "s": "mlp", "f": "mlp", "late": "other", "t": "other", "e": "head"},
        "fused": {"p": "embed", "a": "embed", "r": "mlp"},
    }
