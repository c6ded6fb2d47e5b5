"""Reads the package's data files once, and finds chips and models by name."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from slicewise.catalog.hf import read_config
from slicewise.catalog.records import ChipRecord, ModelRecord, PriceRecord, SourceRecord
from slicewise.errors import CatalogError, InputError, UnknownNameError
from slicewise.spec.chip import Chip, Price
from slicewise.spec.model import Model
from slicewise.spec.provenance import Source


def read_data(name: str) -> dict[str, Any]:
    """One data file of the package, parsed."""
    text = resources.files("slicewise.catalog").joinpath("data", name).read_text(encoding="utf-8")
    return tomllib.loads(text)


def _refuse(file: str, key: str, error: Exception) -> CatalogError:
    return CatalogError(f"{file}: [{key}]: {' '.join(str(error).split())}")


@cache
def sources() -> dict[str, Source]:
    """Every source, by key."""
    return {key: SourceRecord(**entry).to_spec(key) for key, entry in read_data("sources.toml").items()}


@cache
def prices() -> dict[str, tuple[Price, ...]]:
    """The quotes of each chip, the default first."""
    found: dict[str, list[Price]] = {}
    for entry in read_data("prices.toml")["price"]:
        record = PriceRecord(**entry)
        found.setdefault(record.chip, []).append(record.to_spec(sources()))
    return {chip: tuple(quotes) for chip, quotes in found.items()}


@cache
def chips() -> dict[str, Chip]:
    """Every chip, by its name."""
    found = {}
    for name, entry in read_data("chips.toml").items():
        try:
            found[name] = ChipRecord.read(entry).to_spec(name, sources(), prices().get(name, ()))
        except (TypeError, KeyError) as error:
            raise _refuse("chips.toml", name, error) from error
    return found


@cache
def _model_records() -> dict[str, ModelRecord]:
    found = {}
    for name, entry in read_data("models.toml").items():
        try:
            found[name] = ModelRecord(**entry)
        except TypeError as error:
            raise _refuse("models.toml", name, error) from error
    return found


def models() -> dict[str, Model]:
    """Every model of the catalog, by its name."""
    return {name: record.to_spec(name, sources()) for name, record in _model_records().items()}


def model_aliases() -> dict[str, tuple[str, ...]]:
    """Other names of each model."""
    return {name: tuple(record.aliases) for name, record in _model_records().items()}


def find_chip(name: str) -> Chip:
    """The chip of a name or alias, such as v5e, v5litepod or tpu-v5-lite-podslice.

    Raises:
        UnknownNameError: no chip of that name.
    """
    wanted = name.strip().lower()
    for chip in chips().values():
        if wanted == chip.name or wanted in chip.aliases:
            return chip
    raise UnknownNameError("chip", name, chips(), "(`slicewise catalog chips` lists them and their aliases)")


def _config_path(text: str) -> Path | None:
    """The config.json that a text names, itself or by its folder; None where it names no path.

    Raises:
        InputError: a folder without one, or a .json that is not there.
    """
    try:
        path = Path(text).expanduser()
        is_dir, is_file = path.is_dir(), path.is_file()
        holds = is_dir and (path / "config.json").is_file()
    except (OSError, RuntimeError, ValueError):
        # No name that this system can have, such as one of another user or of thousands of characters.
        return None
    if is_dir and not holds:
        raise InputError(f"{text} holds no config.json; give the folder of a Hugging Face model or the file itself")
    if is_file or holds:
        return path / "config.json" if holds else path
    if path.suffix == ".json":
        raise InputError(f"there is no file {text}; check the path")
    return None


def load_model(name: str | Path | Model) -> Model:
    """A model by catalog name or alias, or from a config.json or a folder that holds one.

    Raises:
        UnknownNameError: neither a name of the catalog nor a path.
        UnsupportedModelError: the config holds what is not understood.
        InputError: the file cannot be read.
    """
    if isinstance(name, Model):
        return name
    text = str(name).strip()
    if not text:
        raise InputError("MODEL is empty; give a catalog name such as llama-3-70b, or a path of a config.json")
    wanted = text.lower()
    for known, record in _model_records().items():
        if wanted == known or wanted in (alias.lower() for alias in record.aliases):
            return record.to_spec(known, sources())
    path = _config_path(text)
    if path is not None:
        return read_config(path)
    if text.count("/") == 1 and not text.startswith((".", "/", "~")):
        hint = "(Hugging Face ids that are not in the catalog are not fetched: give the path of its config.json)"
    else:
        hint = "(or give the path of a config.json)"
    names = [n for known, record in _model_records().items() for n in (known, *(a.lower() for a in record.aliases))]
    raise UnknownNameError("model", text, names, hint)
