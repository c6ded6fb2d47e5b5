"""JSON objects as CSV: one row an object, the same names and base units; most objects inside are left out."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

ROWS_UNDER = ("candidates", "slices", "rows", "fits", "tried")
"""Keys under which a command's JSON holds its rows."""
SPREAD = ("metrics", "shares", "steady", "figures")
"""Keys of objects whose values are columns of their own, such as metrics.ttft_s.p99."""
INSIDE = ("recommended",)
"""Keys of objects whose own columns are columns, such as recommended.step_s."""


def to_rows(data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of a command's JSON: its list, its columns side by side, or the object itself as the only row."""
    if not isinstance(data, Mapping):
        return list(data)
    under = next((key for key in ROWS_UNDER if isinstance(data.get(key), list)), None)
    if under:
        # An answer without rows still has its reason.
        return list(data[under]) or [data]
    columns = {key: value for key, value in data.items() if isinstance(value, list) and key != "assumptions"}
    columns |= _columns_inside("figures", data.get("figures") or {})
    # A single list is a value of the object, not a column of a table.
    if len(columns) > 1 and len({len(column) for column in columns.values()}) == 1:
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [data]


def _cell(value: Any) -> Any:
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def _is_inside(value: Any) -> bool:
    """Whether it is an object, or a list of them."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: _cell(value) for key, value in row.items() if not _is_inside(value)}
    for key in SPREAD:
        if isinstance(row.get(key), dict):
            found |= _spread(key, row[key])
    for key in INSIDE:
        if isinstance(row.get(key), dict):
            found |= {f"{key}.{name}": cell for name, cell in _row(row[key]).items()}
    return found


def _columns_inside(name: str, inside: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The columns of an object, each named by its path."""
    found: dict[str, list[Any]] = {}
    for key, value in inside.items():
        path = f"{name}.{key}"
        if isinstance(value, Mapping):
            found |= _columns_inside(path, value)
        elif isinstance(value, list):
            found[path] = value
    return found


def _spread(name: str, inside: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an object, each named by its path."""
    found: dict[str, Any] = {}
    for key, value in inside.items():
        path = f"{name}.{key}"
        found |= _spread(path, value) if isinstance(value, dict) else {path: _cell(value)}
    return found


def to_csv(data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """The rows of a command's JSON as CSV, with a header; an unknown value is an empty cell."""
    rows = [_row(row) for row in to_rows(data)]
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
