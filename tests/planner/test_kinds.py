"""Layers of every kind in every layout: grids equal their points, and more of anything is never the wrong way round."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.catalog.slices import load_slice, standard_slices
from slicewise.planner.conventions import Conventions
from slicewise.planner.deployment import Deployment
from slicewise.planner.step import GROWTH, LEDGER, RATES, TIMES
from slicewise.spec.legality import legal_layouts
from slicewise.spec.precision import Precision
from slicewise.spec.ranks import Ranks
from slicewise.spec.tensors import caches
from slicewise.spec.workload import Workload

BATCH = st.integers(1, 100_000)
GIVEN = {"requests_per_s": 3.0, "usd_per_chip_hour": 2.0, "dcn_bytes_per_s_per_chip": 1e10, "utilisation": 0.5}
GIVEN |= {"api_usd_per_million_tokens": 1.0}
ROUNDING = 1 + 1e-9


SHORT = ("unused_bytes_per_chip", "free_bytes", "kv_budget_bytes", "hbm_bytes", "full_rounds")
"""Below zero where the weights, or the reserve, do not fit."""


def deployed(model: str, slice_: str, ranks: Ranks | None, **words: Any) -> Deployment:
    return Deployment(
        model=load_model(model),
        slice=load_slice(slice_),
        precision=Precision(),
        workload=Workload(prompt_tokens=8192, output_tokens=512, context_tokens=8448, capacity_context_tokens=8704),
        conventions=Conventions(**words),
        mfu=0.4,
        price=None,
        ranks=ranks,
    )


# -- grids -----------------------------------------------------------------------------------------------------------


@given(deployment=..., batches=st.lists(BATCH, min_size=1, max_size=4))
def test_every_formula_of_a_grid_of_batches_equals_its_points(deployment: Deployment, batches: list[int]) -> None:
    names = deployment.graph.formulas
    grid = deployment.evaluate(names, batch=np.array(batches, dtype=float), **GIVEN)
    for index, batch in enumerate(batches):
        point = deployment.evaluate(names, batch=batch, **GIVEN)
        for name in names:
            column = np.broadcast_to(np.asarray(grid[name], dtype=float), (len(batches),))
            assert column[index] == pytest.approx(float(point[name]), rel=1e-12), name


@given(deployment=..., batch=BATCH, contexts=st.lists(st.integers(1, 2**20), min_size=1, max_size=4))
def test_every_formula_of_a_grid_of_contexts_equals_its_points(
    deployment: Deployment, batch: int, contexts: list[int]
) -> None:
    names = deployment.graph.formulas
    lengths = np.array(contexts, dtype=float)
    grid = deployment.evaluate(
        names, batch=batch, context_tokens=lengths, capacity_context_tokens=lengths, prompt_tokens=lengths, **GIVEN
    )
    for index, context in enumerate(contexts):
        point = deployment.evaluate(
            names, batch=batch, context_tokens=context, capacity_context_tokens=context, prompt_tokens=context, **GIVEN
        )
        for name in names:
            column = np.broadcast_to(np.asarray(grid[name], dtype=float), (len(contexts),))
            assert column[index] == pytest.approx(float(point[name]), rel=1e-12), name


@settings(max_examples=200)
@given(deployment=..., batch=BATCH)
def test_every_number_is_finite_and_none_is_below_zero(deployment: Deployment, batch: int) -> None:
    unlimited = ("max_context_tokens", "model_parallel_limit_flops_bound", "model_parallel_limit_hbm_bound")
    names = [name for name in deployment.graph.formulas if name not in SHORT]
    for name, value in deployment.evaluate(names, batch=batch, **GIVEN).items():
        may_be_inf = name in unlimited or name.endswith("bytes_per_s")
        assert float(value) >= 0, name
        assert math.isfinite(value) or may_be_inf, name


# -- more and less ---------------------------------------------------------------------------------------------------


@given(deployment=..., batch=BATCH, more=BATCH)
def test_more_sequences_never_take_less_memory_nor_time(deployment: Deployment, batch: int, more: int) -> None:
    names = ["kv_bytes", "activation_bytes", "total_bytes", *TIMES]
    fewer, larger = (deployment.evaluate(names, batch=size) for size in (batch, batch + more))
    for name in names:
        assert fewer[name] <= larger[name] * ROUNDING, name


@given(deployment=..., batch=BATCH, context=st.integers(1, 2**18), more=st.integers(1, 2**18))
def test_longer_sequences_never_take_less_memory_nor_time(
    deployment: Deployment, batch: int, context: int, more: int
) -> None:
    names = ["kv_bytes", "total_bytes", "prefill_flops", "prefill_s", "handoff_bytes", *TIMES]
    shorter, longer = (
        deployment.evaluate(names, batch=batch, context_tokens=n, capacity_context_tokens=n, prompt_tokens=n)
        for n in (context, context + more)
    )
    for name in names:
        assert shorter[name] <= longer[name] * ROUNDING, name


@given(deployment=..., data=st.data())
def test_more_chips_never_hold_less_of_an_even_cut(deployment: Deployment, data: st.DataObject) -> None:
    counted = replace(deployment.conventions, split="ideal", kv_split="batch")
    base = deployment.with_(ranks=None, engine=None, conventions=counted)
    larger = data.draw(st.sampled_from(standard_slices(deployment.slice.chip)))
    assume(larger.n_chips >= deployment.slice.n_chips)
    assert base.with_(slice=larger).value("max_batch") >= base.value("max_batch")


@given(deployment=..., data=st.data())
def test_more_ranks_never_hold_less(deployment: Deployment, data: st.DataObject) -> None:
    """Twice the tensor ranks, or twice the groups: every chip then holds no more of each weight and each sequence."""
    assume(deployment.ranks is not None)
    ranks = deployment.ranks
    assert ranks is not None
    planned = deployment.model
    if not deployment.precision.as_stored:
        planned = replace(planned, quantisation=None)
    slices = [s for s in standard_slices(deployment.slice.chip) if s.n_chips == 2 * deployment.slice.n_chips]
    more = [replace(ranks, **{name: 2 * getattr(ranks, name)}) for name in ("tp", "dp")]
    legal = [larger for larger in more if slices and larger in legal_layouts(planned, larger.n_chips)]
    assume(legal)
    base = deployment.with_(engine=None)
    larger = data.draw(st.sampled_from(legal))
    assert base.with_(slice=slices[0], ranks=larger).value("max_batch") >= base.value("max_batch")


@given(deployment=..., batch=BATCH)
def test_a_prompts_first_token_never_comes_before_its_share_of_the_slices_time(
    deployment: Deployment, batch: int
) -> None:
    values = deployment.evaluate(["prefill_s", deployment.ttft, "replica_s_per_request"], batch=batch)
    assert values[deployment.ttft] >= values["prefill_s"]
    assert values["replica_s_per_request"] >= values["prefill_s"]


# -- copies ----------------------------------------------------------------------------------------------------------


@given(...)
def test_ranks_hold_each_sequence_at_least_once(deployment: Deployment) -> None:
    assume(deployment.is_layered)
    assume(any(cache.elements_per_token or cache.state_bytes for cache in caches(deployment.model)))
    copies = [float(deployment.value("kv_copies", **deployment.at_stage(part.stage))) for part in deployment.holdings]
    padding = 64 if deployment.engine else 1
    if deployment.ranks is None:
        assert copies == [pytest.approx(1)]
    else:
        assert max(copies) >= 1 - 1e-9
        assert max(copies) <= deployment.ranks.tp * deployment.ranks.pp * padding


@pytest.mark.parametrize(
    ("model", "slice_", "ranks", "copies"),
    [
        ("llama-3-70b", "h100:8", Ranks(tp=8), 1.0),
        ("llama-3-70b", "h100:16", Ranks(tp=16), 2.0),
        ("llama-3-70b", "h100:16", Ranks(tp=8, dp=2), 1.0),
        ("llama-3-70b", "h100:16", Ranks(tp=8, pp=2), 1.0),
        ("deepseek-v3", "h200:8", Ranks(tp=8), 8.0),
        ("deepseek-v3", "h200:8", Ranks(dp=8), 1.0),
        ("deepseek-v3.2", "h200:16", Ranks(tp=4, dp=4), 4.0),
        # Stages of 30 and 31 layers: both count as the fuller one.
        ("deepseek-v3", "h200:16", Ranks(tp=8, pp=2), 8 * 2 * 31 / 61),
    ],
)
def test_copies_of_a_cache_over_ranks(model: str, slice_: str, ranks: Ranks, copies: float) -> None:
    deployment = deployed(model, slice_, ranks)
    assert max(
        float(deployment.value("kv_copies", **deployment.at_stage(part.stage))) for part in deployment.holdings
    ) == pytest.approx(copies)


@pytest.mark.parametrize("names", [LEDGER, TIMES, RATES, GROWTH])
def test_kinds_are_served_by_the_same_names(names: tuple[str, ...]) -> None:
    for model, slice_, ranks in (
        ("gemma-3-27b", "h100:8", None),
        ("nemotron-h-56b", "h100:8", Ranks(tp=8)),
        ("deepseek-v3", "h200:16", Ranks(dp=16, ep=16)),
    ):
        found = deployed(model, slice_, ranks).evaluate(names, batch=8)
        assert set(found) == set(names)


@given(...)
def test_the_slowest_stage_sets_the_pace(deployment: Deployment) -> None:
    assume(deployment.ranks is not None and deployment.ranks.pp > 1)
    ranks = deployment.ranks
    assert ranks is not None
    lone = ranks.pp * ranks.dp
    for name in ("step_s", "step_overlapped_s", "step_expected_s", "step_low_s"):
        by_stage = [float(deployment.with_(stage=stage).value(name, batch=lone)) for stage in range(ranks.pp)]
        assert float(deployment.value(name, batch=lone)) == max(by_stage)
    memory = ["weight_bytes", "kv_bytes", "total_bytes", "max_batch"]
    fullest = deployment.with_(stage=deployment.holding.stage).evaluate(memory, batch=lone)
    assert deployment.evaluate(memory, batch=lone) == fullest
