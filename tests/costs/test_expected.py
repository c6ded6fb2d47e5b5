"""Expected times: never below the bound, and never better for less of anything."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask
from slicewise.spec.chip import Chip
from slicewise.spec.model import Model

GPUS = ("h100:1", "h100:8", "h200:4", "a100:2", "a100:8", "l40s:1", "l40s:4", "b200:8", "mi300x:1", "h100:32")
MODELS = ("llama-3-8b", "llama-3-70b", "qwen3-30b-a3b", "deepseek-v3", "gemma-3-27b", "mistral-7b-v0.1")
VIEWS = ("step_expected_s", "step_low_s", "step_high_s", "step_overlapped_s")
PREFILLS = ("prefill_expected_s", "prefill_low_s", "prefill_high_s", "prefill_bound_s")


def deployment(model: str | Model, slice_: str, **words: object) -> Deployment:
    return ask(model, {"slice": slice_, "price": 1, "memory_fraction": 1, **words}).deployment()


@settings(max_examples=150, deadline=None)
@given(
    model=st.sampled_from(MODELS),
    slice_=st.sampled_from(GPUS),
    batch=st.integers(1, 2000),
    context=st.integers(1, 131072),
    kv=st.sampled_from(["bf16", "fp8"]),
)
def test_expected_is_never_below_the_bound(model, slice_, batch, context, kv):
    found = deployment(model, slice_, context=context, kv=kv)
    step = found.evaluate(VIEWS, batch=batch)
    assert step["step_overlapped_s"] <= step["step_low_s"] * (1 + 1e-12)
    assert step["step_low_s"] <= step["step_expected_s"] * (1 + 1e-12)
    assert step["step_expected_s"] <= step["step_high_s"] * (1 + 1e-12)
    prefill = found.evaluate(PREFILLS)
    assert prefill["prefill_bound_s"] <= prefill["prefill_low_s"] * (1 + 1e-12)
    assert prefill["prefill_low_s"] <= prefill["prefill_expected_s"] * (1 + 1e-12) <= prefill["prefill_high_s"] * 1.01


@settings(max_examples=60, deadline=None)
@given(model=st.sampled_from(MODELS), slice_=st.sampled_from(GPUS), context=st.integers(1, 65536))
def test_expected_grows_with_batch_and_context(model, slice_, context):
    found = deployment(model, slice_, context=context)
    steps = found.value("step_expected_s", batch=np.arange(1.0, 300.0))
    assert np.all(np.diff(steps) > 0)
    longer = deployment(model, slice_, context=context * 2)
    assert longer.value("step_expected_s", batch=7) >= found.value("step_expected_s", batch=7)


@settings(max_examples=60, deadline=None)
@given(slice_=st.sampled_from(GPUS), batch=st.integers(1, 500), layers=st.integers(1, 100))
def test_expected_grows_with_layers(slice_, batch, layers):
    def of(count: int) -> float:
        whole = load_model("llama-3-8b")
        model = Model(name="m", d_model=whole.d_model, vocab_size=whole.vocab_size, layers=whole.layers[:1] * count)
        return float(deployment(model, slice_, context=1024).value("step_expected_s", batch=batch))

    assert of(layers + 1) > of(layers)


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(MODELS),
    slice_=st.sampled_from(GPUS),
    batch=st.integers(1, 500),
    share=st.floats(0.05, 1.0),
    rate=st.sampled_from(["hbm_bytes_per_s", "link_bytes_per_s"]),
)
def test_expected_never_improves_when_bandwidth_falls(model, slice_, batch, share, rate):
    found = deployment(model, slice_)
    chip: Chip = replace(found.slice.chip, **{rate: getattr(found.slice.chip, rate) * share})
    slower = found.with_(slice=replace(found.slice, chip=chip))
    for name in ("step_expected_s", "prefill_expected_s"):
        assert slower.value(name, batch=batch) >= found.value(name, batch=batch) * (1 - 1e-12)


def test_the_terms_add_up_to_the_step():
    found = deployment("llama-3-70b", "h100:8", weights="fp8", kv="fp8")
    terms = found.graph.formulas["step_expected_s"].parameters
    assert sum(found.evaluate(terms, batch=32).values()) == pytest.approx(found.value("step_expected_s", batch=32))


def test_a_single_gpu_waits_for_nobody():
    alone, together = deployment("llama-3-8b", "h100:1"), deployment("llama-3-8b", "h100:2")
    assert alone.value("overhead_s") == pytest.approx(32 * alone.inputs["layer_s"])
    assert together.inputs["sync_s"] > alone.inputs["sync_s"] == 0


def test_one_group_of_ranks_is_the_even_cut():
    even, ranks = deployment("llama-3-70b", "h100:8"), deployment("llama-3-70b", "h100:8", tp=8)
    assert ranks.value("step_expected_s", batch=32) == pytest.approx(even.value("step_expected_s", batch=32), rel=0.01)


def test_pipeline_stages_take_turns_and_share_the_layers():
    found = deployment("llama-3-70b", "h100:8", tp=4, pp=2, weights="fp8")
    assert found.value("overhead_s") == pytest.approx(80 * (found.inputs["layer_s"] + found.inputs["sync_s"]))
    two, one = found.value("tokens_s", batch=64), deployment("llama-3-70b", "h100:4", tp=4, weights="fp8")
    assert two == pytest.approx(one.value("tokens_s", batch=32))


def test_a_given_mfu_wins_over_the_fitted_share():
    found = deployment("llama-3-70b", "h100:8", mfu=0.5)
    assert found.value("expected_prefill_flops_s") == pytest.approx(found.value("prefill_peak_s") / 0.5)
