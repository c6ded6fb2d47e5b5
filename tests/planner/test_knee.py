"""The knee, and the search for a largest batch, against brute force."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slicewise
from slicewise.planner.deployment import Deployment
from slicewise.planner.knee import TOLERANCE, explain_knee, knee_batch, largest_batch

FAR = 20_000


@given(st.integers(0, 10**13), st.integers(1, 10**12))
@example(0, 1)
@example(1, 1)
@example(5, 4)
@example(4, 5)
def test_the_largest_batch_of_a_threshold_is_found(threshold: int, most: int) -> None:
    found = largest_batch(lambda batch: batch <= threshold, most)
    assert found == (None if threshold >= most else threshold)


@given(st.integers(1, 3000), st.data())
def test_the_largest_batch_is_the_one_that_brute_force_finds(most: int, data: st.DataObject) -> None:
    slope, limit = data.draw(st.floats(1e-3, 10.0)), data.draw(st.floats(0.0, 1e4))
    good = [batch for batch in range(1, most + 1) if batch * slope <= limit]
    found = largest_batch(lambda batch: batch * slope <= limit, most)
    assert (most if found is None else found) == (good[-1] if good else 0)


@given(...)
def test_the_knee_is_the_last_batch_within_one_percent_of_one_sequence(deployment: Deployment) -> None:
    batches = np.arange(1.0, FAR + 1)
    shared_s = np.broadcast_to(deployment.value("shared_s", batch=batches), batches.shape)
    good = batches[shared_s <= 1.01 * shared_s[0]]
    knee = knee_batch(deployment)
    if knee is None or knee > FAR:
        assert good[-1] == FAR
    else:
        assert knee == good[-1] >= 1
    assert TOLERANCE == 0.01


def test_worked_knee_of_exercise_3() -> None:
    # 405B int8 on 8x8: collectives take as long as the parameters at B = 42 without the exchanges and the hop floor:
    # 183.5 us a sequence against 7.73 ms. How to Scale Your Model, ch. 8, exercise 3.
    deployment = slicewise.step("llama-3-405b", slice="v5e:8x8", weights="int8", kv="int8", kv_split="copy").deployment
    load_s, each_s = deployment.value("param_load_s"), 504 * 2 * 16384 / 9e10
    assert knee_batch(deployment) == int(1.01 * load_s / each_s) == 42


def test_an_explanation_shows_the_time_at_the_knee_and_one_beyond() -> None:
    deployment = slicewise.step("llama-3-70b", slice="v5e:4x4", weights="int8").deployment
    knee = knee_batch(deployment)
    derivation = explain_knee(deployment)
    first, last, beyond = (part.value for part in derivation.parts)
    assert derivation.value == knee
    assert [part.name for part in derivation.parts] == [
        f"shared_s at batch {batch}" for batch in (1, knee, (knee or 0) + 1)
    ]
    assert last <= 1.01 * first < beyond
    json.dumps(derivation.to_dict(), allow_nan=False)


@pytest.mark.parametrize("ici", ["auto", "none", "ring"])
def test_a_single_chip_has_a_knee_at_its_critical_batch(ici: str) -> None:
    step = slicewise.step("llama-3-8b", slice="v5e:1x1", weights="int4", ici=ici, params="8e9")
    assert step.knee_batch == int(1.01 * step.critical_batch)
