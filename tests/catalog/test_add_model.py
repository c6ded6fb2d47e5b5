"""The script that adds a model: what it writes is what the catalog reads, for every model and every kind of config."""

import importlib.util
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from slicewise.catalog.check import check
from slicewise.catalog.hf import record_from_config
from slicewise.catalog.load import model_aliases, model_record
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import CatalogError

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / ".." / "shared" / "data" / "model_configs").glob("*.json"))
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 256,
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("add_model", ROOT / "scripts" / "add_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def data(script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A catalog of its own, for the script to write to."""
    (tmp_path / "models").mkdir()
    (tmp_path / "names.toml").write_text("llama-3-8b = []\n", encoding="utf-8")
    monkeypatch.setattr(script, "DATA", tmp_path)
    return tmp_path


def again(script: ModuleType, record: ModelRecord) -> ModelRecord:
    """What is read of what is written of a record."""
    return ModelRecord.read(tomllib.loads(script.written(record)))


def unfolded(record: ModelRecord) -> ModelRecord:
    """The record, its layers one by one."""
    return replace(record, layers=[[mixer, feed, 1] for mixer, feed, count in record.layers for _ in range(count)])


@pytest.mark.parametrize("name", sorted(model_aliases()))
def test_every_model_of_the_catalog_reads_as_it_was_written(script: ModuleType, name: str) -> None:
    record = model_record(name)
    assert unfolded(again(script, record)) == unfolded(record)


@pytest.mark.skipif(not CONFIGS, reason="../shared/data/model_configs is not there")
@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_reads_as_it_was_written(script: ModuleType, path: Path) -> None:
    record = record_from_config(json.loads(path.read_text(encoding="utf-8")), path.name)
    assert again(script, record).to_spec("a-model", {}) == record.to_spec("a-model", {})


def test_defaults_are_left_out(script: ModuleType) -> None:
    text = script.written(record_from_config(LLAMA, "config.json"))
    assert tomllib.loads(text) == {
        "d_model": 64,
        "vocab_size": 256,
        "layers": "2 full+dense",
        "mixers": {"full": {"kind": "attention", "n_heads": 4, "n_kv_heads": 4, "head_dim": 16}},
        "feed_forwards": {"dense": {"kind": "dense", "d_ff": 128}},
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"left_out": ['a "quoted" word', "a back\\slash", "é ×"]},
        {"more": [["a", [2, 3], "other"], ["b.c", 4, "bias"]]},
        {"towers": {"vision_tower": 1, "audio tower": 2}},
        {"quantisation": {"method": "own", "rules": [[r"\.gate$", {"dtype": "fp8", "block": [8, 8]}]], "ignored": []}},
        {"norms": []},
        {"mixers": {"two words": {"kind": "attention", "n_heads": 2, "n_kv_heads": 2, "head_dim": 32, "window": 5}}},
        {"source": "a-source", "date": "2026-11", "repo": "an-owner/a-model", "found_at": "o/r@1:c.json"},
    ],
)  # fmt: skip
def test_every_field_reads_as_it_was_written(script: ModuleType, changes: dict[str, Any]) -> None:
    record = replace(again(script, record_from_config(LLAMA, "config.json")), **changes)
    assert again(script, record) == record


def test_a_model_is_added_with_its_names(script: ModuleType, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = data / "config.json"
    config.write_text(json.dumps(LLAMA), encoding="utf-8")
    words = ["--name", "a.model", "--repo", "an-owner/a-model", "--date", "2026-11", "--alias", "a-model"]
    monkeypatch.setattr("sys.argv", ["add_model.py", str(config), *words])
    for _ in range(2):
        script.main()
        names = tomllib.loads((data / "names.toml").read_text(encoding="utf-8"))
        assert names == {"a.model": ["an-owner/a-model", "a-model"], "llama-3-8b": []}
        entry = tomllib.loads((data / "models" / "a.model.toml").read_text(encoding="utf-8"))
        assert (entry["repo"], entry["date"]) == ("an-owner/a-model", "2026-11")
        check("models", "a.model", entry)


def test_what_would_not_read_as_the_same_model_is_not_added(
    script: ModuleType, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = data / "config.json"
    config.write_text(json.dumps(LLAMA), encoding="utf-8")
    words = ["--name", "a-model", "--repo", "an-owner/a-model", "--date", "2026-11"]
    monkeypatch.setattr("sys.argv", ["add_model.py", str(config), *words])
    for text, refusal in (
        (
            'd_model = 32\nvocab_size = 256\nlayers = "1 +dense"\n[feed_forwards.dense]\nkind = "dense"\nd_ff = 1',
            SystemExit,
        ),
        ('d_model = 64\nvocab_size = 256\nlayers = "2 full dense"', CatalogError),
    ):
        monkeypatch.setattr(script, "written", lambda _, text=text: text)
        with pytest.raises(refusal):
            script.main()
        assert not list((data / "models").iterdir())
