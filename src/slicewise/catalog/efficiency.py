"""Fitted efficiencies: those that ship with the package, and a user's own file of the same form.

A file holds a table `[[fit]]` for each engine and family of chips. The first that suits a chip is taken.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from slicewise.catalog.load import find_chip
from slicewise.errors import InputError, UnknownNameError
from slicewise.spec.chip import Chip
from slicewise.spec.efficiency import GROUPS, Efficiency, Error, Scale
from slicewise.units import MILLION, parse

PRIOR = "gpus"
"""The file of what all measured GPUs have in common, for a chip that nobody measured."""

SHARES = ("weight_read_efficiency", "kv_read_efficiency", "matmul_efficiency", "network_efficiency")
PASSES = ("token_passes", "prefill_token_passes")
TIMES = ("layer", "sync")
_WORDS = ("name", "family", "engine", "measured")
_LISTS = ("chips", "models", "sources")
_OPTIONAL = ("shared", "shared_chips", "shared_rows", "as_shipped", "other_engines", "other_engine_errors")
"""Of which each holds for some files only."""
_MOST_BYTES = int(MILLION)


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuErrors:
    """How far a TPU compiler's expected steps lie from measured ones.

    Attributes:
        error: over all rows.
        engine: whose steps were measured.
        sources: keys of sources.toml.
        is_calibrated: the chip itself was measured with a fixed batch.
        most_chips: the most that worked together. []
    """

    error: Error
    engine: str
    sources: tuple[str, ...]
    is_calibrated: bool
    most_chips: int


@cache
def tpu_errors(chip: str) -> TpuErrors:
    """The error of a chip's expected steps; that of chips that were only measured as servers where it has none."""
    table = tomllib.loads(_file("tpus").read_text(encoding="utf-8"))
    entry = table.get(chip, table["others"])
    error = Error(
        n_rows=entry["rows"],
        n_models=entry["models"],
        range_rows=entry["rows"],
        median=entry["median"],
        low=entry["low"],
        high=entry["high"],
    )
    return TpuErrors(
        error=error,
        engine=entry["engine"],
        sources=tuple(entry["sources"]),
        is_calibrated=chip in table,
        most_chips=entry["most_chips"],
    )


def _file(name: str) -> Traversable:
    return resources.files("slicewise.catalog").joinpath("data", "efficiency", f"{name}.toml")


@cache
def shipped(name: str) -> tuple[Efficiency, ...]:
    """The fits of one shipped file: ampere, hopper, ada or gpus; none where there is no such file."""
    file = _file(name)
    if not file.is_file():
        return ()
    return _fits(tomllib.loads(file.read_text(encoding="utf-8")), f"efficiency/{name}.toml")


def efficiency_of(chip: Chip, given: Sequence[Efficiency | Scale] = ()) -> Efficiency:
    """The figures of a chip: given ones where they have the chip, else its family's, else what all GPUs have in common.

    Args:
        chip: the chip.
        given: fits of the user's own file.
    """
    own = next((fit for fit in given if isinstance(fit, Efficiency) and chip.name in fit.chips), None)
    if own:
        return own
    family = shipped(chip.family) if chip.family else ()
    if family:
        return replace(family[0], is_calibrated=chip.name in family[0].chips)
    return replace(shipped(PRIOR)[0], is_calibrated=False)


def read_efficiency(path: str | Path) -> tuple[Efficiency | Scale, ...]:
    """The fits of a user's file, as `slicewise calibrate` writes it.

    Raises:
        InputError: it cannot be read, or a value is missing or out of bounds.
    """
    try:
        with Path(path).open("rb") as file:
            read = file.read(_MOST_BYTES + 1)
        text = read.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a readable text file"
        raise InputError(f"--efficiency {path}: {reason}; write the file with slicewise calibrate") from None
    if len(read) > _MOST_BYTES:
        raise InputError(f"--efficiency {path}: larger than any efficiency file; give one that calibrate wrote")
    try:
        parsed = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:80]
        raise InputError(f"--efficiency {path}: no TOML ({reason}); write the file with slicewise calibrate") from None
    return _all(parsed, f"--efficiency {path}")


def _all(parsed: Mapping[str, Any], where: str) -> tuple[Efficiency | Scale, ...]:
    scales = parsed.get("scale", [])
    if not isinstance(scales, list) or not all(isinstance(entry, dict) for entry in scales):
        raise InputError(f"{where}: scale must be tables [[scale]]; write the file with slicewise calibrate")
    found = tuple(_scale(entry, f"{where}: scale {number}") for number, entry in enumerate(scales, 1))
    both: tuple[Efficiency | Scale, ...] = (*found, *(_fits(parsed, where) if "fit" in parsed or not found else ()))
    counts = Counter(chip for fit in both for chip in fit.chips)
    twice = next((chip for chip, count in counts.items() if count > 1), None)
    if twice:
        raise InputError(f"{where}: {twice} stands in it {counts[twice]} times; leave one of them")
    return both


def _scale(entry: Mapping[str, Any], where: str) -> Scale:
    words = ("name", "engine", "measured")
    known = {*words, *_LISTS, "most_chips", "rows", "step_ratio", "prefill_ratio", "errors"}
    _known_keys(entry, known, where)
    found: dict[str, Any] = {key: _word(entry[key], f"{where}: {key}") for key in words}
    found |= {key: _words(entry[key], f"{where}: {key}") for key in _LISTS}
    found["chips"] = tuple(_chip(name, where) for name in found["chips"])
    strays = [name for name in found["chips"] if find_chip(name).is_gpu]
    if strays:
        raise InputError(f"{where}: {strays[0]} is no TPU; a GPU's figures stand in [[fit]]")
    return Scale(
        most_chips=_whole(entry["most_chips"], f"{where}: most_chips", least=1),
        n_rows=_whole(entry["rows"], f"{where}: rows"),
        step_ratio=_number(entry["step_ratio"], f"{where}: step_ratio"),
        prefill_ratio=_number(entry["prefill_ratio"], f"{where}: prefill_ratio"),
        errors=_errors(entry["errors"], f"{where}: errors"),
        **found,
    )


def _known_keys(entry: Mapping[str, Any], known: set[str], where: str, optional: Sequence[str] = ()) -> None:
    for key in entry:
        if key not in known and key not in optional:
            raise InputError(f"{where}: {key}: no such key; known: {', '.join(sorted(known))}")
    for key in sorted(known):
        if key not in entry:
            raise InputError(f"{where}: {key} is missing; write the file with slicewise calibrate")


def _fits(parsed: Mapping[str, Any], where: str) -> tuple[Efficiency, ...]:
    entries = parsed.get("fit")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{where}: no [[fit]] in it; write the file with slicewise calibrate")
    return tuple(_fit(entry, f"{where}: fit {number}") for number, entry in enumerate(entries, 1))


def _fit(entry: Mapping[str, Any], where: str) -> Efficiency:
    known = {*_WORDS, *_LISTS, *SHARES, *PASSES, *TIMES, "most_chips", "rows", "prefill_efficiency", "errors"}
    _known_keys(entry, known, where, _OPTIONAL)
    words: dict[str, Any] = {key: _word(entry[key], f"{where}: {key}") for key in _WORDS}
    words |= {key: _words(entry[key], f"{where}: {key}") for key in _LISTS}
    words |= {key: _number(entry[key], f"{where}: {key}", most=1.0) for key in SHARES}
    words |= {key: _number(entry[key], f"{where}: {key}", least=0.0) for key in PASSES}
    words |= {f"{key}_s": _time(entry[key], f"{where}: {key}") for key in TIMES}
    words["chips"] = tuple(_chip(name, where) for name in words["chips"])
    return Efficiency(
        is_calibrated=True,
        most_chips=_whole(entry["most_chips"], f"{where}: most_chips", least=1),
        n_rows=_whole(entry["rows"], f"{where}: rows"),
        prefill_efficiency=_by_bits(entry["prefill_efficiency"], f"{where}: prefill_efficiency"),
        errors=_errors(entry["errors"], f"{where}: errors"),
        **words,
        **_optional(entry, where),
    )


def _optional(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What some files say besides: figures that are not of these rows alone, and engines that were left out."""
    lists = ("shared", "shared_chips", "as_shipped", "other_engines")
    found: dict[str, Any] = {key: _words(entry[key], f"{where}: {key}") for key in lists if key in entry}
    if "shared_rows" in entry:
        found["shared_rows"] = _whole(entry["shared_rows"], f"{where}: shared_rows")
    if "other_engine_errors" in entry:
        found["other_engine_errors"] = _errors(entry["other_engine_errors"], f"{where}: other_engine_errors")
    return found


def _word(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where}: {value!r} is no text")
    return value


def _words(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InputError(f"{where}: {value!r} is no list of names")
    return tuple(_word(each, where) for each in value)


def _chip(name: str, where: str) -> str:
    try:
        return find_chip(name).name
    except UnknownNameError as error:
        raise InputError(f"{where}: chips: {error}") from None


def _number(value: object, where: str, *, least: float = 0.000001, most: float = MILLION) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:  # type: ignore[operator]  # a number by then; nan lies nowhere
        raise InputError(f"{where}: {str(value)[:40]!r} is no number between {least:g} and {most:g}")
    return float(value)  # type: ignore[arg-type]


def _whole(value: object, where: str, *, least: int = 0) -> int:
    found = _number(value, where, least=least)
    if not found.is_integer():
        raise InputError(f"{where}: {value} is no whole number")
    return int(found)


def _time(value: object, where: str) -> float:
    found = parse(_word(value, where), "s", where)
    if not 0 <= found < 1:
        raise InputError(f"{where}: {value} must be at least 0 and below a second; write for example 80 us")
    return found


def _by_bits(value: object, where: str) -> Mapping[int, float]:
    if not isinstance(value, dict) or not value or not set(value) <= {"8", "16"}:
        raise InputError(f'{where}: {value!r} must give shares for "8" or "16" bits')
    return MappingProxyType({int(bits): _number(share, f"{where}.{bits}", most=1.0) for bits, share in value.items()})


def _errors(value: object, where: str) -> Mapping[str, Error]:
    if not isinstance(value, dict) or set(value) != set(GROUPS):
        raise InputError(f"{where}: must be tables {', '.join(GROUPS)}; write the file with slicewise calibrate")
    return MappingProxyType({name: _error(each, f"{where}.{name}") for name, each in value.items()})


def _error(value: object, where: str) -> Error:
    keys = ("rows", "models", "range_rows", "median", "low", "high")
    if not isinstance(value, dict) or set(value) - {"held"} != set(keys):
        raise InputError(f"{where}: must have {', '.join(keys)}")
    low, high = (_number(value[key], f"{where}.{key}") for key in ("low", "high"))
    if not low <= 1 <= high:
        raise InputError(f"{where}: low must be at most 1 and high at least 1, and they are {low:g} and {high:g}")
    rows, models, of = (_whole(value[key], f"{where}.{key}") for key in ("rows", "models", "range_rows"))
    median = _number(value["median"], f"{where}.median", least=0.0)
    held = _number(value["held"], f"{where}.held", least=0.0, most=1.0) if "held" in value else None
    return Error(n_rows=rows, n_models=models, range_rows=of, median=median, low=low, high=high, held=held)
