"""Every number of the document is a door: behind it lies the derivation of that very value."""

import math
from pathlib import Path
from typing import Any

import pytest

import slicewise
from slicewise.calibrate.run import calibrate
from slicewise.report.explorer.explore import explore
from slicewise.report.explorer.numbers import every_number

BOOK = {"params": "70e9", "book": True}
QUESTIONS = {
    "plan": ("llama-3-70b", {"weights": ["int8"], "kv": ["int8"]}),
    "book": ("llama-3-70b", {"slice": ["v5e:4x4"], "weights": ["int8"], "kv": ["int8"], "context": 2048, **BOOK}),
    "rate": ("llama-3-70b", {"slice": ["v5p:2x2x2"], "rate": 3, "tpot": "80ms"}),
    "overflow": ("llama-3-70b", {"slice": ["v5e:4x4"], "weights": ["bf16"], "batch": 400}),
    "limits": ("llama-3-70b", {"slice": ["v5e:4x4"], "tpot": "1ms"}),
    "experts": ("mixtral-8x7b", {"chip": ["v5p"]}),
    "ranks": ("qwen3-30b-a3b-2507", {"slice": ["h100:8"], "tp": 4, "dp": 2, "ep": 8}),
    "engine": ("llama-3-70b", {"slice": ["h100:8"], "engine": "vllm"}),
    "serial": ("llama-3-8b", {"slice": ["v5e:2x2"], "view": "serial", "mfu": "0.5"}),
    "split": ("deepseek-v3", {"slice": ["h200:8"], "engine": "vllm", "prefill_slice": "h200:8"}),
    "split ranks": ("llama-3-70b", {"slice": ["h100:8"], "tp": 4, "dp": 2, "prefill_slice": "h200:8"}),
    "split plan": ("llama-3-70b", {"chip": ["h100"], "engine": "sglang", "prefill_slice": "h100:8", "rate": 5}),
    "split elsewhere": (
        "llama-3-70b",
        {"slice": ["v5e:4x4"], "weights": ["int8", "bf16"], "prefill_slice": "v5p:2x2x1"},
    ),
    "split refused": ("llama-3-70b", {"slice": ["h100:8"], "engine": "vllm", "batch": 5000, "prefill_slice": "h100:4"}),
    "split engine": ("llama-3-8b", {"slice": ["h100:8"], "engine": "vllm", "ttft": "2s", "prefill_slice": "h100:4"}),
    "split small": ("llama-3-8b", {"slice": ["h100:8"], "tp": 8, "prefill_slice": "h100:4"}),
    "split limits": ("llama-3-70b", {"slice": ["h100:8"], "ttft": "1ms", "prefill_slice": "h200:8"}),
    "prefill": ("llama-3-8b", {"slice": ["v6e:2x2"], "prefill_slice": "v6e:2x4", "network": "50GB/s"}),
}

_CANDIDATES = 2


@pytest.mark.parametrize("asked", QUESTIONS)
def test_derivation_behind_a_number_gives_its_value(asked: str) -> None:
    model, words = QUESTIONS[asked]
    document = explore(slicewise.load_model(model), words)
    results: dict[str, Any] = {}
    tried = 0
    document["candidates"] = document["candidates"][:_CANDIDATES]  # the others are derived alike
    for number in every_number({key: value for key, value in document.items() if key != "doors"}):
        if number["door"] is None:
            assert number["name"] == "tpot_s", number  # the limit was typed in
            continue
        said = dict(document["doors"][number["door"]])
        command, named = said.pop("command"), said.pop("model")
        said.pop("shown")
        result = results.setdefault(number["door"], getattr(slicewise, command)(named, **said))
        found = result.explain(number["name"]).value
        assert math.isclose(found, number["value"]), number
        tried += 1
    assert tried >= 8


def test_prefill_servers_are_those_of_the_command() -> None:
    model, words = QUESTIONS["split"]
    document = explore(slicewise.load_model(model), words)
    said = {key: value for key, value in document["doors"]["servers"].items() if key not in ("command", "shown")}
    told = slicewise.disaggregate(said.pop("model"), **said)
    shown = {row["number"]["name"]: row["number"]["value"] for row in document["servers"]["rows"]}
    assert shown["prefill_s"] == told.prefill_s
    assert document["servers"]["ratio"]["value"] == told.prefill_servers_per_decode_server


def test_layout_that_the_prefill_slice_does_not_take_is_told() -> None:
    model, words = QUESTIONS["split small"]
    document = explore(slicewise.load_model(model), words)
    assert document["servers"] is None
    (error,) = document["errors"]
    assert error["part"] == "servers"
    assert "h100:4" in error["text"]


def test_terms_of_an_efficiency_of_ones_own_are_derived_as_they_count(tmp_path: Path) -> None:
    """A scale of one's own multiplies every term: the door behind a term says so."""
    words = {"slice": "v5e:4x4", "weights": "int8", "kv": "int8", "batch": 32}
    rows = ["model,slice,weights,kv,phase,batch,isl,osl,ms"]
    for batch in (1, 4, 8, 16, 32, 64):
        step = slicewise.step("llama-3-8b", **{**words, "batch": batch})
        rows.append(f"llama-3-8b,v5e:4x4,int8,int8,decode,{batch},8192,512,{1500 * step.step_expected_s!r}")
    measured, mine = tmp_path / "measured.csv", tmp_path / "mine.toml"
    measured.write_text("\n".join(rows), encoding="utf-8")
    calibrate(measured, out=mine)
    asked = {**words, "slice": ["v5e:4x4"], "weights": ["int8"], "kv": ["int8"], "efficiency": str(mine)}
    document = explore(slicewise.load_model("llama-3-8b"), asked)
    result = slicewise.step("llama-3-8b", **words, efficiency=str(mine))
    for term in document["breakdown"]["terms"]:
        found = result.explain(term["number"]["name"])
        assert math.isclose(found.value, term["number"]["value"], rel_tol=1e-9), term
    assert "step_ratio" in {part.name for part in found.parts}


def test_who_takes_a_candidate_gets_it() -> None:
    """The words of a candidate ask for its slice, formats and layout, where others differ in them."""
    asked = {
        "formats": ("llama-3-70b", {"chip": ["v5e"], "weights": ["int8", "bf16"], "kv": ["int8", "bf16"]}),
        "layouts": ("qwen3-30b-a3b-2507", {"slice": ["h100:8"]}),
    }
    for model, words in asked.values():
        candidates = explore(slicewise.load_model(model), words)["candidates"]
        for candidate in candidates[:6]:
            taken = explore(slicewise.load_model(model), {**words, **candidate["words"]})
            (chosen,) = (each for each in taken["candidates"] if each["is_chosen"])
            same = ("slice", "layout", "weight_dtype", "kv_dtype")
            assert {key: chosen[key] for key in same} == {key: candidate[key] for key in same}
            assert [chosen[key]["value"] for key in ("batch", "step")] == [
                candidate[key]["value"] for key in ("batch", "step")
            ]
