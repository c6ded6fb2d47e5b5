"""The package's own data: every entry is valid, every figure has a source; and what is wrong is refused by its key."""

from typing import Any

import pytest

from slicewise.catalog.check import check
from slicewise.catalog.load import chips, model_aliases, models, prices, read_data, sources
from slicewise.errors import CatalogError
from slicewise.units import parse

TABLES = ("chips.toml", "sources.toml")
ENTRIES = [pytest.param(file, key, id=f"{file}-{key}") for file in TABLES for key in read_data(file)]
FIGURE = {"value": 16, "unit": "GB", "source": "scaling-book-tpus"}


def figures(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The figures of a chip: tables with a value, at any depth."""
    tables = [value for value in entry.values() if isinstance(value, dict)]
    return [t for t in tables if "value" in t] + [f for t in tables if "value" not in t for f in figures(t)]


@pytest.mark.parametrize(("file", "key"), ENTRIES)
def test_every_entry_of_the_data_is_valid(file: str, key: str) -> None:
    check(file, key, read_data(file)[key])


@pytest.mark.parametrize("name", list(model_aliases()))
def test_every_model_is_valid(name: str) -> None:
    check("models", name, read_data(f"models/{name}.toml"))


@pytest.mark.parametrize("index", range(len(read_data("prices.toml")["price"])))
def test_every_price_is_valid(index: int) -> None:
    entry = read_data("prices.toml")["price"][index]
    check("prices.toml", entry["chip"], entry)


@pytest.mark.parametrize("key", read_data("chips.toml"))
def test_every_figure_of_a_chip_has_a_source_that_exists(key: str) -> None:
    entry = read_data("chips.toml")[key]
    assert len(figures(entry)) >= 5
    named = {figure["source"] for figure in figures(entry)} | {entry["shapes_source"]}
    assert named <= sources().keys()


def test_every_model_and_price_has_a_source_that_exists() -> None:
    named = {entry["source"] for entry in read_data("prices.toml")["price"]}
    assert named <= sources().keys()
    for model in models().values():
        source = model.provenance[""].source
        assert source
        assert source.url.startswith("https://")
        assert source.date[:2] == "20"


def test_every_price_is_of_a_chip_that_exists() -> None:
    assert prices().keys() <= chips().keys()


def test_every_source_can_be_found_again() -> None:
    for source in sources().values():
        assert source.title
        assert source.url
        assert source.date[:2] == "20"


@pytest.mark.parametrize("name", list(chips()))
def test_figures_are_converted_from_what_is_printed(name: str) -> None:
    chip, entry = chips()[name], read_data("chips.toml")[name]
    for dtype, rate in entry["flops"].items():
        assert chip.flops_per_s[dtype] == rate["value"] * {"T": 1e12}.get(rate["unit"][0], 1.0)
    assert chip.hbm_bytes == entry["hbm"]["value"] * 1e9
    assert chip.usable_hbm_bytes == parse("{value} {unit}".format(**entry.get("usable_hbm", entry["hbm"])), "B")


def test_names_and_aliases_are_unique() -> None:
    names = [name for chip in chips().values() for name in (chip.name, *chip.aliases)]
    assert len(set(names)) == len(names)
    aliases = [alias.lower() for others in model_aliases().values() for alias in others]
    assert len({*aliases, *models()}) == len(aliases) + len(models())


@pytest.mark.parametrize(
    ("file", "key", "change", "said"),
    [
        ("chips.toml", "v5e", {"hmb": 16}, "hmb"),
        ("chips.toml", "v5e", {"hbm": {**FIGURE, "note": "x"}}, "hbm.note"),
        ("chips.toml", "v5e", {"hbm": {**FIGURE, "value": -16}}, "hbm"),
        ("chips.toml", "v5e", {"hbm": {**FIGURE, "value": 0}}, "hbm"),
        ("chips.toml", "v5e", {"hbm": {**FIGURE, "value": float("nan")}}, "hbm"),
        ("chips.toml", "v5e", {"hbm": {**FIGURE, "value": float("inf")}}, "hbm"),
        ("chips.toml", "v5e", {"hbm": {**FIGURE, "value": "sixteen"}}, "hbm.value"),
        ("chips.toml", "v5e", {"hbm": 16}, "hbm"),
        ("chips.toml", "v5e", {"hbm": {"value": 16, "unit": "GB"}}, "hbm.source"),
        ("chips.toml", "v5e", {"flops": {"bf16": {**FIGURE, "value": -1}}}, "flops.bf16"),
        ("chips.toml", "v5e", {"chips_per_host": -4}, "chips_per_host"),
        ("chips.toml", "v5e", {"chips_per_host": "four"}, "chips_per_host"),
        ("chips.toml", "v5e", {"kind": "cpu"}, "kind"),
        ("chips.toml", "v5e", {"wrap": "always"}, "wrap"),
        ("chips.toml", "v5e", {"shapes": "4x4"}, "shapes"),
        ("sources.toml", "gcp-tpu-docs", {"author": "x"}, "author"),
        ("sources.toml", "gcp-tpu-docs", {"title": 5}, "title"),
    ],
)
def test_what_is_wrong_is_refused_by_file_and_key(file: str, key: str, change: dict[str, Any], said: str) -> None:
    with pytest.raises(CatalogError) as refused:
        check(file, key, {**read_data(file)[key], **change})
    assert str(refused.value).startswith(f"{file}: [{key}] ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"d_model": "many"}, "d_model"),
        ({"d_model": 4096.5}, "d_model"),
        ({"d_model": -1}, "d_model"),
        ({"n_layers": 32}, "n_layers"),
        ({"layers": 3}, "layers"),
        ({"layers": "32 full dense"}, "layers"),
        ({"norms": "attention_norm"}, "norms"),
        ({"mixers": {"full": {"kind": "attenton"}}}, "mixers.full.kind"),
        ({"mixers": {"full": {}}}, "mixers.full.kind"),
        ({"mixers": {"full": {"kind": "attention", "n_head": 32}}}, "mixers.full.n_head"),
        ({"mixers": {"full": {"kind": "attention", "n_heads": "32"}}}, "mixers.full.n_heads"),
        ({"mixers": {"full": {"kind": "attention", "n_heads": 32.0}}}, "mixers.full.n_heads"),
        ({"mixers": {"full": {"kind": "attention", "qkv_bias": 1}}}, "mixers.full.qkv_bias"),
        ({"mixers": {"full": {"kind": "attention", "window": float("nan")}}}, "mixers.full.window"),
        ({"feed_forwards": {"dense": {"kind": "dense", "d_ff": [14336]}}}, "feed_forwards.dense.d_ff"),
        ({"feed_forwards": {"dense": {"kind": "dense", "d_ff": -1}}}, "feed_forwards.dense.d_ff"),
        ({"feed_forwards": {"dense": {"kind": "dense", "places": ["w1"]}}}, "feed_forwards.dense.places"),
    ],
)
def test_a_model_that_is_wrong_is_refused_by_its_key(change: dict[str, Any], said: str) -> None:
    with pytest.raises(CatalogError, match=rf"models: \[llama-3-8b\] {said}"):
        check("models", "llama-3-8b", {**read_data("models/llama-3-8b.toml"), **change})


def test_a_missing_key_is_refused_by_its_name() -> None:
    entry = {key: value for key, value in read_data("chips.toml")["v5e"].items() if key != "hbm"}
    with pytest.raises(CatalogError, match=r"chips.toml: \[v5e\] hbm"):
        check("chips.toml", "v5e", entry)


def test_a_price_below_zero_is_refused() -> None:
    entry = read_data("prices.toml")["price"][0]
    with pytest.raises(CatalogError, match=r"prices.toml: \[v5e\] usd_per_chip_hour"):
        check("prices.toml", "v5e", {**entry, "usd_per_chip_hour": -1.2})
