"""Published configs, all of them: each is read, to the last parameter where another has counted, or refused by name."""

import csv
from pathlib import Path

import pytest

from slicewise.catalog.hf import read_config
from slicewise.costs.weights import n_params
from slicewise.errors import UnsupportedModelError
from slicewise.spec.tensors import caches, weight_tensors

DATA = Path(__file__).parents[1] / ".." / "shared" / "data"
CONFIGS = sorted((DATA / "model_configs").glob("*.json"))
COUNTS = DATA / "parameter_counts.csv"
pytestmark = pytest.mark.skipif(not (CONFIGS and COUNTS.is_file()), reason="../shared/data is not there")

REFUSED: dict[str, str] = {}
"""Files that are refused, and the key that the refusal names. No more than MOST_REFUSED may ever be."""
MOST_REFUSED = 6
KIN = {
    "Qwen__Qwen2.5-1.5B-Instruct": "Qwen__Qwen2-1.5B-Instruct",
    "Qwen__Qwen2.5-14B-Instruct": "Qwen__Qwen2.5-14B",
    "sgl-project__DeepSeek-V4-Flash-FP8": "deepseek-ai__DeepSeek-V4-Flash",
    "sgl-project__DeepSeek-V4-Pro-FP8": "deepseek-ai__DeepSeek-V4-Pro",
}
"""Configs that were not counted, and one of the same shape that was."""
EXCEPTIONS: dict[str, tuple[int, int]] = {}
"""Counts that differ from those of transformers: by how much in all, and of the text model, and why in a comment."""


def counts() -> dict[str, tuple[int, int]]:
    """Parameters in all, and without towers, of each config that was counted."""
    if not COUNTS.is_file():
        return {}
    with COUNTS.open(encoding="utf-8") as file:
        return {row["config"]: (int(row["n_params"]), int(row["n_params_text"])) for row in csv.DictReader(file)}


def test_there_are_many() -> None:
    assert len(CONFIGS) >= 112
    assert len(counts()) >= 101
    assert len(REFUSED) <= MOST_REFUSED
    assert counts().keys() >= EXCEPTIONS.keys()
    assert {path.stem for path in CONFIGS} >= {*REFUSED, *counts()}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_is_read_or_refused_by_name(path: Path) -> None:
    if path.stem in REFUSED:
        with pytest.raises(UnsupportedModelError, match=REFUSED[path.stem]) as refused:
            read_config(path)
        assert len(str(refused.value).splitlines()) == 1
        return
    model = read_config(path)
    assert model.name == path.stem
    assert all(size > 0 for tensor in weight_tensors(model) for _, size in tensor.dims)
    assert caches(model)


@pytest.mark.parametrize("name", sorted(counts()))
def test_counts_are_those_of_transformers(name: str) -> None:
    weights = weight_tensors(read_config(DATA / "model_configs" / f"{name}.json"))
    text = n_params(tuple(tensor for tensor in weights if tensor.role != "tower"))
    total, total_text = counts()[name]
    more, more_text = EXCEPTIONS.get(name, (0, 0))
    assert (n_params(weights), text) == (total + more, total_text + more_text)


@pytest.mark.parametrize(("name", "counted"), KIN.items())
def test_kin_have_the_same_count(name: str, counted: str) -> None:
    weights = weight_tensors(read_config(DATA / "model_configs" / f"{name}.json"))
    assert n_params(weights) == counts()[counted][0]
