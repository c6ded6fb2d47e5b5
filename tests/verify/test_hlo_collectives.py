"""Collectives in compiled programs: bytes, groups, and the forms that XLA hides them in."""

import pytest

from slicewise.verify.hlo import parse
from slicewise.verify.hlo_collectives import Collective, collectives, replica_groups

PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))


def entry(*lines: str, before: str = "") -> tuple[Collective, ...]:
    """The collectives of a program of 8 devices whose only input is `x`, bf16 of 4 by 8."""
    body = "\n".join(("%x = bf16[4,8]{1,0} parameter(0)", *lines)).replace("%", "  %", 1).replace("\n", "\n  ")
    return collectives(
        parse(
            f"HloModule m, num_partitions=8\n\n{before}\nENTRY %main (x: bf16[4,8]) -> bf16[4,8] {{\n{body}\n"
            "  ROOT %done = bf16[4,8]{1,0} negate(%x)\n}\n"
        )
    )


def alone(*lines: str, before: str = "") -> Collective:
    (found,) = entry(*lines, before=before)
    return found


# -- bytes of each kind: x is 4 x 8 x 2 = 64 B -----------------------------------------------------------------------


def test_an_all_gather_counts_its_output() -> None:
    found = alone(
        "%g = bf16[4,16]{1,0} all-gather(%x), channel_id=1, replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={1},"
        ' use_global_device_ids=true, metadata={op_name="jit(step)/mlp/all_gather"}'
    )
    assert found == Collective(
        kind="all-gather",
        dtype="bf16",
        shape=(4, 16),
        n_bytes=128,
        group_size=2,
        groups=PAIRS,
        times=1,
        op_name="jit(step)/mlp/all_gather",
    )


@pytest.mark.parametrize(
    ("line", "kind", "shape", "size", "group_size"),
    [
        ("bf16[4,8]{1,0} all-reduce(%x), replica_groups={{0,1},{2,3},{4,5},{6,7}}", "all-reduce", (4, 8), 64, 2),
        ("bf16[4,2]{1,0} reduce-scatter(%x), replica_groups=[2,4]<=[8]", "reduce-scatter", (4, 8), 64, 4),
        ("bf16[4,8]{1,0} all-to-all(%x), replica_groups=[2,4]<=[8], dimensions={0}", "all-to-all", (4, 8), 256, 4),
        (
            "bf16[4,8]{1,0} collective-permute(%x), source_target_pairs={{0,1},{1,0}}",
            "collective-permute",
            (4, 8),
            64,
            2,
        ),
        ("bf16[4,8]{1,0} all-reduce(%x), replica_groups={}", "all-reduce", (4, 8), 64, 8),
    ],
)
def test_each_kind_counts_its_whole_array(
    line: str, kind: str, shape: tuple[int, ...], size: int, group_size: int
) -> None:
    found = alone(f"%c = {line}")
    assert (found.kind, found.shape, found.n_bytes, found.group_size) == (kind, shape, size, group_size)


def test_a_collective_of_several_arrays_counts_them_all_and_shows_the_largest() -> None:
    found = alone(
        "%y = f32[3]{0} constant({1, 2, 3})",
        "%c = (bf16[4,8]{1,0}, f32[3]{0}) all-reduce(%x, %y), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add",
    )
    assert (found.dtype, found.shape, found.n_bytes) == ("bf16", (4, 8), 64 + 12)


def test_an_all_to_all_of_a_tuple_has_one_array_for_each_device() -> None:
    # XLA:CPU: 2 devices exchange arrays of 64 B; each holds 128 B, and the group 256 B.
    found = alone("%c = (bf16[4,8]{1,0}, bf16[4,8]{1,0}) all-to-all(%x, %x), replica_groups={{0,1},{2,3},{4,5},{6,7}}")
    assert (found.kind, found.n_bytes) == ("all-to-all", 256)


# -- pairs, wrappers, fusions ----------------------------------------------------------------------------------------


def test_a_start_and_its_done_are_one() -> None:
    found = entry(
        "%s = (bf16[4,8]{1,0}, bf16[4,16]{1,0}) all-gather-start(%x), replica_groups=[4,2]<=[8], dimensions={1}",
        "%d = bf16[4,16]{1,0} all-gather-done(%s)",
        "%p = (bf16[4,8]{1,0}, bf16[4,8]{1,0:S(1)}, u32[]{:S(2)}, u32[]{:S(2)}) collective-permute-start(%x),"
        " source_target_pairs={{0,2},{2,4}}",
        "%q = bf16[4,8]{1,0} collective-permute-done(%p)",
    )
    assert [(each.kind, each.shape, each.n_bytes) for each in found] == [
        ("all-gather", (4, 16), 128),
        ("collective-permute", (4, 8), 64),
    ]
    assert found[1].groups == ((0, 2), (2, 4))


@pytest.mark.parametrize("start", ["async-start", "reduce-scatter-start"])
def test_a_wrapped_collective_is_one(start: str) -> None:
    found = alone(
        f"%s = ((bf16[4,8]{{1,0}}), bf16[4,1]{{1,0}}, s32[]) {start}(%x), calls=%wrapped",
        f"%d = bf16[4,1]{{1,0}} {start.replace('start', 'done')}(%s)",
        before="%wrapped (p: bf16[4,8]) -> bf16[4,1] {\n  %p = bf16[4,8]{1,0} parameter(0)\n"
        "  ROOT %r = bf16[4,1]{1,0} reduce-scatter(%p), replica_groups=[1,8]<=[8], dimensions={1}, to_apply=%add\n}\n",
    )
    assert (found.kind, found.n_bytes, found.group_size) == ("reduce-scatter", 64, 8)


ALL_REDUCE_SCATTER = """%all-reduce-scatter (input: f32[1024,8192]) -> f32[1024,2048] {
  %input = f32[1024,8192]{1,0:T(8,128)} parameter(0)
  %all-reduce.4 = f32[1024,8192]{1,0:T(8,128)} all-reduce(%input), channel_id=9, \
replica_groups={{0,2,4,6},{1,3,5,7}}, use_global_device_ids=true, to_apply=%add.1.clone
  %constant.32 = u32[] constant(0)
  %start = u32[]{:T(128)} partition-id()
  ROOT %kept = f32[1024,2048]{1,0:T(8,128)} dynamic-slice(%all-reduce.4, %constant.32, %start), \
dynamic_slice_sizes={1024,2048}
}
"""


def test_a_fusion_of_an_all_reduce_and_a_slice_is_a_reduce_scatter() -> None:
    lines = (
        "%y = f32[1024,8192]{1,0} convert(%x)",
        '%f = f32[1024,2048]{1,0} fusion(%y), calls=%all-reduce-scatter, metadata={op_name="jit(step)/mlp/dot"}',
    )
    found = alone(*lines, before=ALL_REDUCE_SCATTER)
    assert (found.kind, found.dtype, found.shape) == ("reduce-scatter", "f32", (1024, 8192))
    assert (found.n_bytes, found.group_size) == (4 * 1024 * 8192, 4)
    assert found.op_name == "jit(step)/mlp/dot"
    # Where the slice is of something else, the fusion is an AllReduce.
    other = ALL_REDUCE_SCATTER.replace("dynamic-slice(%all-reduce.4", "dynamic-slice(%input")
    assert alone(*lines, before=other).kind == "all-reduce"


def test_a_bare_all_reduce_stays_one_and_takes_the_name_of_what_it_reduces() -> None:
    found = alone(
        '%y = bf16[4,8]{1,0} negate(%x), metadata={op_name="jit(step)/attention/dot_general"}',
        "%moved = bf16[4,8]{1,0} copy(%y)",
        '%zero = bf16[4,8]{1,0} broadcast(%x), metadata={op_name="jit(step)/embed/zeros"}',
        "%into = bf16[4,8]{1,0} dynamic-update-slice(%zero, %moved)",
        "%all-reduce = bf16[4,8]{1,0} all-reduce(%into), channel_id=2, replica_groups={{0,1,2,3,4,5,6,7}}",
        "%kept = bf16[4,1]{1,0} dynamic-slice(%all-reduce, %x)",
    )
    assert (found.kind, found.op_name) == ("all-reduce", "jit(step)/attention/dot_general")


def test_an_all_gather_that_fusions_start_carry_on_and_end_is_one() -> None:
    gather = (
        "  %g{0} = bf16[4,32]{{1,0}} all-gather(%p{0}), channel_id=8, replica_groups=[2,4]<=[8], dimensions={{1}},"
        ' frontend_attributes={{chain_id="0"}}, backend_config={{"async_collective_fusion_config":{{}}}}\n'
    )
    computation = "%part{0} (p{0}: bf16[4,8]) -> bf16[4,32] {{\n  %p{0} = bf16[4,8]{{1,0}} parameter(0)\n" + gather
    start = '  ROOT %c1 = (bf16[4,8]{1,0}) custom-call(%g1), custom_call_target="AsyncCollectiveStart"\n}\n\n'
    during = "  ROOT %t2 = (bf16[4,32]{1,0}) tuple(%g2)\n}\n\n"
    done = '  ROOT %c3 = bf16[4,32]{1,0} custom-call(%p3, %g3), custom_call_target="AsyncCollectiveDone"\n}\n\n'
    found = alone(
        "%async-collective-start = (bf16[4,8]{1,0}) fusion(%x), kind=kCustom, calls=%part1",
        "%fusion.13 = (bf16[4,32]{1,0}) fusion(%x), kind=kOutput, calls=%part2",
        "%async-collective-done = bf16[4,32]{1,0} fusion(%x), kind=kCustom, calls=%part3",
        before="".join(computation.format(at) + end for at, end in ((1, start), (2, during), (3, done))),
    )
    assert (found.kind, found.n_bytes, found.group_size) == ("all-gather", 256, 4)


def test_a_collective_in_a_loop_runs_once_a_trip() -> None:
    found = alone(
        '%loop = bf16[4,8]{1,0} while(%x), body=%body, condition=%test, backend_config={"known_trip_count":{"n":"80"}}',
        before="%body (p: bf16[4,8]) -> bf16[4,8] {\n  %p = bf16[4,8]{1,0} parameter(0)\n"
        "  ROOT %r = bf16[4,8]{1,0} all-reduce(%p), replica_groups=[1,8]<=[8], to_apply=%add\n}\n",
    )
    assert (found.times, found.n_bytes) == (80, 64)


# -- groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", PAIRS),
        ("{{0,1,2},{3}}", ((0, 1, 2), (3,))),
        ("[4,2]<=[8]", PAIRS),
        # 0 .. 7 in 4 rows of 2, transposed: 0 2 4 6, 1 3 5 7.
        ("[2,4]<=[4,2]T(1,0)", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("[4,2]<=[2,2,2]T(1,0,2)", ((0, 1), (4, 5), (2, 3), (6, 7))),
        ("mesh['x'=4,'y'=2] {'y'}", PAIRS),
        ("mesh['x'=4,'y'=2] {'x'}", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("mesh['x'=4,'y'=2] {'x','y'}", ((0, 1, 2, 3, 4, 5, 6, 7),)),
        ("mesh['x'=2,'y'=2,'z'=2] {'z','x'}", ((0, 4, 1, 5), (2, 6, 3, 7))),
        # x is cut into 2 parts of 4: the groups run inside a part, or along the first of each.
        ("mesh['x'=8] {'x':(2)4}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['x'=8] {'x':(1)2}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['x'=8] {'x':(2)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['x'=2,'y'=2], device_ids=(0,2,1,3) {'y'}", ((0, 2), (1, 3))),
        ("mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)) {'y'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("{}", (tuple(range(8)),)),
    ],
)
def test_groups_are_read_in_every_notation(text: str, groups: tuple[tuple[int, ...], ...]) -> None:
    attributes = f"channel_id=1, replica_groups={text}, dimensions={{0}}, use_global_device_ids=true"
    assert replica_groups(attributes, 8) == groups
