"""The plan's figures beside the compiler's: what is compared with what, and when a reason is given."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.verify.claims import Claims
from slicewise.verify.reading import Exchange, Held, Reading, Refusal
from slicewise.verify.rows import AGAIN, EQUAL, FEWER, NOT_EXPLAINED, OF_THE_PROGRAM, WIDENED, Row, compare

WHY = ("weights", "KV cache", "beside", "gathers", "exchanges", "matmuls", "attention")
ALL, PART = "y × z", "z"


def claims_of(**words: Any) -> Claims:
    agreeing: dict[str, Any] = {
        "n_layers": 2,
        "devices_per_chip": 1,
        "all_axes": "y",
        "compute": "bf16",
        "declared_bytes": {},
        "line_bytes": {"weights": 1000.0, "KV cache": 500.0},
        "beside": "logits and activations",
        "beside_bytes": 40.0,
        "gather_bytes": 128.0,
        "exchange_bytes": 0.0,
        "matmul_flops": 350.0,
        "attention_flops": 70.0,
        "why": {name: f"for {name}" for name in WHY},
    }
    return Claims(**{**agreeing, **words})


def exchange(kind: str, axis: str, n_bytes: float, count: int, scope: str = "mlp") -> Exchange:
    return Exchange(kind=kind, axis=axis, scope=scope, dtype="bf16", n_bytes=n_bytes, count=count)


def by_name(rows: tuple[Row, ...]) -> dict[str, Row]:
    assert len({row.name for row in rows}) == len(rows)
    return {row.name: row for row in rows}


def test_equal_figures_have_a_ratio_of_one_and_no_reason(reading_of: Callable[..., Reading]) -> None:
    rows = compare(claims_of(), reading_of())
    compared = [row for row in rows if row.plan]
    assert [row.ratio for row in compared] == [1.0] * len(compared)
    assert [row.name for row in rows if row.why] == ["once: 1 × AllReduce bf16 over y"]
    assert [row.part for row in rows] == ["memory"] * 4 + ["collectives"] * 2 + ["flops"] * 2


def test_json_has_the_ratio(reading_of: Callable[..., Reading]) -> None:
    first = compare(claims_of(line_bytes={"weights": 800.0}), reading_of())[0]
    assert first.to_dict() == {
        "part": "memory", "name": "weights", "unit": "B", "plan": 800.0, "compiler": 1000.0, "why": "for weights",
        "ratio": 1.25,
    }  # fmt: skip


@given(off=(st.floats(-0.9, 2.0) | st.floats(-1e-3, 1e-3)).filter(lambda off: abs(abs(off) - EQUAL) > 1e-9))
def test_a_reason_is_given_exactly_where_figures_differ(off: float) -> None:
    reading = Reading(
        program="decode",
        form="loop",
        compiler="a compiler",
        compile_s=1.0,
        line_bytes={"weights": 1e9 * (1 + off), "KV cache": 1e9},
        temporary_bytes=1e9 * (1 + off),
        exchanges=(
            exchange("all-gather", ALL, 1e9 * (1 + off), 2),
            exchange("all-to-all", PART, 1e9 * (1 + off), 2),
        ),
        flops={"mlp": 1e9 * (1 + off), "dot_product": 1e9 * (1 + off)},
    )
    claims = claims_of(
        all_axes=ALL,
        line_bytes={"weights": 1e9, "KV cache": 1e9},
        beside_bytes=1e9,
        gather_bytes=1e9,
        exchange_bytes=1e9,
        matmul_flops=1e9,
        attention_flops=1e9,
    )
    rows = [row for row in compare(claims, reading) if row.name != "all of it"]
    assert len(rows) == 7
    for row in rows:
        assert row.ratio == pytest.approx(1.0 if row.name == "KV cache" else 1 + off)
        assert bool(row.why) == (abs(row.ratio - 1) > EQUAL)
    told = {f"for {name}" for name in WHY if name not in ("KV cache", *(["beside"] if off < 0 else []))}
    assert {row.why for row in rows} - {"", FEWER} in (set(), told)


def test_scales_are_said_to_be_the_programs(reading_of: Callable[..., Reading]) -> None:
    lines = {"weights": 1000.0, "KV cache": 500.0, "weight scales": 20.0}
    rows = by_name(compare(claims_of(line_bytes=lines), reading_of(line_bytes=lines)))
    assert (rows["weight scales"].ratio, rows["weight scales"].why) == (1.0, OF_THE_PROGRAM)
    assert (rows["weights"].why, rows["all of it"].why) == ("", "both with 20 B of scales")


def test_what_tiles_fill_up_is_named_where_it_is_more_than_was_declared(reading_of: Callable[..., Reading]) -> None:
    lines = {"weights": 1000.0, "KV cache": 640.0}
    reading = reading_of(line_bytes=lines, filled={"KV cache": "96 to 128", "weights": "7 to 8"})
    for declared, why in ((480.0, "for KV cache; tiles fill up 96 to 128"), (640.0, "for KV cache")):
        claims = claims_of(declared_bytes={"weights": 1000.0, "KV cache": declared})
        rows = by_name(compare(claims, reading))
        assert (rows["weights"].why, rows["KV cache"].why) == ("", why)


def test_the_largest_arrays_are_the_reason_of_a_large_rest(reading_of: Callable[..., Reading]) -> None:
    held = tuple(Held(scope=scope, n_bytes=size) for scope, size in (("head", 30.0), ("mlp", 20.0), ("other", 10.0)))
    row = by_name(compare(claims_of(beside_bytes=10.0, why={}), reading_of(held=held)))["logits and activations"]
    assert row.why == "the largest arrays of a device: 30 B of head, 20 B of mlp"
    less = by_name(compare(claims_of(beside_bytes=100.0, why={}), reading_of(held=held)))["logits and activations"]
    assert less.why == FEWER


def test_all_of_it_is_the_sum_of_its_parts(reading_of: Callable[..., Reading]) -> None:
    rows = [row for row in compare(claims_of(), reading_of()) if row.part == "memory"]
    assert rows[-1].name == "all of it"
    assert rows[-1].plan == sum(row.plan or 0.0 for row in rows[:-1])
    assert rows[-1].compiler == sum(row.compiler or 0.0 for row in rows[:-1])


def test_what_a_chip_has_is_that_of_its_devices(reading_of: Callable[..., Reading]) -> None:
    one = compare(claims_of(), reading_of())
    two = compare(claims_of(devices_per_chip=2), reading_of())
    for single, double in zip(one, two, strict=True):
        factor = 1 if single.part == "collectives" else 2
        assert double.compiler == factor * (single.compiler or 0.0)


# -- collectives -----------------------------------------------------------------------------------------------------


def test_an_all_reduce_counts_twice(reading_of: Callable[..., Reading]) -> None:
    scattered = (exchange("reduce-scatter", "y", 64.0, 2), exchange("all-gather", "y", 64.0, 2))
    moved = [
        by_name(compare(claims_of(), reading_of(exchanges=found)))[name].compiler
        for found, name in (
            (scattered, "a layer: 1 × ReduceScatter bf16 over y, 1 × AllGather bf16 over y"),
            ((exchange("all-reduce", "y", 64.0, 2),), "a layer: 1 × AllReduce bf16 over y"),
        )
    ]
    assert moved == [128.0, 128.0]


def test_what_runs_over_a_part_of_the_mesh_is_compared_with_the_exchanges(reading_of: Callable[..., Reading]) -> None:
    found = (exchange("all-reduce", ALL, 64.0, 4), exchange("all-to-all", PART, 10.0, 4, "attention"))
    rows = by_name(
        compare(claims_of(all_axes=ALL, gather_bytes=256.0, exchange_bytes=16.0), reading_of(exchanges=found))
    )
    gathers, exchanges = rows["a layer: 2 × AllReduce bf16 over y × z"], rows["a layer: 2 × AllToAll bf16 over z"]
    assert (gathers.plan, gathers.compiler, gathers.why) == (256.0, 256.0, "")
    assert (exchanges.plan, exchanges.compiler, exchanges.why) == (16.0, 20.0, "for exchanges")


@pytest.mark.parametrize(("program", "kind"), [("decode", "all-to-all"), ("prefill", "all-gather")])
def test_where_one_kv_head_is_shared_by_all_its_collectives_are_still_the_exchanges(
    reading_of: Callable[..., Reading], program: str, kind: str
) -> None:
    found = (exchange("all-reduce", "z", 64.0, 4), exchange(kind, "z", 10.0, 4, "attention"))
    claims = claims_of(all_axes="z", gather_bytes=256.0, exchange_bytes=20.0)
    rows = [row for row in compare(claims, reading_of(program=program, exchanges=found)) if row.part == "collectives"]
    assert [(row.plan, row.compiler) for row in rows] == [(256.0, 256.0), (20.0, 20.0)]


def test_numbers_of_16_bits_that_travel_in_pairs_are_said_to(reading_of: Callable[..., Reading]) -> None:
    packed = replace(exchange("all-reduce", "y", 64.0, 2), dtype="u32")
    assert "a layer: 1 × AllReduce u32 (two of 16 bits) over y" in by_name(
        compare(claims_of(), reading_of(exchanges=(packed,)))
    )


def test_what_the_plan_claims_and_the_compiler_does_not_do_is_shown(reading_of: Callable[..., Reading]) -> None:
    rows = [
        row for row in compare(claims_of(exchange_bytes=16.0), reading_of(exchanges=())) if row.part == "collectives"
    ]
    assert [(row.name, row.compiler, row.why) for row in rows] == [
        ("a layer: none", 0.0, "for gathers"),
        ("a layer: none", 0.0, "for exchanges"),
    ]


def test_one_chip_has_no_rows_of_collectives(reading_of: Callable[..., Reading]) -> None:
    rows = compare(claims_of(all_axes="", gather_bytes=0.0), reading_of(exchanges=()))
    assert {row.part for row in rows} == {"memory", "flops"}


def test_collectives_outside_the_layers_are_counted_once_a_step(reading_of: Callable[..., Reading]) -> None:
    found = (exchange("all-gather", "y", 30.0, 3, "head"), exchange("all-reduce", "y", 5.0, 1, "other"))
    row = by_name(compare(claims_of(gather_bytes=0.0), reading_of(exchanges=found)))[
        "once: 3 × AllGather bf16 over y, 1 × AllReduce bf16 over y"
    ]
    assert (row.plan, row.compiler, row.ratio) == (0.0, 3 * 30.0 + 2 * 5.0, None)
    assert row.why


def test_a_collective_without_a_name_of_the_field_keeps_the_compilers(reading_of: Callable[..., Reading]) -> None:
    rows = compare(claims_of(), reading_of(exchanges=(exchange("ragged-all-to-all", "y", 64.0, 2),)))
    assert "a layer: 1 × ragged-all-to-all bf16 over y" in by_name(rows)


# -- FLOPs -----------------------------------------------------------------------------------------------------------


def test_flops_outside_the_named_scopes_are_a_row_of_their_own(reading_of: Callable[..., Reading]) -> None:
    reading = reading_of()
    assert "elsewhere" not in by_name(compare(claims_of(), reading))
    more = replace(reading, flops={**reading.flops, "other": 8.0, "embed": 2.0})
    rows = by_name(compare(claims_of(), more))
    assert (rows["elsewhere"].plan, rows["elsewhere"].compiler) == (0.0, 10.0)
    assert rows["elsewhere"].why
    assert (rows["matmuls"].compiler, rows["attention"].compiler) == (350.0, 70.0)


def test_what_nobody_has_a_reason_for_is_said_to_be_so(reading_of: Callable[..., Reading]) -> None:
    silent = claims_of(gather_bytes=1.0, matmul_flops=300.0, attention_flops=80.0, why={})
    rows = compare(silent, reading_of())
    assert {row.name: row.why for row in rows if row.why and row.plan} == {
        "a layer: 1 × AllReduce bf16 over y": NOT_EXPLAINED,
        "matmuls": AGAIN,
        "attention": NOT_EXPLAINED,
    }


def test_every_flop_is_in_one_row(reading_of: Callable[..., Reading]) -> None:
    flops = {name: 2.0**i for i, name in enumerate(("attention", "mlp", "head", "dot_product", "layers", "other"))}
    rows = compare(claims_of(), reading_of(flops=flops))
    assert sum(row.compiler or 0.0 for row in rows if row.part == "flops") == sum(flops.values())


# -- the CPU's compiler ----------------------------------------------------------------------------------------------


def test_the_cpus_temporaries_are_not_compared(reading_of: Callable[..., Reading]) -> None:
    memory = [row for row in compare(claims_of(), reading_of(), of_tpu=False) if row.part == "memory"]
    assert [(row.name, row.plan, row.compiler) for row in memory] == [
        ("weights", 1000.0, 1000.0),
        ("KV cache", 500.0, 500.0),
        ("arguments", 1500.0, 1500.0),
    ]


@pytest.mark.parametrize(
    ("n_bytes", "dtype", "compute", "is_told"),
    [
        (64.0, "f32", "bf16", False),
        (128.0, "f32", "bf16", True),
        (128.0, "bf16", "bf16", False),
        (128.0, "f32", "fp32", False),
    ],
)
def test_the_cpus_wider_numbers_are_a_reason_where_they_move_more(
    reading_of: Callable[..., Reading], n_bytes: float, dtype: str, compute: str, is_told: bool
) -> None:
    reading = reading_of(exchanges=(replace(exchange("all-reduce", "y", n_bytes, 2), dtype=dtype),))
    rows = compare(claims_of(compute=compute), reading, of_tpu=False)
    (row,) = [row for row in rows if row.part == "collectives"]
    assert (WIDENED in row.why) == is_told


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("needed", "shown"), [(1700.0, 3400.0), (None, None)])
def test_a_refusal_leaves_the_plan_and_the_bytes_that_are_needed(
    refused: Reading, needed: float | None, shown: float | None
) -> None:
    reading = replace(refused, refusal=Refusal(needed_bytes=needed, available_bytes=None, message="too large"))
    rows = compare(claims_of(devices_per_chip=2), reading)
    assert [row.name for row in rows] == ["weights", "KV cache", "logits and activations", "all of it"]
    assert [row.plan for row in rows] == [1000.0, 500.0, 40.0, 1540.0]
    assert [row.compiler for row in rows] == [None, None, None, shown]
    assert [row.ratio for row in rows[:-1]] == [None] * 3
    assert all(row.part == "memory" for row in rows)
