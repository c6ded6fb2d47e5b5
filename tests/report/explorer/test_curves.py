"""The columns: parts add up to the step, curves are the planner's own points, batches are whole rounds."""

import numpy as np
import pytest

import slicewise
from slicewise.planner.question import ask, chosen_by
from slicewise.report.explorer.curves import batches, curves, parts, terms
from slicewise.report.explorer.found import find
from slicewise.report.explorer.resources import BY_KEY

PLACES = [
    ("llama-3-70b", "v5e:4x4"), ("llama-3-8b", "h100:2"), ("mixtral-8x7b", "v5p:2x2x2"), ("gemma-3-12b", "v6e:2x2"),
]  # fmt: skip
VIEWS = ["roofline", "overlapped", "serial", "expected"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("model", "slice_"), PLACES, ids=str)
def test_parts_add_up_to_the_step(model: str, slice_: str, view: str) -> None:
    deployment = ask(model, chosen_by({"slice": slice_, "view": view, "isl": 2048})).deployment()
    batch = batches(int(deployment.value("max_batch")))
    found = parts(deployment, batch)
    assert all((part.seconds >= 0).all() and part.resource in BY_KEY for part in found)
    np.testing.assert_allclose(sum(part.seconds for part in found), deployment.value("step_s", batch=batch), rtol=1e-12)


def test_parts_of_a_bound_are_terms_or_nothing() -> None:
    deployment = ask("llama-3-70b", {"slice": "v5e:4x4", "view": "overlapped", "weights": "int8"}).deployment()
    batch = batches(int(deployment.value("max_batch")))
    values = terms(deployment, batch)
    for part in parts(deployment, batch):
        hidden = part.seconds == 0
        np.testing.assert_array_equal(part.seconds[~hidden], values[part.key][~hidden])


@pytest.mark.parametrize(("most", "shards"), [(1, 1), (7, 4), (554, 1), (138, 16), (100_000, 8)])
def test_batches_start_at_one_and_end_at_the_most(most: int, shards: int) -> None:
    found = batches(most, shards)
    assert (found[0], found[-1]) == (1, most)
    assert len(set(found)) == len(found) <= 42
    assert all(batch % shards == 0 for batch in found[1:-1])
    assert batches(0).size == 0


def test_curves_are_the_planners_steps() -> None:
    found = find(slicewise.load_model("llama-3-70b"), {"weights": ["int8"], "tpot": "25ms"})
    drawn = curves(found)
    assert sum(curve.is_chosen for curve in drawn) == 1
    assert drawn[0].slice == found.step.slice
    for curve in drawn[:3]:
        step = slicewise.step("llama-3-70b", slice=curve.slice, weights="int8", batch=curve.max_batch, view="expected")
        assert curve.step_s[-1] == pytest.approx(step.step_s)
        assert curve.tokens_per_s_per_chip[-1] == pytest.approx(step.tokens_per_s_per_chip)
        assert step.max_batch == curve.max_batch
