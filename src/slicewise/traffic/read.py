"""Reads a trace of requests: Azure's CSV, Mooncake's JSON lines, or a plain table as either.

Covers text in UTF-8 of up to 2 GB, read row by row. Does not unpack files, join them, or guess whether a time is in
seconds or milliseconds: the names of the columns say so.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from slicewise.errors import InputError
from slicewise.traffic.requests import Ints, Requests
from slicewise.units import GB, MILLION, MS

MOST_BYTES = int(2 * GB)
"""Of a file: some tens of millions of rows."""
MOST_TOKENS = 10**9
"""Of a prompt or an output: none comes near."""
MOONCAKE_BLOCK_TOKENS = 512
"""Tokens that each of Mooncake's hash_ids stands for; the last one of a prompt may stand for fewer."""
NO_OUTPUT, NO_PROMPT = "no tokens to generate", "an empty prompt"
"""Why a row is no request."""
ARRIVALS = (
    "arrival_s", "arrival", "arrival_time", "time_s", "time", "timestamp_s", "timestamp", "arrival_ms", "timestamp_ms",
)  # fmt: skip
PROMPTS = ("prompt_tokens", "prompt", "isl", "input_length", "input_tokens", "contexttokens", "request_tokens")
OUTPUTS = ("output_tokens", "output", "osl", "output_length", "generatedtokens", "response_tokens")
_PREFIXES = "hash_ids"
_LATEST_S = 10**11
"""A later time is one in milliseconds: in seconds it lies beyond the year 5000, in milliseconds in 1973."""
_LONGEST_LINE = int(MILLION)
"""Hashes of a prompt of a million tokens make some ten thousand characters."""
_PART = 2**16
_SHOWN = 40
_STRAY_BYTE = re.compile("[\udc80-\udcff]")
"""Bytes that are no UTF-8 come as lone surrogates, so that the line that holds them can be named."""
_DATE_EXAMPLE = "dates such as 2023-11-16 18:15:46.6805900"
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_DATE = re.compile(
    r"((?:19|20)\d\d-\d\d-\d\d[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?)(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?",
    re.ASCII,
)
"""Of these centuries alone, so that nanoseconds fit into 64 bits."""

_Read = TypeVar("_Read")
_Row = tuple[int, Any, Any, Any, Any]
"""Line, arrival, prompt, output and prefix of a row, as the file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How a trace is written.

    Attributes:
        file: its name.
        word: what a name is called: column or key.
        names: of the arrival, the prompt and the output.
        has_prefixes: its rows have hashes of the prompt's blocks.
        is_dated: arrivals are dates.
    """

    file: str
    word: str
    names: tuple[str, str, str]
    has_prefixes: bool = False
    is_dated: bool = False

    @property
    def ticks_per_s(self) -> int:
        """What an arrival that is a number counts, in a second."""
        return round(1 / MS) if self.has_prefixes or _plain(self.names[0]).endswith("_ms") else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some rows, read: arrivals in ticks or as dates."""

    arrival: NDArray[Any]
    prompt_tokens: Ints
    output_tokens: Ints
    prefixes: list[tuple[int, ...]]


def read_trace(path: str | Path) -> Requests:
    """The requests of a trace, sorted by arrival (those of one time as in the file), the first one at 0 s.

    What the file is, its text says, and not its suffix:

    - Azure LLM inference: CSV of TIMESTAMP (a date), ContextTokens, GeneratedTokens.
    - Mooncake: JSON lines of timestamp (in ms), input_length, output_length, hash_ids (of blocks of 512 tokens).
    - Plain: CSV or JSON lines with an arrival in seconds or as a date (arrival_s, arrival, time, timestamp; in
      milliseconds as arrival_ms, timestamp_ms), a prompt (prompt_tokens, prompt, isl, input_length) and an output
      (output_tokens, output, osl, output_length). Case is no matter, and what else there is is left out.

    Dates are as 2023-11-16 18:15:46.6805900, with T or a space, up to nanoseconds; without an offset they are UTC.
    A row of no output, or else of no prompt, is no request: it is dropped, and counted in `dropped` by reason.
    Blank lines, and lines of CSV that begin with #, are no rows.

    Raises:
        InputError: the file cannot be read, is larger than 2 GB, no text, or without a request; or a row is malformed:
            a time that is none or below 0; tokens that are missing, no number, below 0, a fraction or above 10**9; or
            hashes that are none, or not of such blocks. Also where a numeric timestamp stands beside an input_length
            without hash_ids: Mooncake's kin count milliseconds there, and others seconds.
    """
    path = Path(path)
    try:
        _refuse_unread(path)
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            form, rows = _opened(path, _lines(path.name, file))
            parts = []
            while some := list(islice(rows, _PART)):
                parts.append(_part(form, some))  # a part at a time, as texts take many times the room of numbers
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    return _requests(form, parts)


def _refuse_unread(path: Path) -> None:
    if "\0" in str(path):
        raise InputError(f"{str(path)!r}: is no path; give the file of a trace")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the file of the trace in it")
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path}: is larger than {MOST_BYTES:,} bytes; give a part of it, such as its first lines")


def _lines(name: str, file: TextIO) -> Iterator[str]:
    """The lines of a text; refused where they are none."""
    at = 0
    while line := file.readline(_LONGEST_LINE):
        at += 1
        if "\0" in line or (not line.isascii() and _STRAY_BYTE.search(line)):
            raise InputError(f"{name}:line {at}: is no UTF-8 text; give an unpacked CSV or JSONL file, saved as UTF-8")
        if len(line) == _LONGEST_LINE:
            raise InputError(f"{name}:line {at}: is longer than any row; write one request a line")
        yield line


def _opened(path: Path, lines: Iterator[str]) -> tuple[_Form, Iterator[_Row]]:
    """How a trace is written, and its rows."""
    head = []
    for line in lines:
        head.append(line)
        if line.strip():
            break
    start = head[-1].lstrip()[:1] if head else ""
    if not start:
        raise InputError(f"{path}: is empty; give a trace of requests as CSV with a header, or as JSONL")
    if start == "[":
        raise InputError(f"{path}: is a JSON list; write one object a line (JSONL), or a CSV with a header")
    form, rows = (_json_rows if start == "{" else _csv_rows)(path, chain(head, lines))
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: has no row below its header; give a row for each request")
    is_dated = isinstance(first[1], str) and bool(_DATE.fullmatch(first[1].strip()))
    is_like_mooncake = [_plain(name) for name in form.names[:2]] == ["timestamp", "input_length"]
    if is_like_mooncake and not (is_dated or form.has_prefixes):
        why = f"timestamp beside input_length, without {_PREFIXES}, may be in milliseconds or seconds"
        raise InputError(f"{path}: {why}; name it arrival_ms or arrival_s")
    return replace(form, is_dated=is_dated), chain([first], rows)


def _csv_rows(path: Path, lines: Iterable[str]) -> tuple[_Form, Iterator[_Row]]:
    found = _cells(path.name, lines)
    at, header = next(found, (1, []))
    form = _Form(file=path.name, word="column", names=_names(f"{path.name}:line {at}", "column", header))
    width, chosen = len(header), itemgetter(*(header.index(name) for name in form.names))

    def rows() -> Iterator[_Row]:
        for at, cells in found:
            if len(cells) < width or (len(cells) > width and any(map(str.strip, cells[width:]))):
                what = f"has {len(cells)} cells under {width} columns"
                raise InputError(f"{path.name}:line {at}: {what}; write one for each, and quote those with a comma")
            yield at, *chosen(cells), None

    return form, rows()


def _cells(name: str, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, strict=True)
    try:
        for cells in reader:
            if any(cells) and cells[0][:1] != "#" and (len(cells) > 1 or cells[0].strip()):
                yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{name}:line {reader.line_num}: not valid CSV ({error}); mend its quotes") from error


def _json_rows(path: Path, lines: Iterable[str]) -> tuple[_Form, Iterator[_Row]]:
    found = _objects(path.name, lines)
    at, first = next(found)
    names = arrival, prompt, output = _names(f"{path.name}:line {at}", "key", list(first))
    form = _Form(file=path.name, word="key", names=names, has_prefixes=_PREFIXES in first)
    rows = (
        (at, row.get(arrival), row.get(prompt), row.get(output), row.get(_PREFIXES))
        for at, row in chain([(at, first)], found)
    )
    return form, rows


def _objects(name: str, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    decode = json.JSONDecoder().raw_decode
    for at, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            row, end = decode(text)
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise InputError(f"{name}:line {at}: not valid JSON ({reason}); write one object a line") from error
        if not isinstance(row, dict) or end < len(text):
            raise InputError(f"{name}:line {at}: is not one JSON object; write one a line")
        yield at, row


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


def _names(where: str, word: str, header: list[str]) -> tuple[str, str, str]:
    """What the arrival, the prompt and the output are called in a header."""
    found = []
    for what, known in (("arrival", ARRIVALS), ("prompt", PROMPTS), ("output", OUTPUTS)):
        names = [name for name in header if _plain(name) in known]
        if not names:
            shown = repr(",".join(header)[:_SHOWN])
            fix = "arrival_s, prompt_tokens and output_tokens" + (", parted by commas" if word == "column" else "")
            raise InputError(f"{where}: has no {word} of the {what} in {shown}; give {fix}")
        if len(names) > 1:
            shown = " and ".join(repr(name[:_SHOWN]) for name in names[:2])
            raise InputError(f"{where}: the {word}s {shown} both are of the {what}; leave one")
        found += names
    return found[0], found[1], found[2]


def _part(form: _Form, rows: list[_Row]) -> _Part:
    lines, arrivals, prompts, outputs, hashes = zip(*rows, strict=True)
    part = _Part(
        arrival=(_dates if form.is_dated else _ticks)(form, lines, arrivals),
        prompt_tokens=_lengths(form, lines, form.names[1], prompts),
        output_tokens=_lengths(form, lines, form.names[2], outputs),
        prefixes=_one_by_one(form, lines, _PREFIXES, hashes, _prefix) if form.has_prefixes else [],
    )
    _refuse_other_blocks(form, lines, part)
    return part


def _at_once(form: _Form, cells: Sequence[Any], kind: type, most: int) -> NDArray[Any] | None:
    """A column of plain numbers; None where a value is off, or takes a closer look."""
    if form.word == "column":
        text = ",".join(cells)
        # Python's own numbers, but for 1_000 and digits of other scripts.
        if "_" in text or not text.isascii():
            return None
    elif not set(map(type, cells)) <= {int, kind}:
        return None
    try:
        found: NDArray[Any] = np.array(list(map(kind, cells)), kind)
    except (ValueError, OverflowError):
        return None
    return found if ((found >= 0) & (found <= most)).all() else None


def _one_by_one(
    form: _Form, lines: Sequence[int], name: str, cells: Iterable[Any], read: Callable[[Any], _Read]
) -> list[_Read]:
    """A column's values; the first that is off is refused by its line."""
    found: list[_Read] = []
    try:
        for value in map(_value, cells) if form.word == "column" else cells:
            found.append(read(value))  # noqa: PERF401 - what was read before an error tells its line
    except InputError as error:
        raise InputError(f"{form.file}:line {lines[len(found)]}, {form.word} {name[:_SHOWN]}: {error}") from error
    return found


def _value(cell: str) -> Any:
    """A cell as JSON would have it: a number, nothing, or else a text."""
    text = cell.strip()
    return float(text) if _NUMBER.fullmatch(text) else text or None


def _lengths(form: _Form, lines: Sequence[int], name: str, cells: Sequence[Any]) -> Ints:
    """Tokens of prompts or outputs."""
    found = _at_once(form, cells, int, MOST_TOKENS)
    return np.array(_one_by_one(form, lines, name, cells, _count), np.int64) if found is None else found


def _count(value: Any) -> int:
    is_whole = type(value) is int or (type(value) is float and value.is_integer())
    if is_whole and 0 <= value <= MOST_TOKENS:
        return int(value)
    raise InputError(f"{_wrong(value, MOST_TOKENS, 'whole number')}; write a whole number of tokens such as 512")


def _ticks(form: _Form, lines: Sequence[int], cells: Sequence[Any]) -> NDArray[np.float64]:
    """Arrivals that are numbers."""
    latest = _LATEST_S * form.ticks_per_s

    def tick(value: Any) -> float:
        if type(value) in (int, float) and 0 <= value <= latest:
            return float(value)
        in_s = "seconds such as 12.5 (or milliseconds, and name them arrival_ms)"
        unit = in_s if form.ticks_per_s == 1 else "milliseconds such as 12500"
        raise InputError(f"{_wrong(value, latest, 'time')}; write {unit}, or in all rows {_DATE_EXAMPLE}")

    found = _at_once(form, cells, float, latest)
    return np.array(_one_by_one(form, lines, form.names[0], cells, tick), np.float64) if found is None else found


def _dates(form: _Form, lines: Sequence[int], cells: Sequence[Any]) -> NDArray[np.datetime64]:
    """Arrivals that are dates."""
    found = _one_by_one(form, lines, form.names[0], cells, _date)
    zones = {zone for _, zone in found}
    ahead = {zone: datetime.fromisoformat(f"2000-01-01 00:00:00{zone}").utcoffset() or timedelta() for zone in zones}
    dates = np.array([date for date, _ in found], "datetime64[ns]")
    dates -= np.array([ahead[zone] for _, zone in found], "timedelta64[s]")
    return dates


def _date(value: Any) -> tuple[str, str]:
    """A date as numpy reads it, and its offset from UTC."""
    match = _DATE.fullmatch(value) if isinstance(value, str) else None
    with suppress(ValueError):  # of a 30th of February
        if match and datetime.fromisoformat(match[1][:10]):
            return match[1], match[2] or ""
    raise InputError(f"{_wrong(value, math.inf, 'date')}, which the first row has; write in all rows {_DATE_EXAMPLE}")


def _prefix(value: Any) -> tuple[int, ...]:
    if isinstance(value, list) and set(map(type, value)) <= {int}:
        return tuple(value)
    raise InputError("is no list of whole numbers; write a hash for each block, or [] where they are not known")


def _refuse_other_blocks(form: _Form, lines: Sequence[int], part: _Part) -> None:
    """Each whole block has a hash, and the rest of the prompt may have one."""
    size = MOONCAKE_BLOCK_TOKENS
    for line, found, tokens in zip(lines, part.prefixes, part.prompt_tokens.tolist(), strict=False):
        if found and tokens and len(found) not in (tokens // size, -(-tokens // size)):
            what = f"{len(found)} hashes are not those of {tokens} tokens in blocks of {size}"
            raise InputError(f"{form.file}:line {line}, {form.word} {_PREFIXES}: {what}; write one for each block")


def _wrong(value: object, most: float, what: str) -> str:
    """What is wrong with a value, in a few words."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return "is missing"
    if isinstance(value, str):
        return f"{value.strip()[:_SHOWN]!r} is no {what}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{json.dumps(value)[:_SHOWN]} is no {what}"
    shown = str(value)[:_SHOWN]
    if value in (math.inf, -math.inf) or value != value:  # noqa: PLR0124 - whole numbers may be too long for isnan
        return f"{shown} is not finite"
    return (
        f"{shown} is below 0" if value < 0 else f"{shown} is {f'more than {most:,}' if value > most else f'no {what}'}"
    )


def _requests(form: _Form, parts: list[_Part]) -> Requests:
    """The requests of all parts, without the rows that are none."""
    arrival = np.concatenate([part.arrival for part in parts])
    prompts = np.concatenate([part.prompt_tokens for part in parts])
    outputs = np.concatenate([part.output_tokens for part in parts])
    reasons = {NO_OUTPUT: outputs == 0, NO_PROMPT: (prompts == 0) & (outputs > 0)}
    dropped = {reason: int(rows.sum()) for reason, rows in reasons.items() if rows.any()}
    kept = np.flatnonzero((prompts > 0) & (outputs > 0))
    if not len(kept):
        why = " or ".join(f"{reason} ({count:,} rows)" for reason, count in dropped.items())
        raise InputError(f"{form.file}: no row is a request, of {why}; give a trace with requests")
    kept = kept[np.argsort(arrival[kept], kind="stable")]
    since = arrival[kept] - arrival[kept[0]]
    prefixes = [prefix for part in parts for prefix in part.prefixes]
    return Requests(
        arrival_s=since / np.timedelta64(1, "s") if form.is_dated else since / form.ticks_per_s,
        prompt_tokens=prompts[kept],
        output_tokens=outputs[kept],
        prefixes=tuple(prefixes[at] for at in kept) if prefixes else (),
        prefix_block_tokens=MOONCAKE_BLOCK_TOKENS if prefixes else 0,
        source=f"the trace {form.file}",
        dropped=MappingProxyType(dropped),
    )
