"""Damages configs at random places, and judges what is read of them then.

A key matters where some sensible value of it is refused, or gives another model. Damage to such a key must be refused,
and damage to any other must change nothing. What matters is found by reading, so that nothing here knows a family.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from _damage import FURTHER, GONE, KINDS, Allowed, Keys, Path, at, is_whole, with_value

from slicewise.catalog.config_keys import HARMLESS
from slicewise.catalog.hf import model_from_config, record_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

SIZE = re.compile(r"^(?:num|n)_|_(?:size|dim|rank|heads|layers|experts)$")
"""Names of keys that say a size: damage to one at the top must be refused, whoever reads it."""
REFUSED, SAME, OTHER = "refused", "read, the same", "read, another"
MOST_PARAMETERS = 10**14
LONGEST = 500
"""Letters of a message that is still one line."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A damaged config.

    Attributes:
        kind: what was done to it.
        path: the key, from the top down.
        keys: all keys, the damaged one among them.
        allowed: what may become of it.
    """

    kind: str
    path: Path
    keys: Keys
    allowed: Allowed

    def __str__(self) -> str:
        value = at(self.keys, self.path)
        is_long = isinstance(value, list | dict) or (isinstance(value, int) and value.bit_length() > len("bits") ** 3)
        return f"{self.kind}: {'.'.join(map(str, self.path))} is {type(value).__name__ if is_long else repr(value)}"


def paths(keys: Any, before: Path = ()) -> Iterator[Path]:
    """Every key, those of parts too, and the first, a middle and the last entry of each list."""
    items: Any = ()
    if isinstance(keys, dict):
        items = keys.items()
    elif isinstance(keys, list) and keys:
        items = [(index, keys[index]) for index in sorted({0, len(keys) // 2, len(keys) - 1})]
    for name, value in items:
        yield (*before, name)
        yield from paths(value, (*before, name))


class Subject:
    """A config that is read, and what is known of its keys."""

    def __init__(self, name: str, keys: Keys, further: tuple[str, ...] = ()) -> None:
        self.name, self.keys, self.further = name, keys, further
        self.record = record_from_config(keys, name)
        found = list(paths(keys))
        # Keys at the top as often as those in parts, of which some configs have thousands.
        self._paths = ([path for path in found if len(path) == 1], found)
        self._matters: dict[Path, bool] = {}

    def matters(self, path: Path) -> bool:
        """Whether some sensible value of a key is refused, or gives another model."""
        if path not in self._matters:
            sensible = _sensible(at(self.keys, path))
            self._matters[path] = any(self._differs(with_value(self.keys, path, value)) for value in sensible)
        return self._matters[path]

    def _differs(self, keys: Keys) -> bool:
        try:
            return record_from_config(keys, self.name) != self.record
        except Exception:
            # A refusal, or what `judge` will find.
            return True

    def mutation(self, kind: str, rng: random.Random) -> Mutation | None:
        """Damage of a kind to some key; None where the kind does not go with the key that was drawn."""
        path = self._further(rng) if kind == FURTHER else rng.choice(rng.choice(self._paths))
        made = KINDS[kind](self.keys, path, rng)
        if made is None:
            return None
        changed, allowed = made
        if allowed is Allowed.NOTHING and not (self._says_a_size(path) or self.matters(path)):
            allowed = Allowed.THE_SAME
        return Mutation(kind=kind, path=path, keys=changed, allowed=allowed)

    def _further(self, rng: random.Random) -> Path:
        """A key of another config, at the top or in the part of the language model."""
        name = rng.choice(self.further)
        return ("text_config", name) if "text_config" in self.keys else (name,)

    def _says_a_size(self, path: Path) -> bool:
        name, value = path[-1], at(self.keys, path)
        is_size = len(path) == 1 and name not in HARMLESS and SIZE.search(str(name))
        return bool(is_size) and is_whole(value)


def _sensible(value: Any) -> list[Any]:
    """Other values that a config could have in a place."""
    if isinstance(value, bool):
        return [not value, GONE]
    if isinstance(value, int):
        return [value * 2, value + 1, max(value // 2, 1), 1, GONE]
    if isinstance(value, float):
        return [value / 2, GONE]
    if isinstance(value, str):
        return ["another", GONE]
    return [GONE] if isinstance(value, list | dict) else [64, "another", True]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a damaged config.

    Attributes:
        outcome: REFUSED, SAME or OTHER.
        wrong: what is wrong about it; "" where nothing is.
    """

    outcome: str
    wrong: str = ""


def judge(subject: Subject, mutation: Mutation) -> Verdict:
    """Read a damaged config, and say whether the outcome is among those that are allowed."""
    try:
        model = model_from_config(mutation.keys, subject.name, subject.name)
    except InputError as refusal:
        return Verdict(REFUSED, wrong_words(str(refusal)))
    except Exception as error:
        return Verdict(REFUSED, f"{type(error).__name__}: {str(error)[:80]}")
    same = record_from_config(mutation.keys, subject.name) == subject.record
    outcome = SAME if same else OTHER
    if mutation.allowed is Allowed.NOTHING or (mutation.allowed is Allowed.THE_SAME and not same):
        return Verdict(outcome, f"was read; allowed: {mutation.allowed.value}")
    return Verdict(outcome, "" if same else insane(model))


def wrong_words(message: str) -> str:
    """What is wrong about the words of a refusal."""
    is_short = len(message.splitlines()) == 1 and len(message) <= LONGEST
    return "" if is_short and "Traceback" not in message else f"is no line for people: {message[:80]}"


def insane(model: Model) -> str:
    """What no model can be, of one that was read."""
    weights = weight_tensors(model)
    total = sum(tensor.size for tensor in weights if tensor.stored)
    if not 0 < total <= MOST_PARAMETERS or any(size < 1 for tensor in weights for _, size in tensor.dims):
        return f"has {total:,} parameters, or an array without elements"
    for cache in caches(model):
        sizes = (
            cache.elements_per_token,
            cache.other_bytes_per_token,
            cache.state_bytes,
            cache.reread_elements_per_token,
        )
        if not all(0 <= size < math.inf for size in sizes) or not any(sizes) or not cache.window >= 1:
            return f"keeps {cache}"
    return ""
