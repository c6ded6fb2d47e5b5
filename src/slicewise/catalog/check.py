"""Validates catalog records field by field: types, kinds and positive figures. Run by the tests, not at start-up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from slicewise.catalog.layer_list import unfold
from slicewise.catalog.model_record import FEED_FORWARDS, MIXERS, ModelRecord
from slicewise.catalog.records import ChipRecord, MeasuredStepRecord, PriceRecord, SourceRecord
from slicewise.errors import CatalogError

_RECORDS: dict[str, type] = {
    "chips.toml": ChipRecord,
    "measured.toml": MeasuredStepRecord,
    "models": ModelRecord,
    "prices.toml": PriceRecord,
    "sources.toml": SourceRecord,
}
_KINDS: dict[str, Mapping[str, Callable[..., Any]]] = {"mixers": MIXERS, "feed_forwards": FEED_FORWARDS}
_WORDS = {"kind": ("tpu", "gpu"), "wrap": ("axis-of-16", "cubes-of-4", "never")}


def check(file: str, key: str, entry: dict[str, Any]) -> None:
    """Validate one entry of a data file.

    Raises:
        CatalogError: a key is unknown or missing, a type is off, or a figure is not above zero.
    """
    try:
        _check_types(_RECORDS[file], _unfolded(entry) if file == "models" else entry, "")
        for table, kinds in _KINDS.items() if file == "models" else ():
            for name, words in entry.get(table, {}).items():
                _check_arguments(kinds, words, f"{table}.{name}")
    except CatalogError as error:
        raise CatalogError(f"{file}: [{key}] {error}") from error
    for name, allowed in _WORDS.items():
        if name in entry and entry[name] not in allowed:
            raise CatalogError(f"{file}: [{key}] {name}: {entry[name]} is none of {', '.join(allowed)}")
    for name, figure in _figures(entry):
        # A kind's argument of 0 says that it has nothing of the sort.
        is_nothing = figure == 0 and name.startswith(tuple(_KINDS))
        if not (is_nothing or (figure > 0 and math.isfinite(figure))):
            raise CatalogError(f"{file}: [{key}] {name}: {figure} is not a finite figure above zero")


def _unfolded(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "layers": unfold(entry["layers"])} if "layers" in entry else entry


def _check_arguments(kinds: Mapping[str, Callable[..., Any]], words: dict[str, Any], where: str) -> None:
    """Validate the arguments of a kind of mixer or of feed-forward, of which the formulas know the types."""
    made = kinds.get(words.get("kind", ""))
    if made is None:
        raise CatalogError(f"{where}.kind: {words.get('kind')} is none of {', '.join(kinds)}")
    hints = get_type_hints(made)
    for name, value in words.items():
        if name != "kind":
            if name not in hints:
                raise CatalogError(f"{where}.{name}: no argument of {words['kind']}")
            _check_types(hints[name], value, f"{where}.{name}", strict=True)


def _check_types(kind: Any, value: Any, where: str, *, strict: bool | None = None) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    try:
        adapter.validate_python(value, strict=strict)
    except ValidationError as error:
        first = error.errors()[0]
        inner = ".".join(filter(None, (where, *map(str, first["loc"]))))
        raise CatalogError(f"{inner}: {first['msg']}") from error


def _figures(entry: dict[str, Any]) -> list[tuple[str, float]]:
    found = []
    for name, value in entry.items():
        if isinstance(value, dict):
            found += [(f"{name}.{inner}", figure) for inner, figure in _figures(value)]
        elif isinstance(value, int | float) and not isinstance(value, bool) and name != "domain_chips":
            found.append((name, float(value)))
    return found
