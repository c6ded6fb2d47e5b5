"""Files of vLLM's benchmarks. The numbers are made up; the shapes are those of the commits that are named."""

import json
from pathlib import Path
from typing import Any

import pytest

from slicewise.calibrate.measurement import Reading
from slicewise.calibrate.read import Given, read_measurements
from slicewise.calibrate.served import CROWDED, NO_LENGTHS, NO_TPOT, NO_TTFT, OPEN, SPECULATIVE
from slicewise.calibrate.vllm import OFFLINE, TESTED
from slicewise.errors import InputError

SLICE = {"slice": "h100:2", "weights": "fp8", "kv": "fp8"}
ASKED = Given(**SLICE, model="llama-3-8b", batch=8, prompt_tokens=1024, output_tokens=128)
# `vllm bench latency --output-json`, of vllm/benchmarks/latency.py at 00cae07.
LATENCY = {
    "avg_latency": 1.52, "std_latency": 0.01, "latencies": [1.5, 1.51, 1.53, 1.6],
    "percentiles": {"10": 1.503, "25": 1.507, "50": 1.52, "75": 1.55, "90": 1.58, "99": 1.6},
}  # fmt: skip
# `vllm bench serve --save-result`, of vllm/benchmarks/serve.py at 009e6d4.
SERVE = {
    "date": "20250930-101112", "endpoint_type": "vllm", "backend": "vllm", "label": None,
    "model_id": "meta-llama/Llama-3.1-8B-Instruct", "tokenizer_id": "meta-llama/Llama-3.1-8B-Instruct",
    "num_prompts": 16, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 1, "duration": 24.5,
    "completed": 16, "failed": 0, "total_input_tokens": 16368, "total_output_tokens": 2048,
    "request_throughput": 0.65, "request_goodput": None, "output_throughput": 83.6, "total_token_throughput": 751.7,
    "mean_ttft_ms": 31.0, "median_ttft_ms": 30.0, "std_ttft_ms": 1.0, "p99_ttft_ms": 35.0,
    "mean_tpot_ms": 6.1, "median_tpot_ms": 6.0, "std_tpot_ms": 0.1, "p99_tpot_ms": 6.4,
    "mean_itl_ms": 6.1, "median_itl_ms": 6.0, "std_itl_ms": 0.2, "p99_itl_ms": 7.0,
}  # fmt: skip
# What --save-detailed adds.
DETAILED = {
    "input_lens": [1000, 1024, 1050], "output_lens": [128, 0, 128], "ttfts": [0.03], "itls": [[0.006]],
    "start_times": [0.0], "generated_texts": [""], "errors": [""],
}  # fmt: skip
# `vllm bench throughput --output-json`, of vllm/benchmarks/throughput.py at 0202831.
THROUGHPUT = {
    "elapsed_time": 12.0, "num_requests": 1000, "total_num_tokens": 400_000, "requests_per_second": 83.0,
    "tokens_per_second": 33_000.0,
}  # fmt: skip


def read(folder: Path, content: object, words: Given) -> Reading:
    path = folder / "r.json"
    path.write_text(json.dumps(content))
    return read_measurements(path, words)


def test_latency_is_of_a_batch_end_to_end(tmp_path: Path) -> None:
    found = read(tmp_path, LATENCY, ASKED)
    (one,) = found.measurements
    assert (one.phase, one.batch, one.prompt_tokens, one.output_tokens) == ("end_to_end", 8, 1024, 128)
    assert (one.seconds, one.engine, one.where) == (pytest.approx(1.52), "vllm", "r.json")
    assert not found.left_out


@pytest.mark.parametrize(
    ("left", "seconds"), [(("avg_latency", "latencies"), 1.52), (("avg_latency", "percentiles"), 1.52)]
)
def test_latency_is_the_median_of_what_is_there(tmp_path: Path, left: tuple[str, ...], seconds: float) -> None:
    content = {name: value for name, value in (LATENCY | {"avg_latency": 9.0}).items() if name in left}
    content["avg_latency"] = 9.0
    if left[1] == "latencies":
        content["percentiles"] = {"50": 3.0}
    assert read(tmp_path, content, ASKED).measurements[0].seconds == pytest.approx(seconds)


def test_latency_without_iterations_is_the_mean(tmp_path: Path) -> None:
    found = read(tmp_path, {"avg_latency": 2.0, "latencies": []}, ASKED)
    assert found.measurements[0].seconds == 2.0


def test_latency_may_be_of_the_engine_on_tpus(tmp_path: Path) -> None:
    words = Given(
        model="llama-3-8b", slice="v6e:2x4", weights="bf16", kv="bf16", batch=8, prompt_tokens=1024, output_tokens=128,
        engine="tpu-inference",
    )  # fmt: skip
    assert read(tmp_path, LATENCY, words).measurements[0].engine == "tpu-inference"


def test_latency_states_neither_batch_nor_lengths(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give --model and --batch and --isl and --osl"):
        read(tmp_path, LATENCY, Given(**SLICE))


def test_serving_one_request_at_a_time_is_a_step_and_a_prefill(tmp_path: Path) -> None:
    found = read(tmp_path, SERVE, Given(**SLICE))
    step, prefill = found.measurements
    assert (step.phase, step.batch, step.seconds) == ("decode", 1, 0.006)
    assert (prefill.phase, prefill.batch, prefill.seconds) == ("prefill", 1, 0.03)
    assert {(one.model, one.prompt_tokens, one.output_tokens, one.engine) for one in found.measurements} == {
        ("llama-3-8b", 1023, 128, "vllm")
    }
    assert not found.left_out


def test_lengths_are_the_median_ones_where_each_is_there(tmp_path: Path) -> None:
    step = read(tmp_path, SERVE | DETAILED, Given(**SLICE)).measurements[0]
    assert (step.prompt_tokens, step.output_tokens) == (1024, 128)


@pytest.mark.parametrize(
    ("values", "phases", "left_out"),
    [
        ({"max_concurrency": 16}, [], {CROWDED: 1}),
        ({"max_concurrency": None}, [], {OPEN: 1}),
        ({"probe_completed": 10}, [], {OPEN: 1}),
        ({"completed": 0}, [], {NO_LENGTHS: 1}),
        ({"median_tpot_ms": 0.0, "mean_tpot_ms": 0.0}, ["prefill"], {NO_TPOT: 1}),
        ({"median_ttft_ms": 0.0, "mean_ttft_ms": 0.0}, ["decode"], {NO_TTFT: 1}),
        ({"spec_decode_acceptance_length": 2.7}, ["prefill"], {SPECULATIVE: 1}),
        ({"accept_length": 2.1}, ["prefill"], {SPECULATIVE: 1}),
        ({"accept_length": None}, ["decode", "prefill"], {}),
        ({"completed": 1}, ["decode"], {TESTED: 1}),
    ],
)
def test_what_is_of_no_use_is_counted_by_its_reason(
    tmp_path: Path, values: dict[str, Any], phases: list[str], left_out: dict[str, int]
) -> None:
    found = read(tmp_path, SERVE | values, Given(**SLICE))
    assert ([one.phase for one in found.measurements], found.left_out) == (phases, left_out)


def test_offline_throughput_is_of_no_use(tmp_path: Path) -> None:
    assert read(tmp_path, THROUGHPUT, Given()) == Reading(measurements=(), left_out={OFFLINE: 1})


def test_results_that_were_appended_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(f"{json.dumps(SERVE)}\n{json.dumps(SERVE | {'max_concurrency': 4})}")
    found = read_measurements(path, Given(**SLICE))
    assert [one.where for one in found.measurements] == ["r.json:line 1"] * 2
    assert found.left_out == {CROWDED: 1}


def test_a_flag_says_what_a_server_s_own_name_means(tmp_path: Path) -> None:
    served = SERVE | {"model_id": "prod-chat", "backend": "openai-chat"}
    assert {one.model for one in read(tmp_path, served, Given(**SLICE)).measurements} == {"prod-chat"}
    found = read(tmp_path, served, Given(**SLICE, model="llama-3-8b", engine="sglang")).measurements[0]
    assert (found.model, found.engine) == ("llama-3-8b", "sglang")
    with pytest.raises(InputError, match="model is llama-3-8b there, and --model says llama-3-70b"):
        read(tmp_path, SERVE, Given(**SLICE, model="llama-3-70b"))
    with pytest.raises(InputError, match="batch is 1 there, and --batch says 8"):
        read(tmp_path, SERVE, Given(**SLICE, batch=8))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LATENCY | {"latencies": 3}, "key latencies: 3 is no list"),
        (LATENCY | {"latencies": [1.0, "fast"]}, "key latencies[1]: 'fast' is no number"),
        (LATENCY | {"latencies": [1.0, -1.0]}, "key latencies: -1 is below 0"),
        (LATENCY | {"latencies": [], "percentiles": [1]}, "key percentiles: a list where an object is due"),
        ({"avg_latency": None, "latencies": []}, "holds no latency"),
        (SERVE | {"max_concurrency": 0}, "key max_concurrency: 0 must be at least 1"),
        (SERVE | {"max_concurrency": "one"}, "key max_concurrency: 'one' is no number"),
        (SERVE | {"completed": 1.5}, "key completed: 1.5 must be a whole number"),
        (SERVE | {"median_tpot_ms": -6.0}, "key median_tpot_ms: -6 must be greater than 0"),
        (SERVE | {"median_tpot_ms": float("nan")}, "key median_tpot_ms: nan is no sensible number"),
        (SERVE | {"model_id": ["a"]}, "key model_id: a list is no word"),
        (SERVE | {"total_input_tokens": {}}, "key total_input_tokens: an object is no number"),
    ],
)
def test_what_is_off_is_refused_with_its_key(tmp_path: Path, content: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, content, ASKED if "avg_latency" in content else Given(**SLICE))
    assert str(refused.value).startswith("r.json")
    assert said in str(refused.value)
