"""Reads the keys of a config.json by name, and refuses what is missing, absurd, misspelt or not understood."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from slicewise.catalog.config_keys import is_harmless, is_neutral, is_nothing, may_change_a_size, says_a_size, shown
from slicewise.errors import InputError, UnsupportedModelError

LARGEST = 10**8
MOST_LAYERS = 1000
MOST_UNREAD = 1000
"""Keys that are not understood in one object; a config has a few, and many take long to compare."""
_LONGEST = 80
_NEAR = 0.9
_NEARER = 0.94
"""Of keys that are not read yet, some are right and look alike: qk_nope_head_dim and qk_rope_head_dim."""


class Config:
    """The keys of a config, or of one of its parts.

    Every getter marks its key as read; `done` refuses what is left and may change a size.
    """

    def __init__(self, keys: dict[str, Any], origin: str, family: str) -> None:
        self.keys, self.origin, self.family = keys, origin, family
        self._read: set[str] = set()
        self._parts: dict[str, Config] = {}
        self._ignored: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether the key is there and not null."""
        self._read.add(name)
        return self.keys.get(name) is not None

    def size(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """A whole number, by the first of its names that is there.

        Args:
            names: names of one key in the configs of its time.
            default: what transformers takes where it is missing; None where it must be there.
            least: the least that it may be.

        Raises:
            InputError: it is missing, no whole number, or absurd.
        """
        self._read.update(names)
        found = [self.whole(self.keys[name], name, least) for name in names if self.keys.get(name) is not None]
        if found:
            return found[0]
        if default is None:
            raise self.missing(names[0])
        return default

    def whole(self, value: Any, name: str, least: int = 1) -> int:
        """A value that must be a whole number within reason.

        Raises:
            InputError: it is not.
        """
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{self.origin}: {name} is {shown(value)}; it must be a whole number of at least {least}")
        if value > LARGEST:
            raise InputError(f"{self.origin}: {name} is above {LARGEST:,}, more than any model has; check the file")
        return value

    def layers(self, *names: str, default: int | None = None) -> int:
        """The number of layers.

        Raises:
            InputError: it is missing, or more than any model has.
        """
        names = names or ("num_hidden_layers",)
        n_layers = self.size(*names, default=default)
        if n_layers > MOST_LAYERS:
            name = next((name for name in names if self.keys.get(name) is not None), names[0])
            raise InputError(f"{self.origin}: {name} is {n_layers:,}, more than any model has; check the file")
        return n_layers

    def flag(self, *names: str, default: bool | None = False) -> bool:
        """True or false.

        Args:
            names: names of one key in the configs of its time.
            default: what transformers takes where it is missing; None where it must be there.

        Raises:
            InputError: it is neither, or missing.
        """
        self._read.update(names)
        name = next((name for name in names if self.keys.get(name) is not None), names[0])
        value = self.keys.get(name)
        if value is None:
            if default is None:
                raise self.missing(name)
            return default
        if not isinstance(value, bool):
            raise InputError(f"{self.origin}: {name} is {shown(value)}; it must be true or false")
        return value

    def number(self, name: str, default: float | None = None, most: float = LARGEST) -> float:
        """A number above 0.

        Args:
            name: the key.
            default: what is taken where it is missing; None where it must be there.
            most: the most that it may be.

        Raises:
            InputError: it is missing, no number, or absurd.
        """
        self._read.add(name)
        value = self.keys.get(name)
        value = default if value is None else value
        if value is None:
            raise self.missing(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
            raise InputError(
                f"{self.origin}: {name} is {shown(value)}; it must be a number above 0 and no more than {most:,g}"
            )
        return float(value)

    def text(self, name: str, default: str | None = None, known: Sequence[str] = ()) -> str:
        """A word.

        Args:
            name: the key.
            default: what is taken where it is missing; None where it must be there.
            known: words that are understood; any when empty.

        Raises:
            InputError: it is missing or no text.
            UnsupportedModelError: it is none of the known words.
        """
        self._read.add(name)
        value = self.keys.get(name)
        value = default if value is None else value
        if value is None:
            raise self.missing(name)
        if not isinstance(value, str):
            raise InputError(f"{self.origin}: {name} is {shown(value)}; it must be a word")
        if known and value not in known:
            raise UnsupportedModelError(
                f"{self.origin}: {name} {value[:40]} is not supported for {self.family}; supported: {', '.join(known)}"
            )
        return value

    def listed(self, name: str, length: int | None = None) -> list[Any] | None:
        """A list; None where the key is missing.

        Raises:
            InputError: it is no list, or not of the length that the layers ask for.
        """
        self._read.add(name)
        value = self.keys.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise InputError(f"{self.origin}: {name} is {shown(value)}; it must be a list")
        if length is not None and len(value) != length:
            raise InputError(f"{self.origin}: {name} has {len(value)} entries for {length} layers; check the file")
        return value

    def kinds(self, name: str, length: int, known: Sequence[str]) -> list[str] | None:
        """A list of words, one a layer; None where the key is missing.

        Raises:
            UnsupportedModelError: a word is not known.
        """
        values = self.listed(name, length)
        for value in values or ():
            if value not in known:
                raise UnsupportedModelError(
                    f"{self.origin}: {name} holds {shown(value)}, which is not supported for {self.family};"
                    f" supported: {', '.join(known)}"
                )
        return values

    def part(self, name: str) -> Config | None:
        """A nested object; None where the key is missing.

        Raises:
            InputError: it is no object.
        """
        self._read.add(name)
        value = self.keys.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InputError(f"{self.origin}: {name} is {shown(value)}; it must be an object")
        return self._parts.setdefault(name, Config(value, f"{self.origin}: {name[:_LONGEST]}", self.family))

    def ignore(self, *names: str) -> None:
        """Say of keys that they change no size."""
        self._ignored.update(set(names) - self._read)
        self._read.update(names)

    def refuse(self, name: str, why: str, *, but: int = 0) -> None:
        """Refuse a key unless its value says that the model has nothing of the kind.

        Args:
            name: the key.
            why: what is not supported.
            but: a number that says so, too.

        Raises:
            UnsupportedModelError: it has.
        """
        self._read.add(name)
        value = self.keys.get(name)
        if not is_nothing(value) and (isinstance(value, bool) or value != but):
            raise UnsupportedModelError(f"{self.origin}: {name}: {why}")

    def missing(self, name: str, why: str = "") -> InputError:
        """The refusal of a config without a key that it must have, with the key that may have been meant for it."""
        others = [key for key in self.keys if key not in self._read and not is_harmless(key)][:MOST_UNREAD]
        near = difflib.get_close_matches(name, others, n=1, cutoff=_NEARER)
        meant = f"; {near[0]} is no key of a config.json; did you mean {name}?" if near else ""
        return InputError(
            f"{self.origin}: {name} is missing; {why or f'a {self.family} config.json must give it'}{meant}"
        )

    def misspelt(self) -> None:
        """Refuse keys that are nearly one that is read and missing, here and in the parts that were read.

        Raises:
            InputError: there is one.
        """
        wanted, unread = sorted(self._read - self.keys.keys()), sorted(self.keys.keys() - self._read)
        if len(unread) > MOST_UNREAD:
            raise InputError(f"{self.origin}: holds {len(unread):,} keys that no config.json has; check the file")
        for name in unread:
            near = difflib.get_close_matches(name[:_LONGEST], wanted, n=1, cutoff=_NEAR)
            if near and not is_harmless(name):
                raise InputError(
                    f"{self.origin}: {name[:_LONGEST]} is no key of a config.json; did you mean {near[0]}?"
                )
        for part in self._parts.values():
            part.misspelt()

    def done(self) -> None:
        """Refuse what was not read: a misspelt key, or one that may change a size; and sizes that are none.

        Raises:
            InputError: a key is nearly one that is read, which is missing; or is absurd, though nothing depends on it.
            UnsupportedModelError: a key is not understood.
        """
        self.misspelt()
        for name, value in self.keys.items():
            is_model = isinstance(value, dict) and name.endswith("_config")
            is_known = name in self._read or is_harmless(name) or not (is_model or may_change_a_size(name))
            if not is_known and not is_neutral(name, value):
                raise UnsupportedModelError(
                    f"{self.origin}: {name[:_LONGEST]} is not understood for a {self.family} model, and may change its"
                    " size; remove it if it does not"
                )
            if name in self._ignored and says_a_size(name) and value is not None:
                self.whole(value, name, least=-1)


def run_lengths(kinds: Iterable[tuple[str, str]]) -> list[list[Any]]:
    """The layers as [mixer, feed-forward, how many]."""
    found: list[list[Any]] = []
    for mixer, feed in kinds:
        if found and found[-1][:2] == [mixer, feed]:
            found[-1][2] += 1
        else:
            found.append([mixer, feed, 1])
    return found
