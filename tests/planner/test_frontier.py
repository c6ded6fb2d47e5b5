"""Frontiers and grids of steps: a grid equals its points, and every row is the planner's own."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.catalog.slices import standard_slices
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.frontier import COLUMNS, step_grid
from slicewise.planner.step import TERMS, step_of

BATCHES = st.lists(st.integers(1, 5000), min_size=1, max_size=4)
CONTEXTS = st.lists(st.integers(1, 2**18), min_size=1, max_size=4)


@given(deployment=..., batches=BATCHES, contexts=CONTEXTS, data=st.data())
def test_a_grid_of_steps_equals_its_points(
    deployment: Deployment, batches: list[int], contexts: list[int], data: st.DataObject
) -> None:
    some = st.lists(st.sampled_from(standard_slices(deployment.slice.chip)), min_size=1, max_size=3)
    slices = [deployment.with_(slice=slice_, ranks=None, engine=None) for slice_ in data.draw(some)]
    names = (*TERMS, "step_s")
    grid = step_grid(slices, batches, contexts, names)
    shape = (len(batches), len(contexts), len(slices))
    columns = {name: np.broadcast_to(grid[name], shape) for name in names}
    for i, batch in enumerate(batches):
        for j, context in enumerate(contexts):
            for k, on_slice in enumerate(slices):
                point = on_slice.evaluate(names, batch=batch, context_tokens=context)
                for name in names:
                    assert columns[name][i, j, k] == pytest.approx(float(point[name]), rel=1e-12), name


def test_slices_with_other_networks_and_layouts_stand_side_by_side() -> None:
    base = slicewise.step("llama-3-70b", slice="v5e:16x16").deployment
    slices = [base.with_(slice=slice_) for slice_ in standard_slices(base.slice.chip)]
    batches = [1, 2, 31, 4096]
    grid = np.broadcast_to(step_grid(slices, batches, [8192], ["ici_s"])["ici_s"], (4, 1, len(slices)))
    points = [[on_slice.value("ici_s", batch=batch) for on_slice in slices] for batch in batches]
    assert grid[:, 0, :].tolist() == points
    assert len(set(points[0])) > 4


def test_every_row_is_a_step_of_the_planner() -> None:
    found = slicewise.frontier("llama-3-8b", slice="v5e:2x4", context=[2048, 65536])
    for row in (0, 7, -1):
        batch, context = found.columns["batch"][row], found.columns["context_tokens"][row]
        step = slicewise.step("llama-3-8b", slice="v5e:2x4", context=context, batch=batch)
        for name in COLUMNS[2:]:
            assert found.columns[name][row] == pytest.approx(getattr(step, name)), name


def test_batches_go_up_to_the_largest_that_fits() -> None:
    found = slicewise.frontier("llama-3-8b", slice="v5e:2x4", context=8192)
    most = found.max_batch[8192]
    assert found.columns["batch"] == list(range(1, most + 1))
    assert step_of(found.deployment, most).fits
    assert not step_of(found.deployment, most + 1).fits


def test_without_a_slice_one_is_taken_that_holds_every_context() -> None:
    found = slicewise.frontier("llama-3-8b", context=[1024, 500_000, 2048])
    assert found.slice == slicewise.step("llama-3-8b", context=500_000).slice == "v5e:2x4"
    assert all(found.max_batch.values())


def test_whole_rounds_leave_no_chip_idle() -> None:
    found = slicewise.frontier("llama-3-8b", slice="v5e:4x4", context=8192)
    most = found.max_batch[8192]
    assert found.whole_rounds()["batch"] == sorted({1, *range(2, most + 1, 2), most})
    with_fractions = slicewise.frontier("llama-3-8b", slice="v5e:4x4", context=8192, split="ideal")
    assert with_fractions.whole_rounds() == with_fractions.columns


def test_very_many_batches_are_thinned_with_both_ends() -> None:
    found = slicewise.frontier("llama-3-8b", slice="v5e:16x16", context=1)
    most = int(found.deployment.value("max_batch"))
    assert found.max_batch[1] == most > len(found.columns["batch"]) > 1000
    assert (found.columns["batch"][0], found.columns["batch"][-1]) == (1, most)


def test_points_on_the_frontier_are_those_that_no_other_dominates() -> None:
    found = slicewise.frontier("llama-3-8b", slice="v5e:4x4", context=4096)
    time, rate = np.array(found.columns["step_s"]), np.array(found.columns["tokens_per_s_per_chip"])
    for row, kept in enumerate(found.columns["on_frontier"]):
        better = ((time <= time[row]) & (rate >= rate[row]) & ((time < time[row]) | (rate > rate[row]))).any()
        assert kept != better


def test_a_context_that_does_not_fit_has_no_rows_and_a_reason() -> None:
    found = slicewise.frontier("llama-3-70b", slice="v5e:2x4", weights="int8", context=[1024, 2**20])
    assert found.fits
    assert set(found.columns["context_tokens"]) == {1024}
    assert found.max_batch[2**20] == 0
    assert "do not fit" in found.reasons[2**20]
    json.dumps(found.to_dict(), allow_nan=False)


def test_nothing_that_fits_is_explained_in_one_line() -> None:
    found = slicewise.frontier("llama-3-405b", slice="v5e:2x2")
    assert not found.fits
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(InputError, match="nothing fits"):
        found.explain()


def test_the_headline_is_the_step_at_the_largest_batch() -> None:
    found = slicewise.frontier("llama-3-8b", slice="v5e:2x4", context=8192)
    assert found.explain().value == found.columns["step_s"][-1]


@pytest.mark.parametrize("contexts", [[], None])
def test_without_contexts_the_workload_decides(contexts: list[int] | None) -> None:
    found = slicewise.frontier("llama-3-8b", slice="v5e:2x4", context=contexts, isl=1000, osl=100)
    assert set(found.columns["context_tokens"]) == {1050.0}
