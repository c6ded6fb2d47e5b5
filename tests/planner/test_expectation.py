"""What expected times rest on is said, and so is where they are carried further than was measured."""

import pytest

import slicewise
from slicewise.catalog.efficiency import shipped
from slicewise.planner.question import ask


def of(model, slice_, **words):
    return ask(model, {"slice": slice_, "price": 1, **words}).deployment().expectation


def test_a_measured_chip_says_whose_times_they_are():
    found = of("llama-3-70b", "h100:8")
    assert found.is_calibrated
    assert found.engine == "TensorRT-LLM 0.9.0"
    assert "on h100, h200: 103 measured steps of 2 models and 69 prefills" in found.basis
    assert (found.decode.n_rows + found.decode_large.n_rows, found.prefill.n_rows) == (103, 69)


def test_large_batches_have_a_range_of_their_own():
    found = of("llama-3-70b", "h100:8")
    assert found.decode_large.high > found.decode.high
    small, large = (
        slicewise.step("llama-3-70b", slice="h100:8", weights="fp8", kv="fp8", isl=1024, osl=128, batch=batch)
        for batch in (63, 64)
    )
    assert small.step_high_s == pytest.approx(small.step_expected_s * found.decode.high)
    assert large.step_high_s == pytest.approx(large.step_expected_s * found.decode_large.high)


def test_a_larger_batch_has_no_lower_range():
    deployment = ask("llama-3-70b", {"slice": "h100:8", "weights": "fp8", "price": 1}).deployment()
    small, edge, between, large, larger = (float(deployment.value("step_low_s", batch=b)) for b in (8, 32, 48, 64, 200))
    assert small < edge < larger
    assert (between, large) == pytest.approx((edge, edge))
    expected_s, ratios = float(deployment.value("step_expected_s", batch=64)), deployment.inputs
    assert large > expected_s * ratios["large_step_low_ratio"]
    assert larger == float(deployment.value("step_expected_s", batch=200)) * ratios["large_step_low_ratio"]
    derived = deployment.explain("step_low_s", batch=64)
    assert derived.value == large
    whole = next(part for part in derived.parts if part.name == "small_step_s")
    assert whole.value == float(deployment.value("step_expected_s", batch=32))
    assert whole.parts


@pytest.mark.parametrize("slice_", ["h100:1", "h100:8", "l40s:8", "a100:4", "mi300x:8"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_engine_that_was_not_measured_has_the_range_of_other_engines(slice_, engine):
    plain, named = of("llama-3-8b", slice_), of("llama-3-8b", slice_, engine=engine)
    others = shipped("gpus")[0].other_engine_errors
    chips = "1" if slice_.endswith(":1") else "2+"
    for name, key in (("decode", f"decode {chips}"), ("prefill", f"prefill {chips}")):
        error = getattr(named, name)
        assert error.low == min(getattr(plain, name).low, others[key].low) < getattr(plain, name).low
        assert error.high == max(getattr(plain, name).high, others[key].high) > getattr(plain, name).high
    assert f"What {engine} itself would take was not measured: the range is at least that of engines" in named.basis
    assert f"It held {others['decode 1'].held:.0%} of steps and {others['prefill 1'].held:.0%} of pref" in named.basis
    assert "made to hold 8 of 10" not in named.basis
    assert "itself would take" not in plain.basis
    # What is expected is the same: nothing is known of the other engine but how far engines lie apart.
    assert named.inputs["layer_s"] == plain.inputs["layer_s"]


def test_the_range_of_an_engine_is_what_is_printed():
    words = {"slice": "h100:8", "weights": "fp8", "batch": 32}
    named, error = slicewise.step("llama-3-70b", **words, engine="vllm"), of("llama-3-70b", "h100:8", engine="vllm")
    assert named.step_low_s == pytest.approx(max(named.step_expected_s * error.decode.low, named.step_overlapped_s))
    assert named.step_high_s == pytest.approx(named.step_expected_s * error.decode.high)


def test_an_engine_on_a_tpu_has_the_range_of_servers():
    plain, named = of("llama-3-70b", "v5e:4x4"), of("llama-3-70b", "v5e:4x4", engine="tpu-inference")
    assert named.decode.high == of("llama-3-8b", "v6e:2x2").decode.high > plain.decode.high
    assert "unlike them: the range is that of 25 rows of servers" in named.basis


@pytest.mark.parametrize(("slice_", "family"), [("h100:8", "hopper"), ("a100:2", "ampere"), ("l40s:1", "ada")])
def test_what_the_range_held_is_said_of_the_bucket_at_hand(slice_, family):
    found, errors = of("llama-3-8b", slice_), shipped(family)[0].errors
    chips = "1" if slice_.endswith(":1") else "2+"
    small, large, prefill = (errors[key] for key in (f"decode {chips}", f"decode {chips} large", f"prefill {chips}"))
    said = (
        f"held {small.held:.0%} of these steps below batch 64, {large.held:.0%} from there on, and {prefill.held:.0%}"
    )
    assert said in found.basis
    assert f"it held {large.held:.0%} of those that it never saw" in found.origins["large_step_low_ratio"][0]


def test_a_figure_says_whose_rows_it_rests_on():
    origins = of("llama-3-8b", "l40s:8").origins
    for name in ("kv_read_efficiency", "matmul_efficiency", "token_passes", "prefill_token_passes"):
        assert "one figure for a100, h100, h200, l40s, fitted to all 510 measurements" in origins[name][0]
    for name in ("weight_read_efficiency", "network_efficiency", "layer_s", "sync_s", "prefill_efficiency"):
        assert "fitted to 91 measurements of TensorRT-LLM 0.9.0 on l40s" in origins[name][0]


def test_one_chip_has_a_range_of_its_own():
    assert of("llama-3-8b", "h100:1").decode.high < of("llama-3-8b", "h100:2").decode.high


@pytest.mark.parametrize("slice_", ["b200:8", "mi300x:1"])
def test_a_chip_that_nobody_measured_says_so(slice_):
    found = of("llama-3-70b", slice_)
    assert not found.is_calibrated
    assert "is not calibrated" in found.basis
    assert found.decode.high > of("llama-3-8b", "h100:1").decode.high
    step = slicewise.step("llama-3-70b", slice=slice_, batch=1)
    assert step.is_calibrated is False
    assert found.basis in step.assumptions


@pytest.mark.parametrize(
    ("model", "slice_", "said"),
    [
        ("llama-3-8b", "h100:16", "more chips than the 8"),
        ("qwen3-30b-a3b", "h100:1", "not all plain attention"),
        ("deepseek-v3", "h200:16", "more chips than the 8 that were measured at most and of a model"),
    ],
)
def test_what_is_carried_further_has_the_wide_range(model, slice_, said):
    found = of(model, slice_)
    wide, like = of("llama-3-8b", "b200:8"), of("llama-3-8b", "h100:1")
    assert said in found.basis
    assert found.decode.high >= wide.decode.high > like.decode.high


def test_pipeline_stages_were_not_measured():
    found, like = of("llama-3-70b", "h100:8", tp=4, pp=2), of("llama-3-70b", "h100:8")
    assert "in pipeline stages" in found.basis
    assert found.decode.high >= of("llama-3-8b", "b200:8").decode.high > like.decode.high
    assert of("llama-3-70b", "v5e:4x4", tp=8, pp=2).decode.high > of("llama-3-70b", "v5e:4x4").decode.high


def test_a_range_is_told_by_the_batch_of_a_group():
    alone = slicewise.step("llama-3-8b", slice="h100:1", batch=8)
    replicas = slicewise.step("llama-3-8b", slice="h100:8", tp=1, dp=8, batch=64)
    for name in ("step_expected_s", "step_low_s", "step_high_s"):
        assert getattr(replicas, name) == pytest.approx(getattr(alone, name), rel=1e-6)


def test_chips_that_share_experts_wait_for_each_other():
    found = of("qwen3-30b-a3b", "h100:8", tp=1, dp=8, ep=8)
    assert found.inputs["sync_s"] > 0
    assert of("qwen3-30b-a3b", "h100:8", tp=1, dp=8, ep=1).inputs["sync_s"] == 0


def test_a_layout_counts_the_chips_that_wait_for_each_other():
    assert of("llama-3-8b", "h100:8", tp=1, dp=8).decode == of("llama-3-8b", "h100:1").decode


def test_the_share_in_prefill_is_that_of_the_operands_width():
    wide, narrow = of("llama-3-8b", "h100:1"), of("llama-3-8b", "h100:1", compute="fp8")
    assert wide.inputs["prefill_efficiency"] != narrow.inputs["prefill_efficiency"]
    # No prefill in 16 bits was measured on L40S: the other width stands in.
    assert of("llama-3-8b", "l40s:1").inputs == of("llama-3-8b", "l40s:1", compute="fp8").inputs


def test_every_figure_has_its_origin():
    found = of("llama-3-8b", "h100:1")
    assert found.inputs.keys() == found.origins.keys()
    told = [words for name, (words, _) in found.origins.items() if name != "sync_s"]
    assert all("TensorRT-LLM" in words or "measurements" in words for words in told)
    assert of("llama-3-8b", "h100:1", mfu=0.5).origins["prefill_efficiency"] == ("given by --mfu", "")
