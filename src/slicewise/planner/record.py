"""Results as JSON-ready data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from slicewise.units import plain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def record(result: DataclassInstance, without: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a result, numbers as JSON writes them and tuples as lists.

    Args:
        result: a frozen dataclass.
        without: fields that are no data, or that the caller writes itself.
    """
    values = {f.name: getattr(result, f.name) for f in fields(result) if f.name not in without}
    return {name: list(value) if isinstance(value, tuple) else plain(value) for name, value in values.items()}
