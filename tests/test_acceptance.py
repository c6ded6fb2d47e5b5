"""Worked numbers from chapter 8 of *How to Scale Your Model*, and cases asked in public, through the Python API.

Values without a source are exact arithmetic of the formulas in the chapter with full precision; they agree with the
printed answers within rounding, or the book's own errata say why not (see `slicewise book`).
"""

import json
from pathlib import Path

import pytest
import yaml

import slicewise

BOOK = {"book": True, "params": "70e9"}
EXERCISE_3 = {
    "weights": "int8",
    "kv": "int8",
    "context": 8192,
    "tpot": "15ms",
    "hbm": "16GB",
    "memory_fraction": 1,
    "split": "ideal",
}
CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-3)


# -- questions 0.2 and 0.3 -------------------------------------------------------------------------------------------


def test_step_on_4x2_gives_ledger_time_and_bound() -> None:
    step = slicewise.step(
        "llama-3-70b", slice="v5e:4x2", weights="int8", kv="int8", batch=32, context=8192, **BOOK
    ).to_dict()
    assert step["kv_bytes_per_token"] == 163_840
    assert step["total_bytes"] == close(112.950e9)
    assert step["step_s"] == close(17.218e-3)
    assert step["tokens_per_s"] == close(1858.5)
    assert step["tokens_per_s_per_chip"] == close(232.3)
    assert step["bound"] == "param_load"
    assert step["fits"] is True
    assert step["slice"] == "v5e:2x4"


def test_step_on_4x4_is_half_as_long_at_the_same_throughput_per_chip() -> None:
    step = slicewise.step("llama-3-70b", slice="v5e:4x4", weights="int8", kv="int8", batch=32, context=8192, **BOOK)
    assert step.step_s == close(8.609e-3)
    assert step.tokens_per_s_per_chip == close(232.3)


# -- questions 0.5 and 0.8, exercise 2 -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "smallest", "doubled"),
    [("bf16", "v5e:4x4", "v5e:4x8"), ("int8", "v5e:2x4", "v5e:4x4"), ("int4", "v5e:2x2", "v5e:2x4")],
)
def test_memory_names_the_smallest_slice_and_its_sequences(dtype: str, smallest: str, doubled: str) -> None:
    for count, sequences in ((BOOK, 43), ({"book": True}, 42)):
        found = slicewise.memory("llama-3-70b", context=8192, weights=dtype, kv=dtype, **count)
        by_slice = {row.slice: row.max_batch for row in found.slices}
        assert found.smallest == smallest
        assert by_slice[smallest] == sequences
        assert by_slice[doubled] == 138


@pytest.mark.parametrize(
    ("context", "smallest"),
    [(506, "v5e:1x1"), (507, "v5e:2x2"), (2048, "v5e:2x2"), (4096, "v5e:2x4"), (8192, "v5e:4x4")],
)
def test_llama_3_8b_at_batch_240(context: int, smallest: str) -> None:
    found = slicewise.memory("llama-3-8b", weights="int8", kv="int8", batch=240, context=context, book=True)
    assert found.smallest == smallest


def test_logits_of_llama_3_8b_at_batch_240_are_123_mb() -> None:
    step = slicewise.step("llama-3-8b", slice="v5e:4x4", weights="int8", kv="int8", batch=240, context=4096)
    gate_and_up = 2 * 2 * 240 * 14_336
    assert step.activation_bytes - gate_and_up == close(123.1e6)


# -- questions 0.4 and 0.9 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "compute", "batch"), [("bf16", "bf16", 240), ("int8", "bf16", 120), ("int8", "int8", 240)]
)
def test_critical_batch(weights: str, compute: str, batch: int) -> None:
    found = slicewise.limits("llama-3-70b", slice="v5e:4x4", weights=weights, compute=compute, **BOOK)
    assert found.critical_batch == pytest.approx(batch, abs=0.5)


def test_model_parallel_limits_with_rings_and_with_lines() -> None:
    rings = slicewise.limits("llama-3-70b", slice="v5e:4x4", batch=64, **BOOK)
    lines = slicewise.limits("llama-3-70b", slice="v5e:4x4", batch=64, ici="auto", **BOOK)
    assert rings.model_parallel_limit_flops_bound == close(26.2)
    assert lines.model_parallel_limit_flops_bound == close(13.1)
    assert rings.model_parallel_limit_hbm_bound == close(98.34)
    assert lines.model_parallel_limit_hbm_bound == close(49.17)


def test_gate_matmul_and_kv_layout_on_4x8() -> None:
    found = slicewise.limits("llama-3-70b", slice="v5e:4x8", batch=64, **BOOK)
    assert found.gate_matmul_ici_one_axis_s == close(11.65e-6)
    assert found.gate_matmul_hbm_s == close(17.90e-6)
    assert found.gate_matmul_flops_s == close(4.77e-6)
    assert (found.kv_head_shards, found.kv_batch_shards) == (8, 4)


# -- questions 0.6 to 0.8 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "small", "requests", "large", "requests_doubled"),
    [
        ("bf16", "v5e:4x4", 0.2696, "v5e:4x8", 0.4330),
        ("int8", "v5e:4x2", 0.5392, "v5e:4x4", 0.8320),
        ("int4", "v5e:2x2", 1.0785, "v5e:2x4", 1.2773),
    ],
)
def test_requests_per_chip(dtype: str, small: str, requests: float, large: str, requests_doubled: float) -> None:
    words = {"weights": dtype, "kv": dtype, "osl": 512, **BOOK}
    step = slicewise.step("llama-3-70b", slice=small, batch=43, **words)
    assert step.step_s == close(19.469e-3)
    assert step.requests_per_s_per_chip == close(requests)
    doubled = slicewise.step("llama-3-70b", slice=large, batch=138, **words)
    assert doubled.requests_per_s_per_chip == close(requests_doubled)


# -- questions 0.10 to 0.12 ------------------------------------------------------------------------------------------


def test_prefill_by_the_book_and_with_attention() -> None:
    words = {"slice": "v5e:4x4", "isl": 8192, "mfu": 0.4}
    assert slicewise.prefill("llama-3-70b", **words, **BOOK).prefill_s == close(0.9096)
    assert slicewise.prefill("llama-3-70b", **words, ici="none").prefill_s == close(0.9593)


@pytest.mark.parametrize(("batch", "ratio"), [(32, 3.302), (43, 3.924)])
def test_prefill_servers_per_decode_server(batch: int, ratio: float) -> None:
    found = slicewise.disaggregate("llama-3-70b", slice="v5e:4x4", isl=8192, osl=512, batch=batch, **BOOK)
    assert found.prefill_servers_per_decode_server == close(ratio)


def test_steady_state() -> None:
    found = slicewise.disaggregate("llama-3-70b", slice="v5e:4x4", isl=8192, osl=4096, batch=32, **BOOK)
    assert found.sequences_finished_per_step == 1 / 128
    assert found.tokens_evicted_per_step == 96


# -- exercise 3 ------------------------------------------------------------------------------------------------------


def test_exercise_3_overlapped() -> None:
    plan = slicewise.plan("llama-3-405b", chip="v5e", view="overlapped", **EXERCISE_3)
    best = plan.recommended
    assert best is not None
    assert (best.step.slice, best.step.batch, best.step.knee_batch) == ("v5e:8x8", 55, 38)
    assert best.tpot_s == close(14.07e-3)
    assert best.step.tokens_per_s == close(3908)
    assert best.step.tokens_per_s_per_chip == close(61.1)
    top = plan.highest_throughput
    assert top is not None
    assert (top.step.slice, top.step.batch) == ("v5e:8x8", 59)
    assert top.step.tokens_per_s == close(3942)
    assert top.step.tokens_per_s_per_chip == close(61.6)
    larger = next(option for option in plan.candidates if option.step.slice == "v5e:8x16")
    assert larger.step.batch == 91
    assert larger.step.tokens_per_s == close(6074)
    assert larger.step.tokens_per_s_per_chip == close(47.5)
    refused = {item.slice: item for item in plan.rejected}
    assert "parameter loading alone takes 15.467 ms" in refused["v5e:4x8"].detail
    assert plan.least_param_load_s == close(1.9334e-3)
    assert plan.least_param_load.slice.name == "v5e:16x16"


def test_exercise_3_with_whole_sequences() -> None:
    best = slicewise.plan("llama-3-405b", **{**EXERCISE_3, "split": "whole", "view": "overlapped"}).recommended
    assert best is not None
    assert (best.step.slice, best.step.batch) == ("v5e:8x8", 56)


def test_exercise_3_serial() -> None:
    plan = slicewise.plan("llama-3-405b", **EXERCISE_3, view="serial")
    by_slice = {option.step.slice: option for option in plan.candidates}
    assert "v5e:8x8" not in by_slice
    largest = by_slice["v5e:8x16"]
    assert largest.step.batch == 63
    assert largest.step.tokens_per_s == close(4240)
    assert largest.step.tokens_per_s_per_chip == close(33.1)


def test_exercise_3_roofline() -> None:
    top = slicewise.plan("llama-3-405b", **EXERCISE_3, view="roofline").highest_throughput
    assert top is not None
    assert top.step.tokens_per_s_per_chip == close(149.8)


# -- the figures -----------------------------------------------------------------------------------------------------


def test_frontier_holds_the_figures_spot_values() -> None:
    contexts = [2048, 4096, 8192, 16384, 32768, 65536]
    found = slicewise.frontier("llama-3-70b", slice="v5e:4x4", weights="int8", kv="int8", context=contexts, **BOOK)
    assert list(found.max_batch.values()) == [554, 277, 138, 69, 34, 17]
    columns = found.columns
    rows = {
        (int(c), int(b)): i for i, (c, b) in enumerate(zip(columns["context_tokens"], columns["batch"], strict=True))
    }
    one, many = rows[2048, 1], rows[32768, 33]
    per_ms = 1e3
    assert columns["param_load_s"][one] == close(5.33537e-3)
    assert columns["step_s"][one] == close(5.36094e-3)
    assert columns["tokens_per_s_per_chip"][one] / per_ms == close(0.0116584)
    assert columns["step_s"][many] == close(18.8390e-3)
    assert columns["tokens_per_s_per_chip"][many] / per_ms == close(0.109480)


def test_dollars() -> None:
    rows = slicewise.compare(["v5e", "v5p", "h100"]).rows
    assert [row.flops_per_usd for row in rows] == [close(5.91e17), close(3.934e17), close(3.30e17)]
    assert [row.bytes_moved_per_usd for row in rows] == [close(2.46e15), close(2.4e15), close(1.1167e15)]


# -- questions asked in public ---------------------------------------------------------------------------------------


def case(name: str) -> dict:
    path = CASES / f"{name}.yaml"
    if not path.is_file():
        pytest.skip(f"the folder of cases is not beside this checkout: {name}")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def right(found: dict, name: str) -> list[float]:
    value = next(item["value"] for item in found["right_value"] if item["name"] == name)
    return value if isinstance(value, list) else [value]


def test_case_33_v5e_slices_llama3_70b() -> None:
    found = case("33-v5e-slices-llama3-70b")
    given = found["inputs"]
    chips, sequences, requests = [], [], []
    for dtype in given["dtypes"]:
        words = {"weights": dtype, "kv": dtype, "context": given["seq_len"], "params": given["params"], "book": True}
        memory = slicewise.memory("llama-3-70b", **words)
        assert memory.smallest is not None
        slice_ = slicewise.load_slice(memory.smallest)
        step = slicewise.step("llama-3-70b", slice=slice_, osl=512, **words)
        chips.append(slice_.n_chips)
        sequences.append(step.batch)
        requests.append(step.requests_per_s_per_chip)
    assert chips == right(found, "min_slice_chips")
    assert sequences == pytest.approx(right(found, "sequences_8k"), abs=1)
    assert requests == pytest.approx(right(found, "qps_per_chip_512_out"), rel=0.02)
    doubled = slicewise.memory(
        "llama-3-70b", slice="v5e:4x8", context=given["seq_len"], params=given["params"], book=True
    )
    assert [doubled.slices[0].max_batch] == pytest.approx(right(found, "sequences_bf16_on_4x8"), abs=1)


def test_case_35_prefill_8k_and_pd_ratio() -> None:
    found = case("35-prefill-8k-and-pd-ratio")
    given = found["inputs"]
    words = {
        "slice": f"v5e:{given['n_per_slice']}",
        "weights": "int8",
        "kv": "int8",
        "isl": given["isl"],
        "osl": given["osl"],
        "params": given["params"],
        "book": True,
    }
    full = slicewise.disaggregate("llama-3-70b", **words, mfu=1, batch=given["decode_batch"])
    real = slicewise.disaggregate("llama-3-70b", **words, mfu=given["prefill_mfu"], batch=given["decode_batch"])
    assert [full.prefill_s] == pytest.approx(right(found, "prefill_s_100pct"), rel=0.01)
    assert [real.prefill_s] == pytest.approx(right(found, "prefill_s_40pct"), rel=0.01)
    assert [real.decode_requests_per_s] == pytest.approx(right(found, "decode_req_s_per_slice"), rel=0.01)
    assert [real.prefill_requests_per_s] == pytest.approx(right(found, "prefill_req_s_per_slice"), rel=0.01)
    assert [real.prefill_servers_per_decode_server] == pytest.approx(
        right(found, "prefill_slices_per_decode_slice"), rel=0.02
    )


def test_case_46_pd_kv_transfer(tmp_path: Path) -> None:
    found = case("46-pd-kv-transfer")
    given, shape = found["inputs"], found["inputs"]["config"]
    config = {
        "model_type": "llama",
        "hidden_size": 5120,
        "intermediate_size": 25600,
        "num_attention_heads": 64,
        "vocab_size": 151936,
        "num_hidden_layers": shape["layers"],
        "num_key_value_heads": shape["kv_heads"],
        "head_dim": shape["head_dim"],
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    bits = given["nic_gbit_s"]
    moved = [
        slicewise.disaggregate(
            path, slice="h100:8", isl=given["isl"], osl=512, kv=given["kv_dtype"], network=f"{nics * bits}Gb/s"
        )
        for nics in given["nics"]
    ]
    gigabyte, millisecond = 1e9, 1e-3
    assert [found_.handoff_bytes / gigabyte for found_ in moved[:1]] == pytest.approx(
        right(found, "bytes_gb"), rel=1e-3
    )
    assert [found_.handoff_s / millisecond for found_ in moved] == pytest.approx(
        right(found, "time_ms_line_rate"), rel=0.01
    )
