"""The bar: segments that add up, an end where memory ends, and offers that do fit."""

import pytest

import slicewise
from slicewise.report.explorer.explore import explore

INT8 = {"weights": ["int8"], "kv": ["int8"]}


def bar(model: str = "llama-3-70b", **words: object) -> dict:
    return explore(slicewise.load_model(model), words)["memory"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("llama-3-70b", {"slice": ["v5e:4x4"], **INT8}),
        ("llama-3-70b", {"slice": ["h100:8"], "engine": "vllm"}),
        ("mixtral-8x7b", {"slice": ["v5p:2x2x2"], "tp": 4, "dp": 2}),
        ("qwen3-235b-a22b-fp8", {"slice": ["h200:8"]}),
    ],
    ids=str,
)
def test_segments_fill_what_is_granted(model: str, words: dict) -> None:
    memory = bar(model, **words)
    assert memory["fits"] is True
    assert memory["limit"] == 1
    assert sum(each["width"] for each in memory["segments"]) == pytest.approx(1)
    total = sum(each["number"]["value"] for each in memory["segments"] if each["resource"] != "free")
    assert total == pytest.approx(memory["total"]["value"])
    assert total + memory["free"]["value"] == pytest.approx(memory["granted"]["value"])
    ends = [each["start"] + each["width"] for each in memory["segments"]]
    assert [each["start"] for each in memory["segments"]] == pytest.approx([0, *ends[:-1]])
    assert memory["nearest"] == []
    assert memory["breaks"] is None


def test_overflow_lies_over_the_end() -> None:
    memory = bar(slice=["v5e:4x4"], batch=500, **INT8)
    assert memory["fits"] is False
    assert 0 < memory["limit"] < 1
    over = memory["segments"][-1]
    assert over["resource"] == "overflow"
    assert over["start"] == pytest.approx(memory["limit"])
    assert over["start"] + over["width"] == pytest.approx(1)
    assert over["number"]["value"] == pytest.approx(-memory["free"]["value"])
    assert (over["number"]["name"], over["number"]["door"]) == ("excess_bytes_per_chip", "answer")
    assert memory["breaks"] == "KV cache"
    assert bar(slice=["v5e:2x2"], weights=["bf16"])["breaks"] == "weights"


@pytest.mark.parametrize(
    "words",
    [
        {"slice": ["v5e:4x4"], "batch": 500, **INT8},
        {"slice": ["v5e:2x2"], "weights": ["bf16"]},
        {"slice": ["v5e:2x4"], "weights": ["int8"], "kv": ["bf16"], "batch": 25},
    ],
    ids=str,
)
def test_what_is_offered_fits(words: dict) -> None:
    offers = bar(**words)["nearest"]
    assert offers
    for offer in offers:
        assert bar(**{**words, **offer["words"]})["fits"] is True, offer


def test_shares_are_of_what_is_granted() -> None:
    fits, over = bar(slice=["v5e:4x4"], **INT8), bar(slice=["v5e:4x4"], batch=500, **INT8)
    for memory in (fits, over):
        granted = memory["granted"]["value"]
        for each in memory["segments"]:
            share = each["number"]["value"] / granted
            expected = f"{share:.0%}".replace("%", " %") if share >= 0.005 else "<1 %"
            assert each["share_text"] == expected, each["label"]
    assert "<1 %" in {each["share_text"] for each in fits["segments"]}
    filled = sum(each["number"]["value"] for each in over["segments"][:-1])
    assert filled - over["segments"][-1]["number"]["value"] == pytest.approx(over["granted"]["value"])
