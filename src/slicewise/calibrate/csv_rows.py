"""A table kept by hand, as CSV or as a list of JSON objects: one measured time a row.

Columns: `batch` and one of the times in every row; what else is the same in all rows may be given as flags instead.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from slicewise.calibrate.contents import MOST_ROWS, bounded
from slicewise.calibrate.measurement import DECODE, DEGREES, END_TO_END, PHASES, PREFILL
from slicewise.calibrate.row import Row, seconds
from slicewise.calibrate.stated import AUTO, Sifted, Stated, dtype, model_name, slice_name
from slicewise.errors import InputError, UnknownNameError

TIMES = ("seconds", "ms", "tok_s_per_seq", "tokens_per_s")
"""How a row may state its time: seconds, milliseconds, tokens a second of one sequence, or of the whole batch."""
COLUMNS = ("model", "slice", "weights", "kv", "compute", "phase", "batch", "isl", "osl", "context", *TIMES, "engine")
_ALSO = {"prompt_tokens": "isl", "output_tokens": "osl", "context_tokens": "context"}
_PHASES = {"": DECODE, "e2e": END_TO_END}
_EXAMPLES = {"seconds": "0.015", "ms": "15", "tok_s_per_seq": "66.7", "tokens_per_s": "2133"}


def is_row(keys: Mapping[str, Any]) -> bool:
    """Whether an object looks like a row of such a table: it has a batch, or a time."""
    return any(_name(key) in ("batch", *TIMES) for key in keys)


def rows(path: Path, text: str) -> list[Row]:
    """The rows of a CSV; lines that are blank or begin with # are none.

    Raises:
        InputError: no CSV, an unknown column, or far too many rows.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    found: list[Row] = []
    try:
        for cells in islice(reader, 2 * MOST_ROWS):
            where = f"{path.name}:line {reader.line_num}"
            if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
                continue
            if not header:
                header = _header(path, cells)
                continue
            bounded(path, len(found) + 1)
            found.append(Row(where=where, values=_cells(where, header, cells), word="column"))
    except csv.Error as error:
        message = f"not valid CSV ({error}); mend the quotes of that line"
        raise InputError(f"{path.name}:line {reader.line_num}: {message}") from error
    if not found:
        raise InputError(f"{path}: has no row below its header; give a row for each measured time")
    return found


def read(row: Row) -> Sifted:
    """The time of a row.

    Raises:
        InputError: a value is off; the message names the row, the column and the fix.
    """
    row = Row(where=row.where, values=_named(row), word=row.word)
    phase = _phase(row)
    compute = _dtype(row, "compute")
    batch, isl = row.whole("batch", 1, "32"), row.whole("isl", 0, "8192")
    stated = Stated(
        where=row.where,
        phase=phase,
        seconds=_seconds(row, phase, batch, isl),
        model=_model(row),
        slice=_slice(row),
        weights=_dtype(row, "weights"),
        kv=_dtype(row, "kv"),
        compute=None if compute == AUTO else compute,
        batch=batch,
        prompt_tokens=isl,
        output_tokens=row.whole("osl", 0, "512"),
        context_tokens=_context(row, phase),
        layout={name: degree for name in DEGREES if (degree := row.whole(name, 1, "8")) is not None},
        engine=(row.text("engine") or "").lower() or None,
    )
    return Sifted(stated=(stated,))


def _name(key: str) -> str:
    plain = key.strip().lower()
    return _ALSO.get(plain, plain)


def _known(key: str, where: object) -> str:
    name = _name(key)
    if name not in (*COLUMNS, *DEGREES):
        raise InputError(f"{where}: {UnknownNameError('column', key.strip()[:40], (*COLUMNS, *DEGREES))}")
    return name


def _header(path: Path, cells: list[str]) -> list[str]:
    if len(cells) == 1 and any(mark in cells[0] for mark in ";\t"):
        raise InputError(f"{path}: the columns '{cells[0][:40]}' are not parted by commas; save it as CSV with commas")
    names = ["" if not cell.strip() else _known(cell, path) for cell in cells]
    twice = [name for name in names if name and names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: the column {twice[0]} is there twice; leave one")
    return names


def _cells(where: str, header: list[str], cells: list[str]) -> dict[str, str]:
    extra = any(cell.strip() for cell in cells[len(header) :])
    if len(cells) < len(header) or extra:
        raise InputError(f"{where}: has {len(cells)} cells under {len(header)} columns; leave unknown ones empty")
    strays = [cell for name, cell in zip(header, cells, strict=False) if not name and cell.strip()]
    if strays:
        raise InputError(f"{where}: '{strays[0].strip()[:40]}' stands under no name; name its column")
    return {name: cell for name, cell in zip(header, cells, strict=False) if name}


def _named(row: Row) -> dict[str, Any]:
    """The values by their columns' names, of which none is unknown or there twice."""
    found: dict[str, Any] = {}
    for key, value in row.values.items():
        name = _known(key, row.where)
        if name in found:
            raise InputError(f"{row.where}: the {row.word} {name} is there twice; leave one")
        found[name] = value
    return found


def _phase(row: Row) -> str:
    word = (row.text("phase") or "").lower().replace("-", "_").replace(" ", "_")
    phase = _PHASES.get(word, word)
    if phase not in PHASES:
        raise InputError(f"{row.what('phase')}: '{word[:40]}' is not known; write {', '.join(PHASES)}")
    return phase


def _seconds(row: Row, phase: str, batch: int | None, isl: int | None) -> float:
    """The time of the phase. [s]"""
    stated = [name for name in TIMES if row.states(name)]
    if len(stated) != 1:
        found = f"states {' and '.join(stated)}" if stated else "states no time"
        raise InputError(f"{row.where}: {found}; give one of {', '.join(TIMES)}")
    name = stated[0]
    value = row.positive(name, _EXAMPLES[name]) or 0.0
    if name in ("seconds", "ms"):
        return seconds(value, "s" if name == "seconds" else name, row.what(name))
    if phase == END_TO_END or (phase == PREFILL and name == "tok_s_per_seq"):
        raise InputError(f"{row.what(name)}: {value:g} is no time of {phase}; give seconds or ms")
    if name == "tok_s_per_seq":
        return 1 / value
    if batch is None or (phase == PREFILL and isl is None):
        needed = "batch" if batch is None else "isl"
        raise InputError(f"{row.what(name)}: {value:g} of the whole batch needs the {row.word} {needed}; add it")
    return batch * (isl or 0 if phase == PREFILL else 1) / value


def _model(row: Row) -> str | None:
    name = row.text("model")
    return None if name is None else model_name(name)


def _slice(row: Row) -> str | None:
    name = row.text("slice")
    try:
        return None if name is None else slice_name(name)
    except InputError as error:
        raise InputError(f"{row.what('slice')}: {str(error).removeprefix('--slice ')}") from error


def _dtype(row: Row, name: str) -> str | None:
    word = row.text(name)
    return None if word is None else dtype(word[:40], row.what(name))


def _context(row: Row, phase: str) -> float | None:
    """Mean of tokens held, where a decode step states them."""
    value = row.number("context", "8448")
    if value is None:
        return None
    if phase != DECODE or value < 0:
        why = "is below 0" if value < 0 else f"is of a decode step, and this is {phase}"
        raise InputError(f"{row.what('context')}: {value:g} {why}; leave it out, or give isl and osl")
    return value
