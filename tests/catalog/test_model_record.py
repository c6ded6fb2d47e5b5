"""A model in the project's own form: what is wrong with an entry is refused by file and key."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slicewise.catalog import load
from slicewise.catalog.load import catalog_model, model_record
from slicewise.catalog.model_record import FEED_FORWARDS, MIXERS, ModelRecord
from slicewise.errors import CatalogError
from slicewise.spec.tensors import caches, weight_tensors

ENTRY: dict[str, Any] = {
    "d_model": 64,
    "vocab_size": 256,
    "layers": "2 × (sliding+dense, full+experts)",
    "mixers": {
        "full": {"kind": "attention", "n_heads": 4, "n_kv_heads": 2, "head_dim": 16},
        "sliding": {"kind": "attention", "n_heads": 4, "n_kv_heads": 1, "head_dim": 16, "window": 128},
    },
    "feed_forwards": {
        "dense": {"kind": "dense", "d_ff": 128},
        "experts": {"kind": "experts", "d_ff": 32, "n_experts": 8, "n_active": 2},
    },
}


def with_changes(**changes: Any) -> dict[str, Any]:
    """The entry with other keys; a key is gone where its value is None."""
    return {key: value for key, value in {**ENTRY, **changes}.items() if value is not None}


def mixer(**changes: Any) -> dict[str, Any]:
    full = {**ENTRY["mixers"]["full"], **changes}
    return {**ENTRY["mixers"], "full": {key: value for key, value in full.items() if value is not None}}


def test_an_entry_becomes_a_model() -> None:
    model = ModelRecord.read(ENTRY).to_spec("a-model", {})
    assert (model.name, model.n_layers, model.d_model, model.vocab_size) == ("a-model", 4, 64, 256)
    assert model.layers_by_kind == {"sliding + dense": 2, "full + experts": 2}
    assert {cache.window: cache.layers for cache in caches(model)} == {128: (0, 2), float("inf"): (1, 3)}
    assert {tensor.layers for tensor in weight_tensors(model) if tensor.name == "w_down"} == {(0, 2)}


def test_layers_that_are_alike_are_one() -> None:
    layers = ModelRecord.read(ENTRY).to_spec("a-model", {}).layers
    assert layers[0] is layers[2]
    assert layers[1] is layers[3]
    assert layers[0] is not layers[1]


def test_a_model_may_have_no_norms_or_norms_with_biases() -> None:
    def norms(**changes: Any) -> set[str]:
        model = ModelRecord.read(with_changes(**changes)).to_spec("a-model", {})
        return {tensor.name for tensor in weight_tensors(model) if "norm" in tensor.name}

    assert norms() == {"attention_norm", "mlp_norm", "final_norm"}
    assert norms(norms=[], final_norm=False) == set()
    assert norms(norms=["norm"], norm_bias=True) == {"norm", "norm_bias", "final_norm", "final_norm_bias"}


def test_quantisation_is_read_with_its_rules() -> None:
    rules = [["^lm_head$", {"dtype": "int8", "block": [0, 1]}], ["", {"dtype": "fp8"}]]
    read = ModelRecord.read(with_changes(quantisation={"method": "own", "rules": rules, "ignored": ["gate"]}))
    found = read.to_spec("a-model", {}).quantisation
    assert found is not None
    assert [(pattern, scheme.dtype, scheme.block) for pattern, scheme in found.rules] == [
        ("^lm_head$", "int8", (0, 1)),
        ("", "fp8", (0, 0)),
    ]
    assert (found.method, found.ignored) == ("own", ("gate",))


WRONG = [
    (with_changes(n_layers=4), r"n_layers: no key of a model; known: d_model, vocab_size, layers, "),
    (with_changes(d_model=None), "d_model: missing; a model must have it"),
    (with_changes(layers=None, vocab_size=None), "vocab_size, layers: missing"),
    (with_changes(layers="2 full dense"), "layers: '2 full dense' is not understood"),
    (with_changes(layers=[["full", "dense", 2]]), "layers: .* is no text"),
    (with_changes(layers="2 global+dense"), "layers: global is no kind of this model; there are full, sliding"),
    (with_changes(layers="2 full+wide"), "layers: wide is no kind of this model; there are dense, experts"),
    (with_changes(mixers=mixer(kind="attenton")), "mixers.full: kind 'attenton' is not one of attention, latent_"),
    (with_changes(mixers=mixer(kind=None)), "mixers.full: kind 'None' is not one of"),
    (with_changes(mixers=mixer(kind="dense")), "mixers.full: kind 'dense' is not one of"),
    (with_changes(mixers=mixer(n_head=4)), "mixers.full: n_head: no key of attention; known: n_heads, n_kv_heads"),
    (with_changes(mixers=mixer(d_model=64)), "mixers.full: d_model: no key of attention"),
    (with_changes(mixers=mixer(head_dim=None)), "mixers.full: head_dim: missing; attention must have it"),
    (with_changes(feed_forwards={"wide": {"kind": "dense"}}), "feed_forwards.wide: d_ff: missing; dense must have it"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "said"), WRONG)
def test_what_is_wrong_is_refused_by_its_key(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(CatalogError, match=f"^{said}"):
        ModelRecord.read(entry).to_spec("a-model", {})


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Entries of the catalog's files, in the place of its own."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(load, "read_data", lambda file: found[file])
    model_record.cache_clear()
    catalog_model.cache_clear()
    yield found
    model_record.cache_clear()
    catalog_model.cache_clear()


@pytest.mark.parametrize(("entry", "said"), WRONG)
def test_what_is_wrong_is_refused_by_its_file_and_key(
    entries: dict[str, Any], entry: dict[str, Any], said: str
) -> None:
    entries["models/a-model.toml"] = {**entry, "repo": "an-owner/a-model", "date": "2026-11"}
    with pytest.raises(CatalogError, match=rf"^models/a-model\.toml: {said}"):
        catalog_model("a-model")


@pytest.mark.parametrize("changes", [{"mixers": mixer(n_heads="4")}, {"mixers": mixer(n_kv_heads=3)}, {"d_model": 0}])
def test_sizes_that_make_no_model_are_a_defect_of_the_file(entries: dict[str, Any], changes: dict[str, Any]) -> None:
    entries["models/a-model.toml"] = {**ENTRY, **changes, "repo": "an-owner/a-model", "date": "2026-11"}
    with pytest.raises(CatalogError, match=r"^models/a-model\.toml: "):
        catalog_model("a-model")


def test_a_right_entry_is_a_model_with_its_source(entries: dict[str, Any]) -> None:
    entries["models/a-model.toml"] = {
        **ENTRY,
        "repo": "an-owner/a-model",
        "date": "2026-11",
        "found_at": "o/r@1:c.json",
    }
    source = catalog_model("a-model").provenance[""].source
    assert source is not None
    assert (source.url, source.date) == ("https://huggingface.co/an-owner/a-model", "2026-11")
    assert source.title == "an-owner/a-model, config.json, as o/r@1:c.json holds it"


@pytest.mark.parametrize("kind", [*MIXERS.values(), *FEED_FORWARDS.values()], ids=[*MIXERS, *FEED_FORWARDS])
def test_every_kind_says_what_its_arguments_are(kind: Any) -> None:
    documented = kind.__doc__
    for name in kind.__annotations__:
        assert name == "return" or f"    {name}: " in documented, name


def test_every_model_of_the_catalog_is_in_a_file_of_its_name() -> None:
    files = {path.stem for path in (Path(load.__file__).parent / "data" / "models").glob("*.toml")}
    assert files == load.model_aliases().keys()
