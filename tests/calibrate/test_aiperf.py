"""Exports of AIPerf and GenAI-Perf. The numbers are made up; the shapes are those of the files that are named."""

import json
from pathlib import Path
from typing import Any

import pytest

from slicewise.calibrate.measurement import Reading
from slicewise.calibrate.read import Given, read_measurements
from slicewise.calibrate.served import CROWDED, NO_TPOT, NO_TTFT, OPEN
from slicewise.errors import InputError

GIVEN = Given(slice="h200:1", weights="bf16", kv="bf16")
METRICS: dict[str, Any] = {
    "request_throughput": {"unit": "requests/sec", "avg": 0.6},
    "request_latency": {"unit": "ms", "avg": 1650.0, "p50": 1640.0, "p99": 1700.0, "min": 1600.0, "std": 9.0},
    "time_to_first_token": {"unit": "ms", "avg": 62.0, "p50": 60.0, "p99": 70.0, "min": 55.0, "std": 1.0},
    "inter_token_latency": {"unit": "ms", "avg": 8.1, "p50": 8.0, "p99": 9.0, "min": 7.5, "std": 0.1},
    "output_sequence_length": {"unit": "tokens", "avg": 199.2, "p50": 200.0},
    "input_sequence_length": {"unit": "tokens", "avg": 2048.4},
}
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
# profile_export_aiperf.json, as docs/tutorials/working-with-profile-exports.md of AIPerf prints it at 8e6a033.
AIPERF = METRICS | {
    "was_cancelled": False,
    "error_summary": [],
    "input_config": {
        "endpoint": {"model_names": [MODEL], "type": "chat", "streaming": True, "url": "localhost:8000"},
        "loadgen": {"concurrency": 1, "request_rate_mode": "concurrency_burst", "request_count": 20},
    },
}
# The same with the configuration that AIPerf's exporter dumps at 047d59d: models and a list of phases.
PHASES = METRICS | {
    "schema_version": "1.0",
    "input_config": {
        "models": {"items": [{"name": MODEL}]},
        "endpoint": {"urls": ["http://localhost:8000"], "type": "chat", "streaming": True},
        "phases": [
            {"name": "warmup", "type": "concurrency", "concurrency": 4, "requests": 4, "exclude_from_results": True},
            {"name": "profiling", "type": "concurrency", "concurrency": 1, "requests": 20},
        ],
    },
}
# The same with phases by name, as its configuration files may have them.
NAMED = METRICS | {
    "input_config": {
        "models": {"items": [{"name": MODEL}]},
        "phases": {"warmup": {"concurrency": 4}, "profiling": {"type": "concurrency", "concurrency": 1}},
    }
}
# profile_export_genai_perf.json, as GenAI-Perf's tests/test_exporters/test_json_exporter.py has it at 120a6ed.
ARGUMENTS = METRICS | {
    "input_config": {
        "model": [MODEL], "backend": "tensorrtllm", "endpoint": None, "endpoint_type": "chat", "concurrency": 1,
        "request_rate": None, "synthetic_input_tokens_mean": 2048, "output_tokens_mean": 200,
    }
}  # fmt: skip
# The same of its later versions, as tests/test_process_export_files.py has it: the configuration in sections.
SECTIONS = METRICS | {
    "telemetry_stats": {"gpu_power_usage": {"unit": "W", "gpu0": {"avg": 300.0}}},
    "input_config": {
        "model_names": [MODEL],
        "endpoint": {"backend": "vllm", "service_kind": "openai", "url": "localhost:8000"},
        "perf_analyzer": {"path": "perf_analyzer", "stimulus": {"concurrency": 1}},
    },
}


def read(folder: Path, content: object, words: Given = GIVEN) -> Reading:
    path = folder / "e.json"
    path.write_text(json.dumps(content))
    return read_measurements(path, words)


@pytest.mark.parametrize(
    "content",
    [AIPERF, PHASES, NAMED, ARGUMENTS, SECTIONS],
    ids=["aiperf", "aiperf-phases", "aiperf-named", "genai-perf", "genai-perf-sections"],
)
def test_one_request_at_a_time_is_a_step_and_a_prefill(tmp_path: Path, content: dict[str, Any]) -> None:
    found = read(tmp_path, content)
    step, prefill = found.measurements
    assert (step.phase, step.seconds) == ("decode", 0.008)
    assert (prefill.phase, prefill.seconds) == ("prefill", 0.06)
    assert {(one.model, one.batch, one.prompt_tokens, one.output_tokens, one.engine) for one in found.measurements} == {
        ("llama-3-8b", 1, 2048, 200, "")
    }
    assert not found.left_out


@pytest.mark.parametrize(
    ("config", "left_out"),
    [
        ({"loadgen": {"concurrency": 32}}, {CROWDED: 1}),
        ({"loadgen": {"request_rate": 2.0}}, {OPEN: 1}),
        ({"concurrency": [8]}, {CROWDED: 1}),
        ({"concurrency": [1, 8]}, {OPEN: 1}),
        ({"phases": [{"name": "a", "concurrency": 1}, {"name": "b", "concurrency": 1}]}, {OPEN: 1}),
        ({"perf_analyzer": {"stimulus": {"request_rate": 3.0}}}, {OPEN: 1}),
        ({}, {OPEN: 1}),
    ],
)
def test_more_requests_at_a_time_are_left_out(tmp_path: Path, config: dict[str, Any], left_out: dict[str, int]) -> None:
    assert read(tmp_path, METRICS | {"input_config": config}) == Reading(measurements=(), left_out=left_out)


def test_what_was_not_streamed_has_neither_time(tmp_path: Path) -> None:
    plain = {
        name: value for name, value in AIPERF.items() if name not in ("time_to_first_token", "inter_token_latency")
    }
    assert read(tmp_path, plain) == Reading(measurements=(), left_out={NO_TPOT: 1, NO_TTFT: 1})
    zero = AIPERF | {"inter_token_latency": {"unit": "ms", "avg": 0.0}}
    assert read(tmp_path, zero).left_out == {NO_TPOT: 1}


@pytest.mark.parametrize(("unit", "value"), [("ms", 60.0), ("s", 0.06), ("sec", 0.06), ("us", 60e3), ("ns", 60e6)])
def test_units_are_those_that_the_file_names(tmp_path: Path, unit: str, value: float) -> None:
    found = read(tmp_path, AIPERF | {"time_to_first_token": {"unit": unit, "p50": value}})
    assert found.measurements[1].seconds == pytest.approx(0.06)


def test_of_several_models_none_is_the_model(tmp_path: Path) -> None:
    config = {"model_names": ["a", "b"], "concurrency": 1}
    with pytest.raises(InputError, match="states no model of its decode time; give --model"):
        read(tmp_path, METRICS | {"input_config": config})
    odd = {"models": {"items": [3, {"name": 4}, {"name": MODEL}]}, "concurrency": 1}
    assert read(tmp_path, METRICS | {"input_config": odd}).measurements[0].model == "llama-3-8b"


def test_lengths_may_be_given(tmp_path: Path) -> None:
    bare = {name: value for name, value in AIPERF.items() if not name.endswith("sequence_length")}
    words = Given(slice="h200:1", weights="bf16", kv="bf16", prompt_tokens=100, output_tokens=50)
    step = read(tmp_path, bare, words).measurements[0]
    assert (step.prompt_tokens, step.output_tokens) == (100, 50)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"time_to_first_token": 3}, "key time_to_first_token: 3 where an object is due"),
        ({"time_to_first_token": {"p50": 3.0}}, "key time_to_first_token.unit: states no unit"),
        ({"time_to_first_token": {"unit": "hops", "p50": 3.0}}, "key time_to_first_token.p50: '3.0hops' has no unit"),
        ({"time_to_first_token": {"unit": "ms", "p50": "x"}}, "key time_to_first_token.p50: 'x' is no number"),
        ({"time_to_first_token": {"unit": "ms", "avg": -3}}, "key time_to_first_token.avg: -3 must be greater than 0"),
        ({"input_sequence_length": {"avg": -3}}, "key input_sequence_length.avg: -3 must be greater than 0"),
        ({"input_config": []}, "key input_config: a list where an object is due"),
        ({"input_config": {"loadgen": {"concurrency": "x"}}}, "key input_config.loadgen.concurrency: 'x' is no number"),
        ({"input_config": {"loadgen": 1}}, "key input_config.loadgen: 1 where an object is due"),
    ],
)
def test_what_is_off_is_refused_with_its_key(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, AIPERF | values)
    assert str(refused.value).startswith("e.json, key ")
    assert said in str(refused.value)
