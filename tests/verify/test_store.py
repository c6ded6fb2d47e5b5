"""What is kept on disk: found again by content, and never worth an error."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.verify import store
from slicewise.verify.store import folder, key_of, load, save

RESULT = {"line_bytes": {"weights": 1.5e9}, "exchanges": [{"kind": "all-reduce", "count": 2}], "refusal": None}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_a_result_is_found_again(cache: Path) -> None:
    key = key_of(["decode", "v5e:4x4"])
    assert load(key) is None
    save(key, RESULT)
    assert load(key) == RESULT
    assert [path.name for path in (cache / "verify").iterdir()] == [f"{key}.json"]
    save(key, {})
    assert load(key) == {}


@pytest.mark.parametrize("damage", [b"", b'{"line_bytes": {', b"\xff\xfe\x00", b"null"])
def test_a_damaged_result_is_none(cache: Path, damage: bytes) -> None:
    save("key", RESULT)
    (cache / "verify" / "key.json").write_bytes(damage)
    assert load("key") is None


def test_a_result_that_cannot_be_opened_is_none(cache: Path) -> None:
    (cache / "verify" / "key.json").mkdir(parents=True)
    assert load("key") is None
    save("key", RESULT)
    assert load("key") is None


def test_a_folder_that_cannot_be_written_costs_nothing(cache: Path) -> None:
    cache.write_text("a file in its place", encoding="utf-8")
    save("key", RESULT)
    assert load("key") is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_the_right_to_write_costs_nothing(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o500)
    save("key", RESULT)
    assert load("key") is None


# -- where -----------------------------------------------------------------------------------------------------------


def test_the_folder_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLICEWISE_CACHE", "/somewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert folder() == Path("/somewhere/verify")
    monkeypatch.delenv("SLICEWISE_CACHE")
    assert folder() == Path("/elsewhere/slicewise/verify")
    for unset in (lambda: monkeypatch.setenv("XDG_CACHE_HOME", ""), lambda: monkeypatch.delenv("XDG_CACHE_HOME")):
        unset()
        assert folder() == Path.home() / ".cache" / "slicewise" / "verify"


# -- keys ------------------------------------------------------------------------------------------------------------


@given(one=JSON, other=JSON)
def test_keys_differ_with_the_content(one: object, other: object) -> None:
    assert key_of(one) == key_of(one)
    # JSON tells True from 1, where Python does not.
    assert (key_of(one) == key_of(other)) == (repr(one) == repr(other) or _sorted(one) == _sorted(other))


def _sorted(value: object) -> str:
    if isinstance(value, dict):
        return repr(sorted((repr(key), _sorted(each)) for key, each in value.items()))
    return f"[{', '.join(map(_sorted, value))}]" if isinstance(value, list) else repr(value)


def test_the_order_of_a_dict_is_no_content() -> None:
    assert key_of([{"y": 8, "z": 2}]) == key_of([{"z": 2, "y": 8}])
    assert key_of([8, 2]) != key_of([2, 8])


def test_other_code_or_another_format_makes_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {key_of("same")}
    monkeypatch.setattr(store, "FORMAT", store.FORMAT + 1)
    keys.add(key_of("same"))
    monkeypatch.setattr(store, "_code", lambda: "a digest of other code")
    keys.add(key_of("same"))
    assert len(keys) == 3


def test_the_code_is_that_of_the_programs_and_of_what_reads_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for package in ("spec", "program", "verify"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "one.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(store, "files", lambda name: tmp_path / name.rpartition(".")[2])
    digests = [store._code()]
    for package in ("spec", "program", "verify"):
        (tmp_path / package / "one.py").write_text("x = 2\n", encoding="utf-8")
        digests.append(store._code())
    (tmp_path / "verify" / "one.py").rename(tmp_path / "verify" / "two.py")
    digests.append(store._code())
    assert len(set(digests)) == 5
    (tmp_path / "verify" / "notes.txt").write_text("no code", encoding="utf-8")
    (tmp_path / "verify" / "__pycache__").mkdir()
    assert store._code() == digests[-1]
