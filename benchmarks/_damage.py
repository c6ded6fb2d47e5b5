"""Kinds of damage to a config.json, each to one key: what is then there, and what may become of the config."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from enum import Enum
from typing import Any

Path = tuple[str | int, ...]
Keys = dict[str, Any]

NAMES = frozenset({"quantized_layers", "config_groups", "extra_config", "dynamic", "id2label", "label2id"})
"""Objects whose keys are names of modules or labels, of which none is misspelt."""
DEEP = 700
"""Levels of a value that no config nests so deeply, and that Python still holds."""
ABSURD = (10**12, 1e30, 10**30, 10**400)
ODD = -7
"""Below zero, and no word for "none" in any config, as -1 is."""
LONG = 3
"""A list of fewer entries may be anything; a longer one that has an entry for each layer is a list of layers."""


class Allowed(Enum):
    """What may become of a damaged config, beside that it is refused."""

    ANYTHING = "any sane model"
    THE_SAME = "the model that it was before"
    NOTHING = "nothing"


class _Gone:
    """Stands for a key that is not there."""

    def __repr__(self) -> str:
        return "not there"


GONE = _Gone()


def at(keys: Keys, path: Path) -> Any:
    """The value at a path; GONE where there is none."""
    found: Any = keys
    for step in path:
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            return GONE
    return found


def with_value(keys: Keys, path: Path, value: Any) -> Keys:
    """The config with another value at a path, or without it; only what is on the path is copied."""
    changed = copy.copy(keys)
    around: Any = changed
    for step in path[:-1]:
        around[step] = copy.copy(around[step])
        around = around[step]
    if value is GONE:
        del around[path[-1]]
    else:
        around[path[-1]] = value
    return changed


Made = tuple[Keys, Allowed] | None
"""A changed config, with what may become of it where the key matters; None where there is nothing to change."""


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    return is_number(value) and isinstance(value, int)


def _n_layers(keys: Keys, path: Path) -> int:
    """The layers that the object around a key states; 0 where it states none."""
    around = at(keys, path[:-1])
    found = around.get("num_hidden_layers", 0) if isinstance(around, dict) else 0
    return found if is_whole(found) else 0


def _is_of_layers(keys: Keys, path: Path) -> bool:
    """Whether a list or a word has an entry for each layer."""
    value = at(keys, path)
    return isinstance(value, list | str) and len(value) == _n_layers(keys, path) > LONG


def _without(keys: Keys, path: Path, _: random.Random) -> Made:
    return with_value(keys, path, GONE), Allowed.ANYTHING


def _null(keys: Keys, path: Path, _: random.Random) -> Made:
    return with_value(keys, path, None), Allowed.ANYTHING


def _negative(keys: Keys, path: Path, rng: random.Random) -> Made:
    value = at(keys, path)
    if not is_number(value):
        return None
    return with_value(keys, path, rng.choice((ODD, -abs(value) + ODD))), Allowed.NOTHING


def _zero(keys: Keys, path: Path, _: random.Random) -> Made:
    return (with_value(keys, path, 0), Allowed.ANYTHING) if is_number(at(keys, path)) else None


def _absurd(keys: Keys, path: Path, rng: random.Random) -> Made:
    return (with_value(keys, path, rng.choice(ABSURD)), Allowed.NOTHING) if is_number(at(keys, path)) else None


def _fraction(keys: Keys, path: Path, _: random.Random) -> Made:
    value = at(keys, path)
    return (with_value(keys, path, value + 1 / 2), Allowed.NOTHING) if is_whole(value) else None


def _not_finite(keys: Keys, path: Path, rng: random.Random) -> Made:
    if at(keys, path) is None:
        return None
    return with_value(keys, path, rng.choice((math.nan, math.inf, -math.inf))), Allowed.NOTHING


def _wrong_type(keys: Keys, path: Path, rng: random.Random) -> Made:
    value = at(keys, path)
    if value is None:
        return None
    others = [other for other in (7, "7", True, [value], {"of": value}) if type(other) is not type(value)]
    if isinstance(value, float):
        others.remove(7)
    return with_value(keys, path, rng.choice(others)), Allowed.NOTHING


def _deep(keys: Keys, path: Path, rng: random.Random) -> Made:
    old = at(keys, path)
    if old is None:
        return None
    value = old
    for _ in range(DEEP):
        value = [value] if rng.random() < 1 / 2 else {"of": value}
    return with_value(keys, path, {"of": value} if isinstance(old, list) else [value]), Allowed.NOTHING


def _misspelt(keys: Keys, path: Path, rng: random.Random) -> Made:
    name = path[-1]
    if not isinstance(name, str) or len(name) < len("n_head") or (len(path) > 1 and path[-2] in NAMES):
        return None
    place = rng.randrange(1, len(name) - 1)
    before, after = name[:place], name[place:]
    slip = rng.choice((before + before[-1] + after, before + after[1:], f"{before}x{after}", f"{name}s"))
    if slip in at(keys, path[:-1]) or slip == name:
        return None
    value = at(keys, path)
    return with_value(with_value(keys, path, GONE), (*path[:-1], slip), value), Allowed.THE_SAME


def _indivisible(keys: Keys, path: Path, _: random.Random) -> Made:
    n_heads = at(keys, (*path[:-1], "num_attention_heads"))
    if path[-1] != "num_key_value_heads" or not is_whole(n_heads):
        return None
    return with_value(keys, path, next(n for n in range(2, 2 * n_heads) if n_heads % n)), Allowed.NOTHING


def _other_length(keys: Keys, path: Path, rng: random.Random) -> Made:
    value = at(keys, path)
    if not isinstance(value, list) or not value:
        return None
    changed = rng.choice((value[:-1], [*value, value[-1]], value * 2))
    return with_value(keys, path, changed), Allowed.NOTHING if _is_of_layers(keys, path) else Allowed.ANYTHING


def _unknown_layer(keys: Keys, path: Path, rng: random.Random) -> Made:
    value = at(keys, path)
    if not _is_of_layers(keys, path):
        return None
    place = rng.randrange(len(value))
    if isinstance(value, str):
        return with_value(keys, path, f"{value[:place]}?{value[place + 1 :]}"), Allowed.NOTHING
    return with_value(keys, (*path, place), "another_attention"), Allowed.NOTHING


def _further(keys: Keys, path: Path, rng: random.Random) -> Made:
    if at(keys, path) is not GONE:
        return None
    value = rng.choice((*ABSURD, ODD, math.nan, math.inf, "?", [ODD]))
    return with_value(keys, path, value), Allowed.NOTHING


FURTHER = "another config's key, damaged"
KINDS: dict[str, Callable[[Keys, Path, random.Random], Made]] = {
    "missing": _without,
    "null": _null,
    "negative": _negative,
    "zero": _zero,
    "absurd": _absurd,
    "fraction": _fraction,
    "not finite": _not_finite,
    "wrong type": _wrong_type,
    "nested deeply": _deep,
    "misspelt": _misspelt,
    "heads that do not divide": _indivisible,
    "list of another length": _other_length,
    "unknown kind of layer": _unknown_layer,
    FURTHER: _further,
}
"""What makes each kind of damage to a key."""
