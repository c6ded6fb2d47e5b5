"""The document: the plan's own answer, the book's slider, refusals that say what would fit, and plain JSON."""

import json
import re
import shlex
from pathlib import Path

import pytest

import slicewise
from slicewise.cli.main import main
from slicewise.errors import InputError
from slicewise.report.explorer.explore import explore

BOOK = {"params": "70e9", "book": True}
INT8 = {"weights": ["int8"], "kv": ["int8"]}
QUESTIONS = [
    ("llama-3-70b", {}),
    ("llama-3-70b", {"slice": ["v5e:4x4"], **INT8, "tpot": "20ms", "rate": 2}),
    ("llama-3-8b", {"chip": ["v6e", "h100"], "isl": 2048, "osl": 256}),
    ("mixtral-8x7b", {"chip": ["v5p"], "objective": "throughput"}),
    ("deepseek-v3", {"slice": ["h200:8"], "weights": ["fp8"], "context": 4096}),
    ("gemma-3-12b", {"chip": ["v5e"], "objective": "latency", "price": ["1.5"]}),
]
REFUSED = [
    ("llama-3-70b", {"slice": ["v5e:4x4"], **INT8, "batch": 500}),
    ("llama-3-70b", {"slice": ["v5e:2x2"]}),
    ("llama-3-70b", {"slice": ["v5e:4x4"], "tpot": "1ms"}),
    ("llama-3-70b", {"slice": ["v5e:4x4"], "ttft": "1ms"}),
]


def document(model: str, **words: object) -> dict:
    return explore(slicewise.load_model(model), words)


@pytest.mark.parametrize(
    ("context", "most"), [(2048, 554), (4096, 277), (8192, 138), (16384, 69), (32768, 34), (65536, 17)]
)
def test_book_slider_moves_the_largest_batch(context: int, most: int) -> None:
    found = document("llama-3-70b", slice=["v5e:4x4"], context=context, **INT8, **BOOK)
    assert found["answer"]["max_batch"]["value"] == most
    assert found["controls"]["batch"]["max"] == most
    assert found["controls"]["batch"]["stops"][-1] == most
    assert found["frontier"]["slices"][0]["batch"][-1] == most


@pytest.mark.parametrize(("model", "words"), QUESTIONS, ids=str)
def test_answer_is_that_of_plan(model: str, words: dict) -> None:
    found, plan = document(model, **words), slicewise.plan(model, **words)
    best = plan.recommended
    assert best is not None
    assert found["fits"] is True
    assert (found["answer"]["slice"], found["answer"]["batch"]) == (best.step.slice, best.step.batch)
    rows = {row["number"]["name"]: row["number"]["value"] for row in found["answer"]["rows"]}
    assert rows["step_s"] == best.step.step_s
    assert rows["ttft_s"] == best.ttft_s
    assert found["candidates"][0]["slice"] == plan.candidates[0].step.slice
    assert len(found["candidates"]) == min(24, len(plan.candidates))
    assert (found["runner_up"] is None) == (plan.runner_up is None)
    assert len(found["rejected"]) == min(24, len(plan.rejected))
    assert found["errors"] == []
    assert (found["fleet"] is None) == (plan.fleet is None)


@pytest.mark.parametrize(("model", "words"), [*QUESTIONS, *REFUSED], ids=str)
def test_document_is_plain_json(model: str, words: dict) -> None:
    found = document(model, **words)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize(("model", "words"), REFUSED, ids=str)
def test_refusal_is_an_answer(model: str, words: dict) -> None:
    found = document(model, **words)
    assert found["fits"] is False
    assert found["reason"]
    line = found["sentence"][1]
    assert any("number" in part for part in line)
    said = "".join(part.get("text") or part["number"]["text"] for part in line)
    assert said == f"{found['reason']}."
    assert found["memory"]["segments"]
    assert found["what_ifs"]
    assert found["servers"] is None
    assert [error["part"] for error in found["errors"]] == ["servers"]


def test_command_line_gives_the_same_plan(capsys: pytest.CaptureFixture[str]) -> None:
    found = document("llama-3-70b", chip=["v5e"], **INT8, tpot="30ms", price=["v5e=1.5"])
    command = shlex.split(found["command"])
    assert command[0] == "slicewise"
    with pytest.raises(SystemExit):
        main([*command[1:], "--json"])
    best = json.loads(capsys.readouterr().out)["recommended"]
    assert (best["slice"], best["batch"]) == (found["answer"]["slice"], found["answer"]["batch"])


@pytest.mark.parametrize("name", ["step", "memory", "frontier", "disaggregate"])
def test_other_command_lines_run(capsys: pytest.CaptureFixture[str], name: str) -> None:
    found = document("mixtral-8x7b", slice=["v5p:2x2x2"], tpot="60ms", rate=2)
    with pytest.raises(SystemExit) as stop:
        main([*shlex.split(found["commands"][name])[1:], "--json"])
    assert stop.value.code in (0, None)
    told = json.loads(capsys.readouterr().out)
    assert told["slice"] == found["answer"]["slice"]


def test_model_of_a_file_keeps_its_name_on_the_command_line() -> None:
    model = slicewise.load_model("llama-3-8b")
    found = explore(model, {}, called="my models/config.json")
    assert found["command"] == "slicewise plan 'my models/config.json'"


def test_words_of_candidates_ask_for_them() -> None:
    found = document("llama-3-70b", **INT8)
    for one in found["candidates"][:3]:
        again = document("llama-3-70b", **{**INT8, **one["words"]})
        assert again["answer"]["slice"] == one["slice"]
        assert again["answer"]["rows"][0]["number"]["value"] == pytest.approx(one["step"]["value"])


def test_bad_word_is_refused() -> None:
    with pytest.raises(InputError, match="--tpot"):
        document("llama-3-70b", tpot="soon")


def test_slice_of_prefill_servers_is_looked_up() -> None:
    found = document("llama-3-8b", slice=["v5e:2x2"], prefill_slice="v5e:2x4")
    assert (found["servers"]["prefill_slice"], found["servers"]["decode_slice"]) == ("v5e:2x4", "v5e:2x2")
    found = document("llama-3-8b", slice=["v5e:2x2"], prefill_slice="v5e:3x3")
    assert found["servers"] is None
    assert "3x3" in found["errors"][0]["text"]


def _keys(value: object) -> set[str]:
    """The names of a document's objects; charts and words of doors have names of their own."""
    if isinstance(value, list):
        return set().union(*map(_keys, value))
    if not isinstance(value, dict):
        return set()
    own = {"state", "words", "doors", "chart", "columns", "commands", "controls"}
    return set(value).union(*(_keys(inner) for key, inner in value.items() if key not in own))


def test_keys_are_documented() -> None:
    page = Path(__file__).parents[3] / "docs" / "json.md"
    found = re.search(r"^## explore\n(.*?)^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    documented = set(re.findall(r"`(\w+)`", found[1]))
    told = _keys(document("llama-3-70b", slice=["v5e:4x4"], **INT8, tpot="20ms", rate=2))
    refused = _keys(document("llama-3-70b", slice=["v5e:4x4"], **INT8, batch=500))
    assert (told | refused) - documented == set()


def test_splitting_is_asked_and_answered_in_sentences() -> None:
    why = explore(slicewise.load_model("llama-3-70b"), {"slice": ["v5e:4x4"], "weights": ["int8"]})["servers"]["why"]
    assert why.startswith(("Split prefill from decode? Yes: ", "Split prefill from decode? No: "))
    assert why.endswith(".")
    assert not why.endswith("..")


def test_breakdown_is_drawn_at_whole_rounds_as_the_frontier_is() -> None:
    document = explore(slicewise.load_model("deepseek-v3"), {"slice": ["h200:8"]})
    (chosen,) = (each for each in document["frontier"]["slices"] if each["chosen"])
    assert chosen["batch"][1] == 8
    assert set(document["breakdown"]["columns"]["batch"]) <= {*chosen["batch"], document["answer"]["batch"]}
