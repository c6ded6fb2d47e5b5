"""The catalog's parameters and caches against the golden table, to the last one; how each was counted is said there."""

import tomllib
from pathlib import Path

import pytest

from slicewise.catalog.load import catalog_model, model_aliases
from slicewise.costs.kv_cache import kv_elements_per_token
from slicewise.costs.layered_cache import kv_bytes_per_token, kv_other_bytes_per_token, kv_state_bytes
from slicewise.costs.weights import n_active_params, n_params
from slicewise.spec.tensors import caches, weight_tensors

GOLDEN = tomllib.loads((Path(__file__).parent / "golden" / "parameters.toml").read_text(encoding="utf-8"))
MADE_UP = {"chapter-7-exercise", "chapter-7-mixture"}
"""Models of an exercise, which nobody else has counted; the book's printed answers hold them."""
BF16_BYTES = 2


def test_the_table_has_every_model_of_the_catalog_and_no_other() -> None:
    assert GOLDEN.keys() == model_aliases().keys() - MADE_UP


def test_the_table_says_of_each_model_how_it_was_counted() -> None:
    for entry in GOLDEN.values():
        assert entry["counted"] in ("class", "kin", "closed form")
        assert entry["cached"] in ("class", "closed form")
        assert entry["date"] >= "2026-11"
    second_opinions = [entry for entry in GOLDEN.values() if entry["counted"] != "closed form"]
    assert len(second_opinions) > len(GOLDEN) * 0.9


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_parameters_are_the_golden_ones(name: str) -> None:
    golden, weights = GOLDEN[name], weight_tensors(catalog_model(name))
    stored = [tensor for tensor in weights if tensor.stored]
    assert n_params(weights) == golden["total"]
    assert sum(tensor.size for tensor in stored if tensor.role != "tower") == golden.get("text", golden["total"])
    assert n_active_params(weights) == golden["active"]
    assert sum(tensor.size for tensor in stored if tensor.role in ("embedding", "head")) == golden["embedding"]


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_caches_are_the_golden_ones(name: str) -> None:
    golden, kept = GOLDEN[name], caches(catalog_model(name))
    elements, other = kv_elements_per_token(kept), kv_other_bytes_per_token(kept)
    assert kv_bytes_per_token(elements, BF16_BYTES, other) == golden["kv"]
    assert kv_state_bytes(kept) == golden.get("state", 0)
