"""Words of a request: only what is offered, each within bounds, and no way to a file or to the network."""

import json
import re

import pytest

from slicewise.errors import InputError
from slicewise.web.questions import questions
from slicewise.web.words import LONGEST, MOST_REPEATS, model_of, read_body, read_query

STEP = questions()["step"].in_query
CONFIG = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 1000, "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
}  # fmt: skip


def body(**words: object) -> object:
    return read_body(json.dumps(words).encode(), questions()["step"].offered)


def test_address_and_body_say_the_same() -> None:
    pairs = [("model", "llama-3-70b"), ("slice", "v5e:4x4"), ("batch", "8"), ("book", "true"), ("osl", "")]
    asked = read_query(pairs, STEP)
    assert asked.words == {"model": "llama-3-70b", "slice": ["v5e:4x4"], "batch": "8", "book": True}
    assert body(model="llama-3-70b", slice="v5e:4x4", batch="8", book=True, osl=None, isl="") == asked
    assert read_query(reversed(pairs), STEP).key == asked.key


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("bach", "8")], "unknown word 'bach': did you mean batch"),
        ([("batch", "8"), ("batch", "9")], "--batch is given 2 times; give it once"),
        ([("efficiency", "/etc/passwd")], "--efficiency names a file of the server's machine"),
        ([("out", "somewhere/x")], "unknown word 'out'"),
        ([("config", "{}")], "unknown word 'config'"),
        ([("tpot", "9" * (LONGEST + 1))], f"--tpot has {LONGEST + 1} characters; give at most {LONGEST}"),
        ([("chip", "v5e")] * (MOST_REPEATS + 1), f"give at most {MOST_REPEATS}"),
        ([("network", "1e-300B/s")], "--network: 1e-300B/s is next to nothing; give at least 1e-12"),
        ([("price", "v5e=0.0000000000000000001")], "is next to nothing"),
        ([("book", "perhaps")], "--book: 'perhaps' is neither true nor false"),
    ],
)  # fmt: skip
def test_address_that_is_off_is_refused(pairs: list[tuple[str, str]], message: str) -> None:
    offered = {**STEP, "tpot": False, "network": False}
    with pytest.raises(InputError, match=re.escape(message)):
        read_query(pairs, offered)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"", "the body: not valid JSON at line 1, column 1"),
        (b"{", "the body: not valid JSON"),
        (b"[1]", "the body: holds a list, not an object; give the words as a JSON object"),
        (b"\xff", "the body is not UTF-8"),
        (b'{"batch": 1, "batch": 2}', "batch is there twice, with two values"),
        (b'{"batch": {"a": 1}}', "--batch is an object; give a text or a number"),
        (b'{"memory_fraction": 1e-300}', "--memory-fraction: 1e-300 is next to nothing"),
        (b'{"batch": [1, 2]}', "--batch is given 2 times; give it once"),
        (b'{"slice": [["v5e:4x4"]]}', "--slice is a list of lists"),
        (b'{"book": 3}', "--book: 3 is neither true nor false"),
        (b'{"model": "\\ud800"}', "holds half a character"),
        (b'{"efficiency": "x"}', "--efficiency names a file"),
        (b"[" * 100_000, "the body: nested too deeply"),
    ],
)
def test_body_that_is_off_is_refused(sent: bytes, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read_body(sent, questions()["step"].offered)


def test_config_may_be_an_object_or_its_text() -> None:
    asked, text = body(config=CONFIG, model="mine"), body(config=json.dumps(CONFIG), model="mine")
    assert asked == text
    assert model_of(asked).name == "mine"
    assert model_of(body(config=CONFIG)).name == "config"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{ 'hidden_size': 1 }", "config.json: not valid JSON at line 1, column 3"),
        ({"model_type": "lama"}, "config.json: model_type lama is not supported yet; did you mean"),
        ({**CONFIG, "hiden_size": 1}, "hiden_size"),
        ({**CONFIG, "num_hidden_layers": 10**9}, "num_hidden_layers is above"),
        ({**CONFIG, "hidden_size": -1}, "hidden_size"),
        (7, "config holds a int, not an object"),
    ],
)
def test_config_that_is_off_is_refused(config: object, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        model_of(body(config=config))


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../../etc/passwd",
        "config.json",
        ".",
        "~",
        "~root",
        "Qwen/Nothing-8B",
        "file:///etc/passwd",
        "\x00",
        "C:\\x",
    ],
)
def test_model_is_of_the_catalog(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.setattr("slicewise.catalog.load.fetch", lambda repo: pytest.fail(f"fetched {repo}"))
    with pytest.raises(InputError, match="unknown model"):
        model_of(read_query([("model", name)], STEP))


def test_names_are_read_as_on_the_command_line() -> None:
    assert model_of(read_query([("model", " LLaMA-3-70B ")], STEP)).name == "llama-3-70b"


def test_model_that_is_missing_is_said() -> None:
    with pytest.raises(InputError, match="model is missing"):
        model_of(read_query([], STEP))


def test_small_quantities_and_names_with_digits_are_heard() -> None:
    words = {"model": "x-1e-300", "price": "v5e=0", "memory_fraction": 0.001, "batch": 1, "hbm": "1e-3GB"}
    assert body(**words).words == {**words, "price": ["v5e=0"]}
