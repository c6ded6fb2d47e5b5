"""Reads a JSON file that may be anything: too large, cut off, nested without end, or no object at all."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from slicewise.errors import InputError

MOST_BYTES = 10_000_000
"""A config.json is a few kB; lists of the names of every expert make some of 1 MB."""
MOST_LEVELS = 40
"""No config nests its objects and lists so deeply."""
_MOST_DIGITS = 100


def read_json(path: Path) -> dict[str, Any]:
    """The object of a JSON file.

    Raises:
        InputError: it cannot be read, is no JSON, says one thing twice, or holds no object.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(
                f"{path}: is larger than {MOST_BYTES:,} bytes, so no config.json; give the file of the model"
            )
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a readable config.json") from error
    return parse_object(text, str(path))


def parse_object(text: str, origin: str, wanted: str = "a Hugging Face config.json") -> dict[str, Any]:
    """The object of a JSON text.

    Args:
        text: the JSON.
        origin: where it was read, for messages.
        wanted: what to give where it holds no object.

    Raises:
        InputError: it is no JSON, says one thing twice, or holds no object.
    """
    try:
        config = json.loads(text, parse_constant=_constant, parse_int=_whole, object_pairs_hook=_object)
        if _levels(config) > MOST_LEVELS:
            raise RecursionError
    except RecursionError as error:
        raise InputError(f"{origin}: nested too deeply for a config.json; give the file of the model") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{origin}: not valid JSON at line {error.lineno}, column {error.colno} ({error.msg});"
            " mend or download it again"
        ) from error
    except ValueError as error:
        raise InputError(f"{origin}: {error}; mend or download it again") from error
    if not isinstance(config, dict):
        raise InputError(f"{origin}: holds a {type(config).__name__}, not an object; give {wanted}")
    return config


def _constant(word: str) -> float:
    """Python's JSON reads NaN and Infinity; a range of time steps may end in Infinity, a size may not."""
    return math.nan if word == "NaN" else math.inf if word == "Infinity" else -math.inf


def _whole(digits: str) -> int:
    """A whole number. Of one with more digits than Python converts, the first ones, so that its key is refused."""
    return int(digits[:_MOST_DIGITS])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of two values of one key, neither is the right one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        for name, value in pairs:
            if value != found[name]:
                raise ValueError(f"{name[:60]} is there twice, with two values")
    return found


def _levels(value: Any) -> int:
    """How deeply objects and lists are nested; no deeper than one level beyond what is allowed."""
    inside, levels = [value], 0
    while inside and levels <= MOST_LEVELS:
        held = [one for one in inside if isinstance(one, dict | list)]
        inside = [item for one in held for item in (one.values() if isinstance(one, dict) else one)]
        levels += bool(held)
    return levels
