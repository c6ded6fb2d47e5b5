"""The report: one file that fetches nothing, runs nothing, and shows hostile names as text."""

import re
from html.parser import HTMLParser

import pytest

import slicewise
from slicewise.catalog.hf import model_from_config
from slicewise.report.explorer.explore import document
from slicewise.report.explorer.found import find
from slicewise.report.explorer.html import report_of
from slicewise.spec.model import Model

pytest.importorskip("vl_convert")

INT8 = {"weights": ["int8"], "kv": ["int8"]}
TOLD = (
    "Run it on v5e:2x4", "Bound by loading parameters", "KV cache", "Latency against throughput", "Assumed",
    "Servers for the rate", "slicewise plan llama-3-70b", "step_s", "Sources",
)  # fmt: skip
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title><script>alert(1)</script>",
    "</style><svg onload=alert(1)>",
    "&lt;b&gt; & 'quoted' {0} %s",
]
CONFIG = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 1000, "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
}  # fmt: skip


class Seen(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def page(model: Model, **words: object) -> tuple[str, Seen]:
    text = report_of(find(model, words))
    seen = Seen()
    seen.feed(text)
    return text, seen


def check(text: str, seen: Seen) -> None:
    """Nothing runs, and nothing is fetched."""
    assert not {"script", "iframe", "img", "link", "object", "embed", "base", "form"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("src", "action", "srcset")]
    outside = [value for name, value in seen.attributes if name.endswith("href") and not value.startswith("#")]
    assert outside == []
    assert all(
        name.startswith("data:") or name == "none" for name in re.findall(r"url\(([^)]*)\)", text) if "#" not in name
    )
    assert "@import" not in text


@pytest.fixture(scope="module")
def answered() -> tuple[str, Seen]:
    return page(slicewise.load_model("llama-3-70b"), **INT8, tpot="30ms", rate=2)


def test_fetches_nothing_and_runs_nothing(answered: tuple[str, Seen]) -> None:
    check(*answered)
    assert "default-src 'none'" in answered[0].replace("&#x27;", "'")


def test_reads_without_scripts(answered: tuple[str, Seen]) -> None:
    _, seen = answered
    for words in TOLD:
        assert words in seen.text
    assert seen.tags.count("svg") >= 4


def test_underlined_numbers_lead_to_their_derivations(answered: tuple[str, Seen]) -> None:
    """Every one, and each derivation stands once: what was derived before is pointed to."""
    text, seen = answered
    ways = [value for name, value in seen.attributes if name == "href"]
    places = [value for name, value in seen.attributes if name == "id" and value.startswith("derivation-")]
    assert len(ways) > 60
    assert {way.removeprefix("#") for way in ways} <= set(places)
    assert len(places) == len(set(places))
    assert "see step_high_s" in text
    for name in ("step_s", "step_s:low", "ledger:HBM as sold", "prefill_servers_per_decode_server"):
        assert f"<code>{name}</code>" in text


@pytest.fixture(scope="module")
def plain_tags() -> set[str]:
    return set(page(model_from_config(CONFIG, "plain", "config.json"))[1].tags)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str, plain_tags: set[str]) -> None:
    text, seen = page(model_from_config(CONFIG, name, "config.json"))
    check(text, seen)
    assert name in seen.text
    assert set(seen.tags) == plain_tags


def test_refusal_is_told() -> None:
    text, seen = page(slicewise.load_model("llama-3-70b"), slice=["v5e:4x4"], batch=500, **INT8)
    check(text, seen)
    assert "500 sequences" in seen.text
    assert "What would fit" in seen.text


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("llama-3-70b", INT8),
        ("llama-3-70b", {**INT8, "slice": ["v5e:4x4"], "tpot": "1ms"}),
        ("qwen3-30b-a3b-2507", {"slice": ["h100:2"]}),
        ("deepseek-v3", {"slice": ["h200:8"]}),
    ],
    ids=str,
)
def test_holds_what_the_page_shows(model: str, words: dict) -> None:
    found = find(slicewise.load_model(model), words)
    told = document(found)
    text = page(slicewise.load_model(model), **words)[1].text
    for note in told["model"]["notes"]:
        assert note in text
    if told["runner_up"]:
        assert told["runner_up"]["text"] in text
    assert ("Next best" in text) is bool(told["runner_up"])
    for each in told["what_ifs"]:
        assert f"{each['text']}: " in text
        assert each["numbers"] or each["reason"] in text
    assert ("What one change would do" in text) is bool(told["what_ifs"])
