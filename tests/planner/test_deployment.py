"""A deployment: a grid equals its points, parts sum up, and faster hardware is never slower."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slicewise.catalog.load import find_chip, load_model
from slicewise.catalog.slices import load_slice, standard_slices
from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner.conventions import BOOK, Conventions
from slicewise.planner.deployment import Deployment
from slicewise.planner.step import EXPECTED, LEDGER, RATES, TIMES
from slicewise.spec.model import reshaped
from slicewise.spec.precision import Precision
from slicewise.spec.workload import Workload

PREFILL = ("prefill_flops", "prefill_flops_s", "prefill_ici_s", "prefill_s", "handoff_bytes")
NAMES = (*LEDGER, *TIMES, *RATES, "kv_read_bytes", "max_context_tokens", "shared_s", *PREFILL)
SLOWED = ("step_roofline_s", "step_overlapped_s", "step_serial_s", "prefill_s", "shared_s")
BATCH, FACTOR = st.integers(1, 100_000), st.floats(1.0, 16.0)
ROUNDING = 1 + 1e-12


def simple(slice_: str = "v5e:4x4", conventions: Conventions | None = None, **changes: Any) -> Deployment:
    return Deployment(
        model=load_model("llama-3-70b"),
        slice=load_slice(slice_),
        precision=Precision(weights="int8", kv="int8"),
        workload=Workload(prompt_tokens=8192, output_tokens=512, context_tokens=8448, capacity_context_tokens=8704),
        conventions=conventions or Conventions(),
        mfu=0.4,
        price=None,
    ).with_(**changes)


def on_chip(deployment: Deployment, **changes: Any) -> Deployment:
    """The same deployment on chips that are changed."""
    chip = replace(deployment.slice.chip, **changes)
    return deployment.with_(slice=replace(deployment.slice, chip=chip))


def never_slower(better: Deployment, base: Deployment, batch: int) -> None:
    """Stage by stage: which of them is the slowest may change with the chip, and with it what the other views show."""
    pace = base.paced_by("step_s").stage
    faster, slower = (d.with_(stage=pace).evaluate(SLOWED, batch=batch) for d in (better, base))
    for name in SLOWED:
        assert faster[name] <= slower[name] * ROUNDING, name


# -- grids -----------------------------------------------------------------------------------------------------------


@given(deployment=..., batches=st.lists(BATCH, min_size=1, max_size=6))
def test_a_grid_of_batches_equals_its_points(deployment: Deployment, batches: list[int]) -> None:
    grid = deployment.evaluate(NAMES, batch=np.array(batches, dtype=float))
    for index, batch in enumerate(batches):
        point = deployment.evaluate(NAMES, batch=batch)
        for name in NAMES:
            column = np.broadcast_to(np.asarray(grid[name], dtype=float), (len(batches),))
            assert column[index] == pytest.approx(float(point[name]), rel=1e-14), name


@given(deployment=..., batch=BATCH, contexts=st.lists(st.integers(1, 2**20), min_size=1, max_size=6))
def test_a_grid_of_contexts_equals_its_points(deployment: Deployment, batch: int, contexts: list[int]) -> None:
    grid = deployment.value("step_s", batch=batch, context_tokens=np.array(contexts, dtype=float))
    points = [deployment.value("step_s", batch=batch, context_tokens=context) for context in contexts]
    assert grid.tolist() == pytest.approx(points, rel=1e-14)


# -- parts and wholes ------------------------------------------------------------------------------------------------


@given(deployment=..., batch=BATCH)
def test_the_ledger_adds_up(deployment: Deployment, batch: int) -> None:
    v = deployment.evaluate([*NAMES, "kv_bytes_per_sequence", "kv_budget_bytes"], batch=batch)
    assert v["total_bytes"] == v["weight_bytes"] + v["kv_bytes"] + v["activation_bytes"]
    assert v["free_bytes"] == v["hbm_bytes"] - v["total_bytes"]
    assert v["kv_budget_bytes"] == v["hbm_bytes"] - v["weight_bytes"]
    assert v["kv_bytes"] == pytest.approx(batch * v["kv_bytes_per_sequence"] * v["kv_replication"])
    assert v["total_bytes_per_chip"] * deployment.slice.n_chips == pytest.approx(v["total_bytes"])
    ranks, shards = deployment.ranks, (v["kv_head_shards"], v["kv_batch_shards"])
    if ranks:
        assert shards == (math.gcd(ranks.tp, deployment.model.n_kv_heads), ranks.dp)
    else:
        assert math.prod(shards) == deployment.slice.n_chips


@given(deployment=..., batch=BATCH)
def test_steps_are_put_together_from_their_terms(deployment: Deployment, batch: int) -> None:
    v = deployment.evaluate([*TIMES, *EXPECTED, *RATES, "attention_s"], batch=batch)
    attention, matrices = max(v["kv_load_s"], v["attention_flops_s"]), max(v["matmul_s"], v["param_load_s"])
    assert v["attention_s"] == attention
    assert v["step_roofline_s"] == attention + matrices
    assert v["step_overlapped_s"] == attention + max(matrices, v["ici_s"])
    assert v["step_serial_s"] == attention + matrices + v["ici_s"]
    assert v["step_roofline_s"] <= v["step_overlapped_s"] <= v["step_serial_s"]
    assert v["step_s"] == v[f"step_{deployment.conventions.view}_s"]
    assert v["tokens_per_s"] * v["step_s"] == pytest.approx(batch)
    per_chip = v["requests_per_s_per_chip"] * deployment.workload.output_tokens * deployment.slice.n_chips
    assert per_chip == pytest.approx(v["tokens_per_s"])


@given(deployment=...)
def test_prefill_is_put_together_from_its_terms(deployment: Deployment) -> None:
    names = ["prefill_flops_s", "param_load_s", "prefill_ici_s"]
    if deployment.is_layered:
        names = ["prefill_flops_s", "prefill_param_load_s", "prefill_busy_ici_s"]
    views = ["prefill_roofline_s", "prefill_overlapped_s", "prefill_serial_s"]
    v = deployment.evaluate([*names, *views, "prefill_expected_s", "prefill_s"])
    flops, load, ici = (v[name] for name in names)
    assert [v[name] for name in views] == [max(flops, load), max(flops, load, ici), max(flops, load) + ici]
    assert v["prefill_s"] == v[f"prefill_{deployment.conventions.view}_s"]


# The formulas of the design, written out for one point: 70B int8 on 16 v5e, two lines of 4, KV over 8 heads by 2.
def test_a_step_by_hand() -> None:
    v = simple().evaluate([*LEDGER, *TIMES], batch=33)
    n_params, matmul, kv = 70_553_706_496, 69_501_714_432, 163_840
    assert v["total_bytes"] == n_params + 34 * 8704 * kv + 33 * (4 * 128_256 + 2 * 2 * 28_672)
    assert v["param_load_s"] == pytest.approx(n_params / (16 * 8.2e11))
    assert v["kv_load_s"] == pytest.approx(34 * 8448 * kv / (16 * 8.2e11))
    assert v["matmul_s"] == pytest.approx(2 * 33 * matmul / (16 * 1.97e14))
    assert v["attention_flops_s"] == pytest.approx(4 * 33 * 8448 * 64 * 128 * 80 / (16 * 1.97e14))
    gather_s = max(2 * 33 * 8192 / 9e10, 6e-6)
    exchange_s = max(2 * 33 * 8192 / 8 / (4 * 4.5e10), 1e-6)
    assert v["ici_s"] == pytest.approx(80 * (4 * gather_s + 2 * exchange_s))


# -- faster hardware -------------------------------------------------------------------------------------------------


@given(deployment=..., batch=BATCH, factor=FACTOR)
def test_more_hbm_bandwidth_is_never_slower(deployment: Deployment, batch: int, factor: float) -> None:
    better = on_chip(deployment, hbm_bytes_per_s=deployment.slice.chip.hbm_bytes_per_s * factor)
    never_slower(better, deployment, batch)


@given(deployment=..., batch=BATCH, factor=FACTOR)
def test_more_flops_are_never_slower(deployment: Deployment, batch: int, factor: float) -> None:
    rates = {dtype: rate * factor for dtype, rate in deployment.slice.chip.flops_per_s.items()}
    never_slower(on_chip(deployment, flops_per_s=MappingProxyType(rates)), deployment, batch)


@given(deployment=..., batch=BATCH, factor=FACTOR)
def test_faster_links_are_never_slower(deployment: Deployment, batch: int, factor: float) -> None:
    chip = deployment.slice.chip
    never_slower(on_chip(deployment, link_bytes_per_s=chip.link_bytes_per_s * factor), deployment, batch)
    never_slower(on_chip(deployment, hop_s=chip.hop_s / factor), deployment, batch)
    if chip.node_bytes_per_s:
        never_slower(on_chip(deployment, node_bytes_per_s=chip.node_bytes_per_s * factor), deployment, batch)


@given(deployment=..., batch=BATCH, data=st.data())
def test_more_chips_are_never_slower_without_a_network(deployment: Deployment, batch: int, data: st.DataObject) -> None:
    counted = replace(deployment.conventions, ici="none", split="ideal", kv_split="batch")
    larger = data.draw(st.sampled_from(standard_slices(deployment.slice.chip)))
    assume(larger.n_chips >= deployment.slice.n_chips)
    base = deployment.with_(conventions=counted, ranks=None, engine=None)
    never_slower(base.with_(slice=larger), base, batch)


@given(deployment=..., batch=BATCH)
def test_a_network_never_speeds_a_step_up(deployment: Deployment, batch: int) -> None:
    quiet = deployment.with_(conventions=replace(deployment.conventions, ici="none"))
    never_slower(quiet, deployment, batch)


@given(deployment=..., batch=BATCH)
def test_fractions_are_never_slower_than_whole_sequences_nor_those_than_copies(
    deployment: Deployment, batch: int
) -> None:
    quiet = replace(deployment.conventions, ici="none")
    ideal, whole, copied = (
        deployment.with_(conventions=replace(quiet, split=split, kv_split=kv_split))
        for split, kv_split in (("ideal", "batch"), ("whole", "batch"), ("whole", "copy"))
    )
    never_slower(ideal, whole, batch)
    never_slower(whole, copied, batch)


# -- conventions -----------------------------------------------------------------------------------------------------


@given(deployment=..., params=st.floats(1e6, 1e13))
def test_a_given_count_replaces_both(deployment: Deployment, params: float) -> None:
    given_ = deployment.with_(params=params)
    assert given_.value("n_params") == given_.value("matmul_params") == params


def test_memory_is_what_is_usable_nominal_or_given() -> None:
    gib, usable = 2**30, 15.75
    assert simple().value("hbm_bytes") == pytest.approx(16 * usable * gib * 0.95)
    assert simple(conventions=BOOK).value("hbm_bytes") == 16 * 16e9
    given_ = Conventions(hbm_bytes_per_chip=10e9, memory_fraction=0.5)
    assert simple(conventions=given_).value("hbm_bytes") == 16 * 10e9 * 0.5


def test_the_book_takes_every_axis_as_a_ring_without_hops() -> None:
    # Full-step collectives of bf16 activations at B = 138 on two rings: 4 x 80 of 2 B D bytes at 1.8e11.
    found = simple("v5e:4x8", BOOK).value("ici_s", batch=138)
    assert found == pytest.approx(320 * 2 * 138 * 8192 / 1.8e11)


def test_a_batch_that_is_split_over_shards_needs_two_exchanges_a_layer() -> None:
    whole, copied = simple("v5e:8x16"), simple("v5e:8x16", Conventions(kv_split="copy"))
    latency = 80 * 2 * 8 * find_chip("v5e").hop_s
    assert whole.value("ici_s", batch=16) - copied.value("ici_s", batch=16) == pytest.approx(latency)


def test_behind_a_switch_every_small_collective_takes_one_latency() -> None:
    model = reshaped(load_model("llama-3-70b"), n_kv_heads=2)
    inside, across = simple("h100:8", model=model), simple("h100:16", model=model)
    assert inside.value("ici_s", batch=1) == pytest.approx(80 * (4 + 2) * 2e-6)
    assert across.value("ici_s", batch=1) == pytest.approx(80 * (4 + 2) * 4e-6)


def test_half_precision_floats_share_a_rate() -> None:
    assert simple(precision=Precision(compute="fp16")).value("flops_per_s") == find_chip("v5e").flops_per_s["bf16"]


def test_a_rate_that_a_chip_has_not_is_refused() -> None:
    with pytest.raises(InputError, match="--compute fp4: v5e has no peak rate for it; offered: bf16, int8"):
        simple(precision=Precision(compute="fp4"))


# -- explanations ----------------------------------------------------------------------------------------------------


def every_part(derivation: Derivation) -> Iterator[Derivation]:
    yield derivation
    for part in derivation.parts:
        yield from every_part(part)


@given(deployment=..., batch=BATCH, name=st.sampled_from(NAMES))
def test_an_explanation_is_of_the_number_and_ends_in_facts(deployment: Deployment, batch: int, name: str) -> None:
    derivation = deployment.explain(name, batch=batch)
    assert derivation.value == deployment.value(name, batch=batch)
    assert all(part.origin for part in every_part(derivation) if not part.formula and not part.seen)
    json.dumps(derivation.to_dict(), allow_nan=False)


@given(deployment=..., name=st.sampled_from(["usd_per_hour", "request_usd", "usd_per_million_tokens", "handoff_s"]))
def test_what_needs_an_unknown_fact_is_refused_in_one_line(deployment: Deployment, name: str) -> None:
    unknown = deployment.with_(price=None, handoff_bytes_per_s=None)
    bare = on_chip(unknown, dcn_bytes_per_s=None)
    with pytest.raises(InputError) as refused:
        bare.explain(name, batch=1)
    assert "\n" not in str(refused.value)


def test_facts_have_the_documents_that_they_were_read_from() -> None:
    sources = {part.name: part.source for part in every_part(simple().explain("step_s", batch=32))}
    assert "scaling-book/tpus" in sources["hbm_bytes_per_s"]
    assert "huggingface.co" in sources["n_heads"]
    assert sources["batch"] == ""
