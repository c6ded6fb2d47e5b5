"""What a page says of files of the machine that made it: their names, and not where they lie."""

import json
from pathlib import Path

import pytest

import slicewise
from slicewise.report.explorer.explore import explore
from slicewise.report.explorer.local import file_name, without_folders

CONFIG = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4,
    "num_hidden_layers": 2, "vocab_size": 1000, "max_position_embeddings": 16384,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "kept here" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG))
    return path


def test_facts_name_the_file_without_its_folder(config: Path) -> None:
    model = slicewise.load_model(config)
    assert str(config) in model.provenance["n_kv_heads"].printed
    told = without_folders(model)
    assert told.provenance[""].printed == "read from config.json"
    assert told.provenance["n_kv_heads"].printed.startswith("config.json states no num_key_value_heads")
    assert (told.name, told.layers) == (model.name, model.layers)


def test_models_of_the_catalog_stay_as_they_are() -> None:
    model = slicewise.load_model("llama-3-70b")
    assert without_folders(model) is model


def test_document_names_no_folder(config: Path) -> None:
    words = {"slice": ["v5e:1x1"], "isl": 1024}
    document = explore(slicewise.load_model(config), words, called=str(config.parent))
    assert str(config.parent.parent) not in json.dumps(document)
    assert document["command"].startswith("slicewise plan 'kept here' --slice v5e:1x1")


@pytest.mark.parametrize("name", ["llama-3-70b", "Qwen/Qwen3-8B", "x" * 5000, "a\0b", ""])
def test_what_names_no_file_stays_as_it_is(name: str) -> None:
    assert file_name(name) == name


def test_files_and_folders_are_named_alone(config: Path) -> None:
    assert file_name(str(config)) == "config.json"
    assert file_name(str(config.parent)) == "kept here"
