"""The search of one candidate: every batch that fits and meets the limits, and no other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.catalog.load import load_model
from slicewise.planner import feasible
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import OBJECTIVES
from slicewise.planner.search import DENSE, first_best, score, search
from slicewise.spec.model import reshaped
from slicewise.spec.workload import Limits

NO_LIMITS = Limits()


def granted(deployment: Deployment, sequences: float) -> Deployment:
    """The same deployment with memory for so many sequences, give or take their activations."""
    kv = deployment.layout.batch_shards * float(deployment.value("kv_bytes_per_sequence"))
    copied = deployment.conventions.kv_split == "copy" and deployment.ranks is None
    each = kv if copied else kv / deployment.layout.batch_shards
    total = float(deployment.value("weight_bytes")) + sequences * (each + float(deployment.value(ACTIVATION)))
    per_chip = total / deployment.slice.n_chips / deployment.conventions.memory_fraction
    return deployment.with_(conventions=replace(deployment.conventions, hbm_bytes_per_chip=per_chip))


ACTIVATION = "activation_bytes_per_sequence"


def stride(deployment: Deployment) -> int:
    if deployment.ranks:
        return deployment.ranks.dp * deployment.ranks.pp if deployment.conventions.split == "whole" else 1
    whole = (deployment.conventions.split, deployment.conventions.kv_split) == ("whole", "batch")
    return deployment.layout.batch_shards if whole else 1


@given(
    deployment=...,
    sequences=st.floats(1, 3000),
    tpot=st.none() | st.floats(0.9, 3.0),
    objective=st.sampled_from(OBJECTIVES),
)
def test_batches_are_those_that_brute_force_finds(
    deployment: Deployment, sequences: float, tpot: float | None, objective: str
) -> None:
    """Whole rounds of the batch shards where one fits and is quick enough; else fewer sequences than a round."""
    bounded = granted(deployment, sequences)
    limit_s = None if tpot is None else tpot * float(bounded.value("step_s", batch=float(stride(bounded))))
    all_batches = np.arange(1.0, 4001.0)
    step_s = np.broadcast_to(bounded.value("step_s", batch=all_batches), all_batches.shape)
    good = np.broadcast_to(bounded.value("free_bytes", batch=all_batches) >= -0.5, all_batches.shape)
    good = good & (True if limit_s is None else step_s <= limit_s)
    rounds = good & (all_batches % stride(bounded) == 0)
    if rounds.any():
        good = rounds
    found = search(bounded, Limits(tpot_s=limit_s), objective)
    assert found.batches.tolist() == all_batches[good].tolist()
    assert found.step_s.tolist() == step_s[good].tolist()
    assert found.score.shape == found.batches.shape
    assert found.verdict.fits == bool(good.any())
    if found.verdict.reason == feasible.TPOT:
        named = int(found.verdict.detail.split("at batch ")[1].split()[0])
        assert bounded.value("step_s", batch=named) > limit_s


@given(deployment=..., batch=st.integers(1, 1000), objective=st.sampled_from(OBJECTIVES))
def test_a_batch_that_is_asked_for_is_the_only_one(deployment: Deployment, batch: int, objective: str) -> None:
    found = search(deployment, NO_LIMITS, objective, batch)
    fits = float(deployment.value("free_bytes", batch=batch)) >= -0.5
    assert found.batches.tolist() == ([batch] if fits else [])


@given(deployment=..., batch=st.integers(1, 1000))
def test_the_objectives_order_plans_as_people_mean_them(deployment: Deployment, batch: int) -> None:
    at = np.array([float(batch)])
    v = deployment.evaluate(["step_s", "tokens_per_s_per_chip", "prefill_s"], batch=at)
    assert score(deployment, "latency", at) == v["step_s"]
    assert score(deployment, "throughput", at) == -v["tokens_per_s_per_chip"]
    request_s = deployment.workload.output_tokens * v["step_s"] / batch
    if not deployment.workload.context_is_set:
        request_s = request_s + v["prefill_s"]
    usd = deployment.price.usd_per_chip_hour if deployment.price else 1.0
    assert score(deployment, "cost", at) == pytest.approx(request_s * deployment.slice.n_chips * usd)


def test_a_coarse_grid_keeps_its_ends() -> None:
    deployment = slicewise.step("llama-3-8b", slice="v5e:16x16", context=64, split="ideal").deployment
    most = int(deployment.value("max_batch"))
    found = search(deployment, NO_LIMITS, "cost").batches
    assert DENSE < len(found) < most
    assert (found[0], found[-1]) == (1, most)
    assert np.all(np.diff(found) > 0)


@pytest.mark.parametrize("split", ["ideal", "whole"])
@pytest.mark.parametrize("rounds", [5000, 30_001])
def test_the_last_batch_within_the_limit_is_exact_where_the_grid_is_coarse(split: str, rounds: int) -> None:
    deployment = slicewise.step("llama-3-8b", slice="v5e:4x8", context=8, split=split, weights="int4").deployment
    last = rounds * stride(deployment)
    assert float(deployment.value("max_batch")) > 2 * last > DENSE
    step_s = [float(deployment.value("step_s", batch=float(last + more * stride(deployment)))) for more in (0, 1)]
    within = search(deployment, Limits(tpot_s=sum(step_s) / 2), "cost").batches
    assert within[-1] == last


@pytest.mark.parametrize(
    ("slice_", "limits", "reason", "said"),
    [
        ("v5e:1x1", {}, feasible.WEIGHTS, "141.11 GB (131.42 GiB) of bf16 weights do not fit"),
        ("v5e:4x4", {"tpot_s": 0.001}, feasible.PARAM_LOAD, "parameter loading alone takes 10.755 ms"),
        ("v5e:4x4", {"tpot_s": 0.011}, feasible.TPOT, "takes 11.177 ms, over the TPOT limit of 11 ms"),
        ("v5e:4x4", {"ttft_s": 0.1}, feasible.TTFT, "prefill of 8,192 tokens takes"),
    ],
)
def test_refusals_have_a_reason_with_the_numbers(slice_: str, limits: dict[str, float], reason: str, said: str) -> None:
    deployment = slicewise.step("llama-3-70b", slice=slice_).deployment
    found = search(deployment, Limits(**limits), "cost")
    assert not found.batches.size
    assert found.verdict.reason == reason
    assert said in found.verdict.detail


def test_fewer_sequences_than_a_round_are_offered_where_only_they_meet_the_limit() -> None:
    """One KV head: batches go in rounds of 256, which are over the limit that a lone sequence meets."""
    model = reshaped(load_model("llama-3-405b"), n_kv_heads=1)
    deployment = slicewise.step(model, slice="v5e:16x16", weights="int8", view="serial").deployment
    limit_s = 0.5 * float(deployment.value("step_s", batch=1) + deployment.value("step_s", batch=256))
    found = search(deployment, Limits(tpot_s=limit_s), "cost")
    assert found.verdict.fits
    brute = [batch for batch in range(1, 256) if deployment.value("step_s", batch=batch) <= limit_s]
    assert found.batches.tolist() == brute


def test_of_plateaus_that_are_flat_but_for_rounding_the_first_is_best() -> None:
    assert first_best(np.array([2.0, 1.0 + 1e-15, 1.0, 1.0 - 1e-15])) == 1
    assert first_best(np.array([-2.0, -2.0 - 1e-15, -1.0])) == 0
    assert first_best(np.array([3.0, 1.001, 1.0])) == 2


def test_a_limit_that_is_met_exactly_is_met() -> None:
    deployment = slicewise.step("llama-3-8b", slice="v5e:2x4").deployment
    step_s, prefill_s = (float(deployment.value(name, batch=8.0)) for name in ("step_s", "prefill_s"))
    found = search(deployment, Limits(tpot_s=step_s, ttft_s=prefill_s), "cost")
    assert 8 in found.batches
    assert found.step_s.max() == step_s
