"""One decode step: what fits is timed, what does not has a reason and no time."""

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.step import RATES, TERMS, TIMES, Step, bound, step_of

CONTRACT = (  # the JSON of a step that scripts rely on
    "model", "slice", "n_chips", "batch", "context_tokens", "weight_dtype", "kv_dtype", "compute_dtype",
    "n_params", "weight_bytes", "kv_bytes_per_token", "kv_bytes", "kv_head_shards", "kv_batch_shards",
    "activation_bytes", "total_bytes", "hbm_bytes", "free_bytes", "fits", "max_batch", "critical_batch",
    "knee_batch", "param_load_s", "kv_load_s", "matmul_s", "attention_flops_s", "ici_s", "step_roofline_s",
    "step_overlapped_s", "step_serial_s", "bound", "tokens_per_s", "tokens_per_s_per_chip",
    "requests_per_s_per_chip", "usd_per_million_output_tokens", "assumptions",
)  # fmt: skip
TIMED = (*TIMES, *RATES, "bound", "usd_per_hour", "usd_per_million_output_tokens")


def test_the_json_has_the_agreed_keys() -> None:
    found = slicewise.step("llama-3-70b", slice="v5e:4x4", weights="int8").to_dict()
    assert set(CONTRACT) <= set(found)
    assert set(found) == {f.name for f in fields(Step)} - {"deployment"}


@given(deployment=..., batch=st.none() | st.integers(1, 10_000))
def test_what_fits_is_timed_and_what_does_not_says_why(deployment: Deployment, batch: int | None) -> None:
    step = step_of(deployment, batch)
    assert step.fits == (step.free_bytes >= -0.5) == (step.reason is None)
    assert step.fits == (step.batch <= step.max_batch)
    assert all((getattr(step, name) is None) != step.fits for name in TIMES)
    if not step.fits:
        assert all(getattr(step, name) is None for name in TIMED)
        assert "do not fit" in str(step.reason)
        assert "\n" not in str(step.reason)
    json.dumps(step.to_dict(), allow_nan=False)


@given(...)
def test_the_largest_batch_fits_and_one_more_does_not(deployment: Deployment) -> None:
    most = int(deployment.value("max_batch"))
    assert most >= 0
    assert not step_of(deployment, most + 1).fits
    if most:
        assert step_of(deployment, most).fits
        assert step_of(deployment, None).batch == most


@given(deployment=..., batch=st.integers(1, 10_000))
def test_the_bound_is_the_largest_term_of_the_view(deployment: Deployment, batch: int) -> None:
    timed = deployment.evaluate(TERMS, batch=batch)
    for view in ("roofline", "overlapped", "serial"):
        terms = {name: timed[name] for name in TERMS if view != "roofline" or name != "ici_s"}
        assert terms[f"{bound(timed, view)}_s"] == max(terms.values())


def test_the_step_follows_the_view() -> None:
    steps = {
        view: slicewise.step("llama-3-70b", slice="v5e:8x16", weights="int8", batch=256, view=view)
        for view in ("roofline", "overlapped", "serial")
    }
    for view, step in steps.items():
        assert step.step_s == getattr(step, f"step_{view}_s")
        assert step.tokens_per_s == pytest.approx(256 / (step.step_s or 0))
    assert (steps["roofline"].bound, steps["serial"].bound) == ("kv_load", "ici")


@pytest.mark.parametrize("name", ["", "tpot_s", "step_overlapped_s", "total_bytes", "max_batch", "knee_batch"])
def test_numbers_are_explained_at_the_batch_of_the_step(name: str) -> None:
    step = slicewise.step("llama-3-70b", slice="v5e:4x4", weights="int8", batch=32)
    value = getattr(step, {"": "step_s", "tpot_s": "step_s"}.get(name, name))
    assert step.explain(name).value == value


@pytest.mark.parametrize("name", [*CONTRACT])
def test_every_number_of_the_json_can_be_explained_or_is_no_number(name: str) -> None:
    step = slicewise.step("llama-3-70b", slice="v5e:4x4", weights="int8", batch=32)
    value = getattr(step, name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        assert step.explain(name).value == value


@pytest.mark.parametrize(
    "name",
    ["", "step_s", "tokens_per_s", "usd_per_million_output_tokens", "prefill_servers_per_decode_server"],
)
def test_no_time_is_derived_for_what_does_not_fit(name: str) -> None:
    step = slicewise.step("llama-3-405b", slice="v5e:2x2")
    with pytest.raises(InputError) as refused:
        step.explain(name)
    assert "\n" not in str(refused.value)
    assert step.explain("total_bytes").value == step.total_bytes


def test_without_a_slice_the_smallest_that_fits_is_taken() -> None:
    assert slicewise.step("llama-3-8b", context=8192).slice == "v5e:2x2"
    assert slicewise.step("llama-3-405b", chip="v5e").slice == "v5e:8x8"


# Weights in GB and GiB, and 2 x 80 GB at 0.9: https://github.com/llm-d/llm-d-benchmark/issues/381
def test_70b_on_two_gpus_with_the_memory_that_an_engine_sees() -> None:
    gib = 2**30
    step = slicewise.step(
        "meta-llama/Llama-3.1-70B-Instruct", slice="h100:2", hbm="79.19GiB", memory_fraction=0.9, batch=1, context=1024
    )
    assert step.weight_bytes / gib == pytest.approx(131.417, rel=1e-4)
    assert step.weight_bytes / 1e9 == pytest.approx(141.107, rel=1e-4)
    assert step.hbm_bytes / gib == pytest.approx(142.5, rel=5e-3)
    assert step.fits


def test_an_unknown_price_can_be_given() -> None:
    with pytest.raises(InputError, match="usd_per_chip_hour, which is not known here; give --price"):
        slicewise.step("llama-3-8b", slice="v6e:1x1", batch=1, context=1024).explain("usd_per_hour")


def test_dollars_are_unknown_without_a_price_and_follow_a_given_one() -> None:
    # $2.50 an hour at 50 tokens/s: $13.89 a million tokens.
    unpriced = slicewise.step("llama-3-8b", slice="v6e:1x1", batch=1, context=1024)
    assert unpriced.usd_per_hour is unpriced.usd_per_million_output_tokens is unpriced.price is None
    priced = slicewise.step("llama-3-8b", slice="v6e:1x1", batch=1, context=1024, price=2.5)
    rate = 50 / (priced.tokens_per_s or 0)
    assert (priced.usd_per_million_output_tokens or 0) / rate == pytest.approx(13.89, rel=1e-3)
