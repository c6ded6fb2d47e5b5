"""Base units inside, people's units at the edges: the only file that scales or formats a number.

Base units are s, B, FLOP, FLOP/s, B/s and USD. Powers of ten, unless a unit is binary (GiB).
Covers parsing ("15ms", "16 GB", "918 TFLOP/s", "400 Gb/s") and printing. Does not do unit algebra.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from slicewise.errors import InputError

US = 1e-6
MS = 1e-3
HOUR_S = 3600.0
MONTH_HOURS = 730.0
"""Hours of a twelfth of 365 days."""
MILLION = 1e6
GB = 1e9
TB = 1e12
GIB = float(2**30)
TIB = float(2**40)
BITS_PER_BYTE = 8.0

_SI = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": GIB, "Ti": TIB, "Pi": 2.0**50}


def _byte_scales(per_s: str = "") -> dict[str, float]:
    scales = {f"{p}B{per_s}": s for p, s in {**_SI, **_BINARY}.items()}
    if per_s:
        scales |= {f"{p}B{'ps'}": s for p, s in _SI.items()}
        for bit in ("b/s", "bit/s", "bps"):
            scales |= {f"{p}{bit}": s / BITS_PER_BYTE for p, s in _SI.items()}
    return scales


_SCALES: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": MS, "us": US, "µs": US, "μs": US, "ns": 1e-9, "min": 60.0, "h": HOUR_S},
    "B": _byte_scales(),
    "B/s": _byte_scales("/s"),
    "FLOP/s": {f"{p}{u}": s for p, s in _SI.items() for u in ("FLOP/s", "FLOPS", "FLOPs", "OP/s", "OPS")},
    "Hz": {f"{p}Hz": s for p, s in _SI.items()},
    "USD": {"USD": 1.0, "$": 1.0},
    "params": {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "b": 1e9, "T": 1e12},
    "request/s": {"/s": 1.0, "rps": 1.0, "req/s": 1.0, "request/s": 1.0},
    "tokens": {"tokens": 1.0, "token": 1.0},
    "count": {},
    "sequences": {},
    "ranks": {},
    "fraction": {"%": 1e-2},
}
_EXAMPLES = {
    "s": "15ms",
    "B": "16GB or 15.75GiB",
    "B/s": "820GB/s or 400Gb/s",
    "FLOP/s": "197TFLOP/s",
    "Hz": "1.5GHz",
    "USD": "1.2",
    "params": "70e9 or 70B",
    "request/s": "10",
    "tokens": "8192",
    "count": "8192",
    "sequences": "32",
    "ranks": "8",
    "fraction": "0.95",
}
_HUGE = 1e30
"""No quantity that is read here comes near; sums and products of what is smaller stay finite."""
_MOST = 10**12
"""No count of tokens, sequences or chips comes near."""
_SHORT = 5
_MOST_NAMES = 4096
_NEEDS_UNIT = ("s", "B", "B/s", "FLOP/s", "Hz")
_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
"""Commas only where they part thousands: 2,048 is a number, 15,5 and 2048,4096 are not."""
_QUANTITY = re.compile(rf"^\s*\$?\s*({_NUMBER})(?![\d,.])\s*(.*?)\s*$", re.ASCII)


def parse(text: str | float, unit: str, what: str = "value") -> float:
    """Read a quantity in people's units as a number of base units.

    >>> parse("15ms", "s"), parse("16 GB", "B"), parse("400 Gb/s", "B/s"), parse("70B", "params")
    (0.015, 16000000000.0, 50000000000.0, 70000000000.0)

    Args:
        text: such as "15ms". A number is in the base unit; a text of a time, bytes or a rate must name its unit.
        unit: the base unit that is wanted: s, B, B/s, FLOP/s, USD, params, tokens, count, fraction, request/s.
        what: the flag or field, for the error message.

    Raises:
        InputError: the text is not a finite quantity of that unit.
    """
    is_number = isinstance(text, int | float) and not isinstance(text, bool)
    if is_number:
        value, suffix = float(max(min(text, _HUGE), -_HUGE)), ""
    else:
        match = _QUANTITY.match(str(text))
        if not match:
            raise InputError(f"{what}: '{text}' is not a quantity; write for example {_EXAMPLES[unit]}")
        value, suffix = float(match[1].replace(",", "").replace("_", "")), match[2]
    if unit in _NEEDS_UNIT and not suffix and not is_number:
        raise InputError(f"{what}: '{text}' has no unit; write for example {_EXAMPLES[unit]}")
    scale = 1.0 if not suffix else _SCALES[unit].get(suffix)
    if scale is None and unit in ("count", "sequences", "ranks") and suffix in ("k", "K", "m", "M"):
        decimal, binary = _SI[suffix.upper()], _BINARY[f"{suffix.upper()}i"]
        meant = f"{value * binary:.0f} or {value * decimal:.0f}"
        raise InputError(f"{what}: '{text}' may mean {decimal:,.0f} or {binary:,.0f} times {value:g}; write {meant}")
    if scale is None:
        known = ", ".join(s for s in _SCALES[unit] if s and len(s) <= _SHORT)[:60] or "a bare number"
        raise InputError(f"{what}: '{text}' has no unit known here ({known}); write for example {_EXAMPLES[unit]}")
    # A reciprocal keeps decimal fractions exact: 15 / 1000 is 0.015, 15 * 0.001 may not be.
    base = value * scale if scale >= 1 else value / round(1 / scale)
    if not abs(base) < _HUGE:
        raise InputError(
            f"{what}: '{str(text)[:40]}' is no finite, sensible number; write for example {_EXAMPLES[unit]}"
        )
    return base


def parse_positive(text: str | float, unit: str, what: str) -> float:
    """Read a quantity that must be greater than zero, in base units.

    Raises:
        InputError: not a quantity, or not above zero.
    """
    value = parse(text, unit, what)
    if value <= 0:
        raise InputError(f"{what}: {text} must be greater than 0; write for example {_EXAMPLES[unit]}")
    return value


def parse_count(text: str | float, what: str, unit: str = "count") -> int:
    """Read a whole number of at least 1: tokens (unit count), sequences or ranks.

    Raises:
        InputError: not a whole number of at least 1.
    """
    value = parse_positive(text, unit, what)
    if value != int(value):
        raise InputError(f"{what}: {text} must be a whole number; write for example {_EXAMPLES[unit]}")
    if value > _MOST:
        raise InputError(f"{what}: {text} is beyond what anything holds; write for example {_EXAMPLES[unit]}")
    return int(value)


@lru_cache(maxsize=_MOST_NAMES)
def unit_of(name: str) -> str:
    """The base unit that a quantity's name ends in; "" for a plain count or ratio.

    >>> unit_of("step_s"), unit_of("hbm_bytes_per_s"), unit_of("kv_bytes_per_token"), unit_of("batch")
    ('s', 'B/s', 'B', '')
    """
    rules = (
        (r"flops_per_usd$", "FLOP/USD"),
        (r"byte.*_per_usd$", "B/USD"),
        (r"(tokens|requests)_per_s_shared$", "1/s"),
        (r"_hz$", "Hz"),
        (r"bytes_per_s(_per_chip)?$", "B/s"),
        (r"flops_per_s(_per_chip)?$", "FLOP/s"),
        (r"(tokens|requests)_per_s(_per_chip)?$", "1/s"),
        (r"usd(_per_.*)?$", "USD"),
        (r"_bytes(_per_(chip|token|sequence|param|element))?$", "B"),
        (r"_s(_per_(request|sequence))?$", "s"),
        (r"flops(_per_.*)?$", "FLOP"),
    )
    return next((unit for pattern, unit in rules if re.search(pattern, "_" + name)), "")


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)) + 1e-12))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, steps: list[tuple[float, str]], digits: int) -> str:
    if value == 0:
        return f"0 {steps[0][1] if steps[0][0] == 1 else steps[-1][1]}"
    for scale, suffix in steps:
        if abs(value) >= scale * (1 - 1e-9):
            return f"{_significant(value / scale, digits)} {suffix}"
    scale, suffix = steps[-1]
    return f"{_significant(value / scale, digits)} {suffix}"


_EXACT_BELOW_BYTES = 10e6
_BRIEF_DIGITS = 3
_GB_FROM_BYTES = 0.1e9
_TB_FROM_BYTES = 10e12
_STEPS: dict[str, list[tuple[float, str]]] = {
    "s": [(1.0, "s"), (MS, "ms"), (US, "µs"), (1e-9, "ns")],
    "B": [(1e15, "PB"), (1e12, "TB"), (GB, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
    "Hz": [(1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")],
    "B/s": [(1e12, "TB/s"), (GB, "GB/s"), (1e6, "MB/s"), (1.0, "B/s")],
    "FLOP": [(1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1.0, "FLOP")],
    "FLOP/s": [(1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1.0, "FLOP/s")],
}


def show(value: float | None, unit: str = "", digits: int = 5) -> str:
    """Print a base-unit number for people.

    >>> show(0.017218, "s"), show(112.95e9, "B"), show(163840, "B"), show(8.2e11, "B/s"), show(None)
    ('17.218 ms', '112.95 GB', '163,840 B', '820 GB/s', 'unknown')
    """
    if value is None:
        return "unknown"
    value = float(value)
    if not math.isfinite(value):
        return "unlimited" if value > 0 else str(value)
    if unit == "USD":
        return f"${value:,.{_cents(value)}f}"
    if unit.endswith("/USD"):
        return f"{value:.3g} {unit}"
    is_exact = unit == "B" and value == int(value) and abs(value) < _EXACT_BELOW_BYTES
    if unit in _STEPS and not is_exact:
        return _scaled(value, _STEPS[unit], digits)
    text = f"{value:,.0f}" if value == int(value) else _significant(value, digits)
    return f"{text} {'/s' if unit == '1/s' else unit}".rstrip()


def brief(value: float, unit: str = "") -> str:
    """Print a base-unit number in three digits, for a page that gives the exact one beside it. Whole counts stay whole.

    >>> brief(0.022, "s"), brief(2824704, "B"), brief(1.359, "USD"), brief(0.004972, "USD"), brief(1962)
    ('22.0 ms', '2.82 MB', '$1.36', '$0.00497', '1,962')
    """
    if not math.isfinite(value) or unit.endswith("/USD") or (unit not in {*_STEPS, "USD"} and value == int(value)):
        return show(value, unit, _BRIEF_DIGITS)
    if unit == "USD":
        return f"${_fixed(value, least=2)}"
    steps = _STEPS.get(unit, [(1.0, "/s" if unit == "1/s" else unit)])
    scale, suffix = next((step for step in steps if abs(value) >= step[0] * (1 - 1e-9)), steps[-1])
    if not value or (scale == 1.0 and value == int(value)):
        return show(value, unit)
    return f"{_fixed(value / scale)} {suffix}".rstrip()


def brief_alike(values: Sequence[float], unit: str = "") -> list[str]:
    """Print numbers of one kind in three digits, scaled as the first, which alone carries the unit.

    >>> brief_alike([0.01422, 0.00429, 0.0127], "s"), brief_alike([2.636, 3.162], "USD"), brief_alike([2024, 98.5])
    (['14.2 ms', '4.29', '12.7'], ['$2.64', '3.16'], ['2,024', '98.5'])
    """
    if not all(map(math.isfinite, values)):
        return [show(value, unit, _BRIEF_DIGITS) for value in values]
    if unit == "USD":
        return [f"{'' if place else '$'}{_fixed(value)}" for place, value in enumerate(values)]
    steps = _STEPS.get(unit, [(1.0, "/s" if unit == "1/s" else unit)])
    scale, suffix = next((step for step in steps if abs(values[0]) >= step[0] * (1 - 1e-9)), steps[-1])
    first, *others = (_fixed(value / scale) for value in values)
    return [f"{first} {suffix}".rstrip(), *others]


def _fixed(value: float, *, least: int = 0) -> str:
    """Three digits, zeros at the end kept, so that columns of them stand well."""
    exponent = int(f"{value:.{_BRIEF_DIGITS - 1}e}".partition("e")[2]) if value else 0
    return f"{value:,.{max(least, _BRIEF_DIGITS - 1 - exponent)}f}"


def _cents(usd: float) -> int:
    """Decimals that show a sum of money in four digits, and never fewer than two."""
    return max(2, 3 - math.floor(math.log10(abs(usd)) + 1e-12)) if usd else 2


def show_gib(value: float) -> str:
    """Print bytes in GB and GiB, the two that get mixed up.

    >>> show_gib(141107412992)
    '141.11 GB (131.42 GiB)'
    """
    if abs(value) < _GB_FROM_BYTES:
        return show(value, "B", 3)
    if abs(value) >= _TB_FROM_BYTES:
        return f"{_significant(value / TB, 5)} TB ({_significant(value / TIB, 5)} TiB)"
    return f"{_significant(value / GB, 5)} GB ({_significant(value / GIB, 5)} GiB)"


def plain(value: object) -> object:
    """A number as JSON writes it: int where it is whole, float otherwise, None for what is unlimited or unknown."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value == int(value) and abs(value) < 2**53 else value
    return value
