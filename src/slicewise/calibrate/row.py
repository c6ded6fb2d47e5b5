"""A row of a table or an object of JSON, whose values may be anything: read with errors that say where and what."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slicewise.errors import InputError
from slicewise.units import parse

MOST = 10**12
"""No count of tokens, sequences or ranks comes near."""
_LONGEST = 300
"""No word or number of a measurement has so many characters."""
_SHOWN = 40
_HUGE = 1e30
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""Without commas: 0,015 is a fraction to some and fifteen to others."""
_UNITS = {"sec": "s", "second": "s", "seconds": "s", "milliseconds": "ms"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Values by name.

    Attributes:
        where: the file, and the line or the item of it.
        values: as they were found.
        word: what a name is called: the column of a table, the key of an object.
        prefix: of the names, inside of an object of an object.
    """

    where: str
    values: Mapping[str, Any]
    word: str = "key"
    prefix: str = ""

    def what(self, name: str) -> str:
        """The place of a value, for errors."""
        return f"{self.where}, {self.word} {self.prefix}{name[:_SHOWN]}"

    def states(self, name: str) -> bool:
        """Whether there is a value, be it wrong."""
        value = self.values.get(name)
        return value is not None and not (isinstance(value, str) and not value.strip())

    def text(self, name: str) -> str | None:
        """A word; None where there is none.

        Raises:
            InputError: no word, or a far too long one.
        """
        if not self.states(name):
            return None
        value = self.values[name]
        if not isinstance(value, str):
            raise InputError(f"{self.what(name)}: {kind(value)} is no word; write text in quotes")
        if len(value) > _LONGEST:
            raise InputError(f"{self.what(name)}: '{value[:_SHOWN]}...' has {len(value):,} characters; write a name")
        return value.strip()

    def number(self, name: str, example: str = "0.015") -> float | None:
        """A finite number; None where there is none.

        Raises:
            InputError: no finite number.
        """
        return number(self.values[name], self.what(name), example) if self.states(name) else None

    def positive(self, name: str, example: str = "0.015") -> float | None:
        """A number above zero; None where there is none.

        Raises:
            InputError: no finite number above zero.
        """
        value = self.number(name, example)
        if value is not None and value <= 0:
            raise InputError(f"{self.what(name)}: {value:g} must be greater than 0; write for example {example}")
        return value

    def measured(self, name: str) -> float | None:
        """A number above zero; None where there is none, or the 0 that tools write of what they did not measure.

        Raises:
            InputError: no finite number, or one below zero.
        """
        return None if self.number(name) == 0 else self.positive(name)

    def whole(self, name: str, least: int, example: str) -> int | None:
        """A whole number of at least so much; None where there is none.

        Raises:
            InputError: no such number.
        """
        value = self.number(name, example)
        if value is None:
            return None
        if value != int(value):
            raise InputError(f"{self.what(name)}: {value:g} must be a whole number; write for example {example}")
        if not least <= value <= MOST:
            bound = f"at least {least}" if value < least else f"at most {MOST:,}"
            raise InputError(f"{self.what(name)}: {value:g} must be {bound}; write for example {example}")
        return int(value)

    def truth(self, name: str) -> bool:
        """Whether it is true, or the word for it; what is missing is not.

        Raises:
            InputError: neither true nor false.
        """
        value = self.values.get(name)
        if isinstance(value, bool) or value is None:
            return bool(value)
        if isinstance(value, str) and value.strip().lower() in ("true", "false", ""):
            return value.strip().lower() == "true"
        raise InputError(f"{self.what(name)}: {kind(value)} is neither true nor false; write one of them")

    def section(self, name: str) -> Row:
        """An object inside; an empty one where there is none.

        Raises:
            InputError: it is no object.
        """
        value = self.values.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise InputError(f"{self.what(name)}: {kind(value)} where an object is due; give the tool's own file")
        return Row(where=self.where, values=value or {}, word=self.word, prefix=f"{self.prefix}{name}.")

    def listed(self, name: str) -> list[Any]:
        """A list inside, or a single value as a list of it; empty where there is none."""
        value = self.values.get(name)
        return value if isinstance(value, list) else [] if value is None else [value]


def number(value: object, what: str, example: str) -> float:
    """A finite number, or a text of one.

    Raises:
        InputError: anything else.
    """
    shown = kind(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) and len(value) <= _LONGEST:
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{what}: {shown} is no number; write for example {example}")
    if not abs(value) < _HUGE or math.isnan(value):
        raise InputError(f"{what}: {shown} is no sensible number; write for example {example}")
    return float(value)


def seconds(value: float, unit: str, what: str) -> float:
    """A time in seconds, of a number and the unit that a tool or a column names. [s]

    Raises:
        InputError: no unit of time that is known here.
    """
    return parse(f"{value!r}{_UNITS.get(unit, unit)[:_SHOWN]}", "s", what)


def kind(value: object) -> str:
    """A value in an error: short, and without the depths of lists and objects."""
    if isinstance(value, str):
        return f"'{value[:_SHOWN]}{'...' if len(value) > _SHOWN else ''}'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value if isinstance(value, float) else float(min(max(value, -_HUGE), _HUGE)):g}"
    return {list: "a list", dict: "an object", type(None): "nothing"}.get(type(value), type(value).__name__)
