"""Configs of Hugging Face: fetched once through the extra, and refused in one line where they cannot be."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import slicewise
from slicewise.catalog.hub import fetch, is_repo
from slicewise.errors import InputError

CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100,
}  # fmt: skip


class EntryNotFoundError(Exception):
    """As the library names what a repository does not hold."""


class RepositoryNotFoundError(Exception):
    """As the library names a repository that is not there."""


def hub(folder: Path, *, error: Exception | None = None, asked: list[str] | None = None) -> SimpleNamespace:
    """A library that finds a repository's files in a folder."""

    def download(repo: str, name: str) -> str:
        if asked is not None:
            asked.append(f"{repo}/{name}")
        if error is not None:
            raise error
        if not (folder / name).is_file():
            raise EntryNotFoundError(name)
        return str(folder / name)

    return SimpleNamespace(hf_hub_download=download, try_to_load_from_cache=lambda *_: None)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("Qwen/Qwen3-8B", True),
        ("deepseek-ai/DeepSeek-V3.1", True),
        ("llama-3-70b", False),
        ("./folder/config.json", False),
        ("/models/llama", False),
        ("~/llama", False),
        ("a/b/c", False),
        ("a b/c", False),
    ],
)
def test_an_id_is_an_owner_and_a_name(text: str, is_one: bool) -> None:
    assert is_repo(text) == is_one


def test_a_config_is_fetched_with_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    index = {"metadata": {"total_size": 400_000}, "weight_map": {}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    asked: list[str] = []
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub(tmp_path, asked=asked))
    model = slicewise.load_model("someone/small")
    assert (model.name, model.n_layers, model.checkpoint_bytes) == ("someone/small", 2, 400_000)
    assert asked == [
        "someone/small/config.json", "someone/small/hf_quant_config.json", "someone/small/model.safetensors.index.json",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RepositoryNotFoundError("401\nlong advice"), "no such repository on Hugging Face, or it is private"),
        (EntryNotFoundError("404"), "the repository has no config.json"),
        (TimeoutError("the network\nis away"), r"it cannot be fetched \(TimeoutError: the network\)"),
    ],
)
def test_what_cannot_be_fetched_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub(tmp_path, error=error))
    with pytest.raises(InputError, match=f"someone/small: {said}; give the path of its config.json instead") as refused:
        fetch("someone/small")
    assert "\n" not in str(refused.value)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"pip install 'slicewise\[hub\]'"):
        slicewise.load_model("someone/small")


def test_models_of_the_catalog_need_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert slicewise.load_model("Qwen/Qwen3-8B").name == "qwen3-8b"
