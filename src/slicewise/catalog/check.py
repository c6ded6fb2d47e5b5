"""Validates catalog records field by field: types, kinds and positive figures. Run by the tests, not at start-up."""

from __future__ import annotations

import math
from typing import Any

from pydantic import TypeAdapter, ValidationError

from slicewise.catalog.records import ChipRecord, ModelRecord, PriceRecord, SourceRecord
from slicewise.errors import CatalogError

_RECORDS: dict[str, type] = {
    "chips.toml": ChipRecord,
    "models.toml": ModelRecord,
    "prices.toml": PriceRecord,
    "sources.toml": SourceRecord,
}
_WORDS = {"kind": ("tpu", "gpu"), "wrap": ("axis-of-16", "cubes-of-4", "never")}


def check(file: str, key: str, entry: dict[str, Any]) -> None:
    """Validate one entry of a data file.

    Raises:
        CatalogError: a key is unknown or missing, a type is off, or a figure is not above zero.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(_RECORDS[file])
    try:
        adapter.validate_python(entry)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CatalogError(f"{file}: [{key}] {where}: {first['msg']}") from error
    for name, allowed in _WORDS.items():
        if name in entry and entry[name] not in allowed:
            raise CatalogError(f"{file}: [{key}] {name}: {entry[name]} is none of {', '.join(allowed)}")
    for name, figure in _figures(entry):
        if not (figure > 0 and math.isfinite(figure)):
            raise CatalogError(f"{file}: [{key}] {name}: {figure} is not a finite figure above zero")


def _figures(entry: dict[str, Any]) -> list[tuple[str, float]]:
    found = []
    for name, value in entry.items():
        if isinstance(value, dict):
            found += [(f"{name}.{inner}", figure) for inner, figure in _figures(value)]
        elif isinstance(value, int | float) and not isinstance(value, bool) and name != "domain_chips":
            found.append((name, float(value)))
    return found
