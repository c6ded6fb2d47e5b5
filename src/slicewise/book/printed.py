"""Figures as they are printed, and the one rule by which ours agree with them.

Ours, rounded half up to the digits that are printed, must equal the printed figure. Every printed digit counts,
trailing zeros too: 163.8 kB is 164 kB and not 160 kB. A `~` before a figure is kept for display and changes nothing.
Slices (4x2, read as 8 chips) and fractions (32/4096) are exact.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from slicewise.errors import CatalogError, InputError
from slicewise.units import parse

_FIGURE = re.compile(r"^~?\s*\$?(?P<number>\d[\d,]*(?:\.\d+)?(?:e\d+)?)\s*(?P<suffix>\D.*)?$")
_SLICE = re.compile(r"^\d+(x\d+)+$")
_FRACTION = re.compile(r"^(\d+)/(\d+)$")
_SCALED_UNITS = ("s", "B")
_PER_MS = "/ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A figure as it is printed.

    Attributes:
        text: as it is printed.
        value: in the base unit.
        scale: base units in one printed unit.
        last_digit: worth of the last printed digit, in printed units; None where the figure is exact.
    """

    text: str
    value: float
    scale: float = 1.0
    last_digit: Decimal | None = None

    def agrees(self, ours: float) -> bool:
        """Whether ours, rounded half up to the printed digits, is the printed figure."""
        if self.last_digit is None:
            return math.isclose(ours, self.value)
        places = self.last_digit
        mine, theirs = (
            (Decimal(repr(value / self.scale)) / places).quantize(Decimal(1), rounding=ROUND_HALF_UP)
            for value in (float(ours), self.value)
        )
        return mine == theirs


def read_printed(text: str, unit: str) -> Printed:
    """Read a printed figure.

    >>> read_printed("17 ms", "s").value, read_printed("4x2", "chips").value, read_printed("~9", "").value
    (0.017, 8.0, 9.0)
    >>> read_printed("17 ms", "s").agrees(0.017218), read_printed("8.5 ms", "s").agrees(0.008609)
    (True, False)

    Args:
        text: the figure as it is printed.
        unit: its base unit. Only seconds, bytes and rates a millisecond are scaled.

    Raises:
        CatalogError: not a figure of that unit.
    """
    if _SLICE.match(text):
        return Printed(text=text, value=float(math.prod(int(side) for side in text.split("x"))))
    fraction = _FRACTION.match(text)
    if fraction:
        return Printed(text=text, value=int(fraction[1]) / int(fraction[2]))
    figure = _FIGURE.match(text)
    if not figure:
        message = f"questions.toml: '{text}' is not a printed figure"
        raise CatalogError(message)
    number = Decimal(figure["number"].replace(",", ""))
    scale = _scale((figure["suffix"] or "").strip(), unit, text)
    places = Decimal(1).scaleb(int(number.as_tuple().exponent))
    return Printed(text=text, value=float(number * Decimal(repr(scale))), scale=scale, last_digit=places)


def _scale(suffix: str, unit: str, text: str) -> float:
    if unit in _SCALED_UNITS:
        try:
            return parse(f"1{suffix}", unit, "questions.toml")
        except InputError as error:
            raise CatalogError(str(error)) from error
    if _PER_MS in suffix:
        return 1.0 / parse("1ms", "s")
    if suffix:
        message = f"questions.toml: '{text}' has a unit of its own, and {unit or 'a ratio'} takes none"
        raise CatalogError(message)
    return 1.0
