"""Reads the package's data files once, and finds chips and models by name."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from slicewise.catalog.hub import fetch, is_repo
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.records import ChipRecord, MeasuredStepRecord, PriceRecord, SourceRecord
from slicewise.errors import CatalogError, InputError, SlicewiseError, UnknownNameError
from slicewise.spec.chip import Chip, Price
from slicewise.spec.measured import MeasuredStep
from slicewise.spec.model import Model
from slicewise.spec.provenance import Provenance, Source


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
def measured_steps() -> tuple[MeasuredStep, ...]:
    """Decode steps that were published."""
    return tuple(MeasuredStepRecord(**entry).to_spec(sources()) for entry in read_data("measured.toml")["step"])


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
def model_aliases() -> dict[str, tuple[str, ...]]:
    """Every model of the catalog, with its other names."""
    return {name: tuple(others) for name, others in read_data("names.toml").items()}


@cache
def model_record(name: str) -> ModelRecord:
    """The record of a model of the catalog, by its own name."""
    file = f"models/{name}.toml"
    try:
        return ModelRecord.read(read_data(file))
    except CatalogError as error:
        raise CatalogError(f"{file}: {error}") from error


@cache
def catalog_model(name: str) -> Model:
    """A model of the catalog, by its own name."""
    record = model_record(name)
    facts = MappingProxyType({"": Provenance(printed=name, source=_model_source(name, record))})
    try:
        return record.to_spec(name, facts)
    except (SlicewiseError, TypeError, ValueError) as error:
        raise CatalogError(f"models/{name}.toml: {error}") from error


def _model_source(name: str, record: ModelRecord) -> Source:
    if record.source:
        return sources()[record.source]
    copy = f", as {record.found_at} holds it" if record.found_at else ""
    url = f"https://huggingface.co/{record.repo}"
    return Source(key=f"hf-{name}", title=f"{record.repo}, config.json{copy}", url=url, date=record.date)


def models() -> dict[str, Model]:
    """Every model of the catalog, by its name."""
    return {name: catalog_model(name) for name in model_aliases()}


def find_chip(name: str) -> Chip:
    """The chip of a name or alias, such as v5e, v5litepod or tpu-v5-lite-podslice.

    Raises:
        InputError: a slice was named.
        UnknownNameError: no chip of that name.
    """
    wanted = name.strip().lower()
    for chip in chips().values():
        if wanted == chip.name or wanted in chip.aliases:
            return chip
    if ":" in wanted:
        raise InputError(f"--chip {name}: a chip has no count or topology; write --slice {name}")
    hint = "(`slicewise catalog chips` lists them; for the memory of another GPU take h100 with --hbm, such as 24GB)"
    raise UnknownNameError("chip", name, chips(), hint)


def catalog_name(text: str) -> str | None:
    """The model of the catalog that goes by a name or alias; None where none does."""
    wanted = text.strip().lower()
    return next(
        (
            known
            for known, others in model_aliases().items()
            if wanted == known or wanted in (alias.lower() for alias in others)
        ),
        None,
    )


def names_of_models() -> list[str]:
    """Every name and alias that a model of the catalog goes by."""
    return [name for known, others in model_aliases().items() for name in (known, *(alias.lower() for alias in others))]


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


def _read_config(path: Path) -> Model:
    """The model of a config.json, by readers that a name of the catalog does without: start-up is budgeted."""
    from slicewise.catalog.hf import read_config  # noqa: PLC0415 - see above

    return read_config(path)


def load_model(name: str | Path | Model) -> Model:
    """A model by catalog name or alias, from a config.json or a folder that holds one, or from Hugging Face.

    Raises:
        UnknownNameError: neither a name of the catalog, nor a path, nor an id of a repository.
        UnsupportedModelError: the config holds what is not understood.
        InputError: the file cannot be read.
    """
    if isinstance(name, Model):
        return name
    text = str(name).strip()
    if not text:
        raise InputError("MODEL is empty; give a catalog name such as llama-3-70b, or a path of a config.json")
    known = catalog_name(text)
    if known is not None:
        return catalog_model(known)
    path = _config_path(text)
    if path is not None:
        return _read_config(path)
    if is_repo(text):
        return replace(_read_config(fetch(text)), name=text)
    hint = "(or give the path of a config.json, or a Hugging Face id such as Qwen/Qwen3-8B)"
    raise UnknownNameError("model", text, names_of_models(), hint)
