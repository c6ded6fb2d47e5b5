"""Files that may be anything: an object is read as it is, all else is refused in one line."""

import json
import math
from pathlib import Path

import pytest

from slicewise.catalog.hf import read_config
from slicewise.catalog.json_file import MOST_BYTES, MOST_LEVELS, read_json
from slicewise.errors import InputError

LLAMA = (
    b'{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 256'
)
HEADS = b', "num_attention_heads": '


def written(folder: Path, content: bytes) -> Path:
    path = folder / "config.json"
    path.write_bytes(content)
    return path


def nested(levels: int) -> bytes:
    """An object of so many levels, itself the first."""
    return b'{"a": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not valid JSON at line 1, column 1"),
        (b"{", "not valid JSON"),
        (b'{"a": 1,}', "not valid JSON"),
        (b'{"a": 1} {"b": 2}', "not valid JSON"),
        (b"[]", "holds a list, not an object; give a Hugging Face config.json"),
        (b"5", "holds a int, not an object"),
        (b"null", "holds a NoneType, not an object"),
        (b"NaN", "holds a float, not an object"),
        (b"\xff\xfe\x00", "cannot be read"),
        ("{}".encode("utf-16"), "cannot be read"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (nested(MOST_LEVELS + 1), "nested too deeply"),
        (nested(900), "nested too deeply"),
        (b'{"a": 1, "a": 2}', "a is there twice, with two values; mend or download it again"),
        (b'{"a": {"b": [1], "b": [2]}}', "b is there twice"),
        (b" " * (MOST_BYTES + 1), "is larger than 10,000,000 bytes, so no config.json"),
    ],
    ids=[
        "empty", "open", "comma", "two", "list", "number", "null", "nan", "no-text", "utf-16", "deep-lists",
        "deep-objects", "one-level-too-deep", "deep", "twice", "twice-inside", "large",
    ],
)  # fmt: skip
def test_files_that_hold_no_config_are_refused_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError) as refused:
        read_config(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: {said}")
    assert len(message.splitlines()) == 1
    assert len(message) < len(str(path)) + 200


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    whole = LLAMA + HEADS + b"4}"
    for length in range(len(whole)):
        with pytest.raises(InputError, match="not valid JSON at line 1, column "):
            read_json(written(tmp_path, whole[:length]))
    assert read_config(written(tmp_path, whole)).n_heads == 4


@pytest.mark.parametrize(
    "number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000, b"-" + b"9" * 5000, b"1e30"]
)
def test_a_size_that_is_no_number_to_people_is_refused_by_its_key(tmp_path: Path, number: bytes) -> None:
    with pytest.raises(InputError, match=r": num_attention_heads is ") as refused:
        read_config(written(tmp_path, LLAMA + HEADS + number + b"}"))
    assert len(str(refused.value)) < len(str(tmp_path)) + 200


def test_what_is_no_size_may_be_infinite(tmp_path: Path) -> None:
    # As in the configs of Nemotron-H.
    found = read_json(written(tmp_path, b'{"time_step_limit": [0.0, Infinity], "low": -Infinity, "none": NaN}'))
    assert found["time_step_limit"] == [0.0, math.inf]
    assert found["low"] == -math.inf
    assert math.isnan(found["none"])


def test_an_object_is_read_as_it_is(tmp_path: Path) -> None:
    keys = {"a": [1, {"b": None}], "é": "é", "n": 10**30, "f": 0.1, "t": True}
    assert read_json(written(tmp_path, json.dumps(keys, ensure_ascii=False).encode())) == keys
    assert read_json(written(tmp_path, b"\xef\xbb\xbf" + json.dumps(keys).encode())) == keys
    assert read_json(written(tmp_path, nested(MOST_LEVELS))).keys() == {"a"}
    assert read_json(written(tmp_path, b'{"a": 1, "a": 1}')) == {"a": 1}


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(InputError, match="cannot be read"):
            read_config(path)
