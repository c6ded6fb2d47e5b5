"""Limits of a slice, as the planner puts them together."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.spec.topology import Slice


@given(slice_=..., batch=st.none() | st.integers(1, 1000), ici=st.sampled_from(["auto", "ring", "none"]))
def test_limits_are_there_for_every_slice(slice_: Slice, batch: int | None, ici: str) -> None:
    found = slicewise.limits("llama-3-8b", slice=slice_, batch=batch, ici=ici)
    json.dumps(found.to_dict(), allow_nan=False)
    quiet = ici == "none" or slice_.n_chips == 1
    assert (found.model_parallel_limit_flops_bound is None) == quiet
    assert (found.model_parallel_limit_hbm_bound is None) == quiet
    assert found.kv_head_shards * found.kv_batch_shards == found.model_parallel_ways == slice_.n_chips
    assert found.fits


@given(slice_=..., batch=st.integers(1, 1000), ici=st.sampled_from(["auto", "ring", "none"]))
def test_the_network_binds_where_its_collective_takes_longest(slice_: Slice, batch: int, ici: str) -> None:
    found = slicewise.limits("llama-3-8b", slice=slice_, batch=batch, ici=ici)
    longest = max(found.gate_matmul_ici_s, found.gate_matmul_hbm_s, found.gate_matmul_flops_s)
    assert found.network_binds == (found.gate_matmul_ici_s == longest)
    if found.network_binds:
        assert found.gate_matmul_ici_s > 0


def test_the_network_does_not_bind_behind_flops() -> None:
    found = slicewise.limits("llama-3-8b", slice="v5e:2x2", batch=1000)
    assert found.gate_matmul_hbm_s < found.gate_matmul_ici_s < found.gate_matmul_flops_s
    assert not found.network_binds


# Question 0.9 of chapter 8: 26 ways with the book's two rings; 13.1 with the two lines that a 4x8 has.
@pytest.mark.parametrize(("ici", "ways", "ici_us"), [("ring", 26.2, 5.825), ("auto", 13.1, 11.65)])
def test_ways_of_question_9(ici: str, ways: float, ici_us: float) -> None:
    found = slicewise.limits("llama-3-70b", slice="v5e:4x8", batch=64, ici=ici)
    assert found.gate_matmul_ici_s == pytest.approx(ici_us * 1e-6, rel=1e-3)
    assert found.model_parallel_limit_flops_bound == pytest.approx(ways, rel=2e-3)
    assert found.gate_matmul_hbm_s == pytest.approx(17.90e-6, rel=1e-3)
    assert found.gate_matmul_flops_s == pytest.approx(4.77e-6, rel=1e-3)


@pytest.mark.parametrize(
    ("weights", "compute", "critical"), [("bf16", "bf16", 240.24), ("int8", "bf16", 120.12), ("int8", "int8", 240.24)]
)
def test_critical_batches_of_question_4(weights: str, compute: str, critical: float) -> None:
    found = slicewise.limits("llama-3-70b", slice="v5e:4x4", weights=weights, compute=compute)
    assert found.critical_batch == pytest.approx(critical, rel=1e-4)


@pytest.mark.parametrize("name", ["", "critical_batch", "model_parallel_limit_hbm_bound", "max_batch", "knee_batch"])
def test_numbers_are_explained_at_the_batch(name: str) -> None:
    found = slicewise.limits("llama-3-70b", slice="v5e:4x4", weights="int8", batch=64)
    assert found.explain(name).value == pytest.approx(getattr(found, name or "critical_batch"))
    assert found.explain("model_parallel_ways").value == 16


def test_limits_of_ranks_are_those_of_a_group() -> None:
    """Two groups of four ranks at twice the batch are as two slices of four chips."""
    group = slicewise.limits("llama-3-70b", slice="h100:4", batch=32)
    pair = slicewise.limits("llama-3-70b", slice="h100:8", batch=64, tp=4, dp=2)
    assert (group.model_parallel_ways, pair.model_parallel_ways) == (4, 4)
    assert pair.explain("model_parallel_ways").value == 4
    assert (group.axes, pair.axes) == ("4 GPUs in 1 domain of up to 8", "4 GPUs in 1 domain of up to 8")
    for name in (
        "model_parallel_limit_flops_bound",
        "model_parallel_limit_hbm_bound",
        "gate_matmul_ici_s",
        "gate_matmul_ici_one_axis_s",
        "gate_matmul_hbm_s",
        "gate_matmul_flops_s",
    ):
        assert getattr(pair, name) == pytest.approx(getattr(group, name)), name
    assert pair.critical_batch == pytest.approx(2 * group.critical_batch)


@pytest.mark.parametrize("words", [{}, {"tp": 8}, {"tp": 4, "dp": 2}, {"dp": 8}, {"tp": 4, "pp": 2}])
def test_at_the_critical_batch_matmuls_take_as_long_as_reading_the_weights(words: dict[str, int]) -> None:
    # Matrices alone multiply, and the fullest chip holds a little more than its share.
    found = slicewise.limits("llama-3-70b", slice="h200:8", **words)
    values = found.deployment.evaluate(["matmul_s", "param_load_s"], batch=found.critical_batch)
    assert values["matmul_s"] == pytest.approx(float(values["param_load_s"]), rel=0.05)


def test_at_the_critical_batch_of_a_mixture_its_experts_take_as_long_as_reading_them() -> None:
    for words in ({}, {"tp": 8}, {"tp": 4, "pp": 2}):
        found = slicewise.limits("mixtral-8x7b", slice="h200:8", **words)
        values = found.deployment.evaluate(["matmul_s", "param_load_s"], batch=found.critical_batch)
        assert values["matmul_s"] == pytest.approx(float(values["param_load_s"]), rel=0.15)
