"""Results of InferenceMAX (InferenceX). The numbers are made up; the shapes are those of the commits that are named."""

import json
from pathlib import Path
from typing import Any

import pytest

from slicewise.calibrate.inferencemax import NODES, REPLICATED, SHARDED_CONTEXT
from slicewise.calibrate.measurement import Reading
from slicewise.calibrate.read import Given, read_measurements
from slicewise.calibrate.served import CROWDED, NO_TPOT, NO_TTFT, SPECULATIVE, SPLIT
from slicewise.errors import InputError

GIVEN = Given(kv="bf16")
TIMES = {
    "tput_per_gpu": 40.2, "output_tput_per_gpu": 20.1, "mean_ttft": 0.081, "median_ttft": 0.08, "p99_ttft": 0.1,
    "mean_tpot": 0.0061, "median_tpot": 0.006, "mean_intvty": 164.0, "median_intvty": 166.7, "median_itl": 0.006,
    "median_e2el": 6.2,
}  # fmt: skip
# agg_*.json of utils/process_result.py at 00e51cc.
FIRST = {
    "hw": "h200-cw", "tp": 8, "ep": 1, "dp_attention": "false", "conc": 1, "model": "openai/gpt-oss-120b",
    "framework": "vllm", "precision": "fp4", "mtp": "off", **TIMES,
}  # fmt: skip
# The same at 105fa44, of a single node.
LATER = {
    "hw": "b200-nv", "conc": 1, "image": "vllm/vllm-openai:v0.15.1", "model": "deepseek-ai/DeepSeek-R1-0528",
    "infmax_model_prefix": "dsr1", "framework": "sglang", "precision": "fp8", "spec_decoding": "none", "disagg": False,
    "isl": 1024, "osl": 8192, "is_multinode": False, "tp": 8, "pp": 1, "dcp_size": 1, "pcp_size": 1, "ep": 8,
    "dp_attention": "false", "input_tput_per_gpu": 20.1, **TIMES,
}  # fmt: skip


def read(folder: Path, content: object, words: Given = GIVEN) -> Reading:
    path = folder / "agg.json"
    path.write_text(json.dumps(content))
    return read_measurements(path, words)


def test_one_request_at_a_time_is_a_step_and_a_prefill(tmp_path: Path) -> None:
    found = read(tmp_path, LATER)
    step, prefill = found.measurements
    assert (step.phase, step.seconds) == ("decode", 0.006)
    assert (prefill.phase, prefill.seconds) == ("prefill", 0.08)
    for one in found.measurements:
        assert (one.model, one.slice, one.weights, one.kv) == ("deepseek-r1", "b200:8", "fp8", "bf16")
        assert (one.batch, one.prompt_tokens, one.output_tokens, one.engine) == (1, 1024, 8192, "sglang")
        assert one.layout == {"tp": 8, "pp": 1, "ep": 8}
    assert not found.left_out


def test_the_first_results_state_no_lengths(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="states no isl and no osl of its decode time; give --isl and --osl"):
        read(tmp_path, FIRST)
    words = Given(kv="bf16", weights="mxfp4", prompt_tokens=1024, output_tokens=1024)
    step = read(tmp_path, FIRST, words).measurements[0]
    assert (step.model, step.slice, step.weights, step.layout) == (
        "gpt-oss-120b", "h200:8", "mxfp4", {"tp": 8, "ep": 1}
    )  # fmt: skip


def test_a_sweep_is_a_list_of_which_the_single_requests_are_of_use(tmp_path: Path) -> None:
    found = read(tmp_path, [LATER | {"conc": conc} for conc in (1, 4, 16, 64)])
    assert [one.where for one in found.measurements] == ["agg.json: [0]"] * 2
    assert found.left_out == {CROWDED: 3}


@pytest.mark.parametrize(
    ("values", "phases", "left_out"),
    [
        ({"disagg": True}, [], {SPLIT: 1}),
        ({"is_multinode": True}, [], {NODES: 1}),
        ({"dp_attention": "true"}, [], {REPLICATED: 1}),
        ({"dp_attention": True}, [], {REPLICATED: 1}),
        ({"dcp_size": 8}, [], {SHARDED_CONTEXT: 1}),
        ({"spec_decoding": "mtp"}, ["prefill"], {SPECULATIVE: 1}),
        ({"mtp": "on"}, ["prefill"], {SPECULATIVE: 1}),
        ({"median_tpot": None, "mean_tpot": 0.0}, ["prefill"], {NO_TPOT: 1}),
        ({"median_ttft": None, "mean_ttft": None}, ["decode"], {NO_TTFT: 1}),
        ({"median_tpot": None, "median_ttft": None}, ["decode", "prefill"], {}),
    ],
)
def test_what_is_of_no_use_is_counted_by_its_reason(
    tmp_path: Path, values: dict[str, Any], phases: list[str], left_out: dict[str, int]
) -> None:
    found = read(tmp_path, LATER | values)
    assert ([one.phase for one in found.measurements], found.left_out) == (phases, left_out)


def test_a_machine_that_the_catalog_does_not_have_needs_a_slice(tmp_path: Path) -> None:
    unknown = LATER | {"hw": "gx900"}
    with pytest.raises(InputError, match="states no slice of its decode time; give --slice"):
        read(tmp_path, unknown)
    assert read(tmp_path, unknown, Given(kv="bf16", slice="b200:8")).measurements[0].slice == "b200:8"
    with pytest.raises(InputError, match="slice is b200:8 there, and --slice says b200:4; leave --slice out"):
        read(tmp_path, LATER, Given(kv="bf16", slice="b200:4"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"conc": 0}, "key conc: 0 must be at least 1"),
        ({"conc": "one"}, "key conc: 'one' is no number"),
        ({"tp": 0}, "key tp: 0 must be at least 1"),
        ({"isl": -1}, "key isl: -1 must be at least 1"),
        ({"median_tpot": -1}, "key median_tpot: -1 must be greater than 0"),
        ({"median_tpot": []}, "key median_tpot: a list is no number"),
        ({"precision": "int5"}, "key precision 'int5' is not a dtype known here"),
        ({"disagg": "maybe"}, "key disagg: 'maybe' is neither true nor false"),
        ({"hw": 7}, "key hw: 7 is no word"),
    ],
)
def test_what_is_off_is_refused_with_its_key(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, LATER | values)
    assert str(refused.value).startswith("agg.json, key ")
    assert said in str(refused.value)
