"""Reads a file that may be anything into text, and text into JSON: bounded, and refused in one line."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from slicewise.errors import InputError
from slicewise.units import MILLION

MOST_BYTES = int(64 * MILLION)
"""Results with every request's times make some megabytes."""
MOST_ROWS = 100_000
"""No bench makes as many measurements."""
_MOST_DIGITS = 100
_LISTS = ("results", "measurements")
"""Keys of an object under which a list of measurements stands."""


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: it cannot be read, is too large, no UTF-8, or empty.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give the file of the measurements in it")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"{path}: is larger than {MOST_BYTES:,} bytes; give a part of it, without each request")
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no UTF-8 text from byte {error.start:,} on; save it as UTF-8") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error
    if not text.strip():
        raise InputError(f"{path}: is empty; give a CSV with a header, or what a benchmark wrote")
    return text


def items(path: Path, text: str) -> list[tuple[str, Any]]:
    """The values of a JSON text, each with its place: those of a list, those of each line, or the one.

    Raises:
        InputError: no JSON, or far too many values.
    """
    if path.suffix.lower() == ".jsonl":
        return _lines(path, text)
    try:
        value = _parsed(text)
    except json.JSONDecodeError as error:
        # Tools append: a result a line.
        if error.msg == "Extra data":
            return _lines(path, text)
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{path}: not valid JSON at {place} ({error.msg}); mend or write it again") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON that can be read ({_reason(error)}); mend or write it again") from error
    return _inside(path, value)


def bounded(path: Path, count: int) -> None:
    """Refuse a file of too many rows.

    Raises:
        InputError: too many.
    """
    if count > MOST_ROWS:
        raise InputError(f"{path}: has more than {MOST_ROWS:,} rows; give the measurements that matter")


def _lines(path: Path, text: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for at, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        bounded(path, len(found) + 1)
        where = f"{path.name}:line {at}"
        try:
            found.append((where, _parsed(line)))
        except json.JSONDecodeError as error:
            message = f"not valid JSON at column {error.colno} ({error.msg}); write one object a line"
            raise InputError(f"{where}: {message}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON that can be read ({_reason(error)}); mend it") from error
    return found


def _inside(path: Path, value: Any) -> list[tuple[str, Any]]:
    """The items of a list, or of the list of results in an object; else the value itself."""
    name = ""
    if isinstance(value, dict):
        name = next((key for key in _LISTS if isinstance(value.get(key), list)), "")
        value = value[name] if name else value
    if not isinstance(value, list):
        return [(path.name, value)]
    bounded(path, len(value))
    if not value:
        raise InputError(f"{path}: holds an empty list; give a file with measurements")
    return [(f"{path.name}: {name}[{at}]", item) for at, item in enumerate(value)]


def _parsed(text: str) -> Any:
    return json.loads(text, parse_int=lambda digits: int(digits[:_MOST_DIGITS]), object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of two values of one key, neither is the right one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counted = Counter(name for name, _ in pairs)
        raise ValueError(f"{counted.most_common(1)[0][0][:40]} is there twice")
    return found


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
