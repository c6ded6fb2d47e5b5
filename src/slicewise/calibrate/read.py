"""Reads a file of measurements, whoever wrote it: finds out the format, and puts in what was given with the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slicewise.calibrate import aiperf, csv_rows, inferencemax, vllm
from slicewise.calibrate.contents import items, read_text
from slicewise.calibrate.measurement import Measurement, Reading
from slicewise.calibrate.row import Row, kind
from slicewise.calibrate.stated import Given, Sifted, measurement
from slicewise.errors import InputError

_FORMATS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Row], Sifted]], ...] = (
    (inferencemax.is_result, inferencemax.read),
    (aiperf.is_export, aiperf.read),
    (vllm.is_latency, vllm.read_latency),
    (vllm.is_serve, vllm.read_serve),
    (vllm.is_throughput, vllm.read_throughput),
    (csv_rows.is_row, csv_rows.read),
)
"""How an object of each format is known, and what reads it; the first that knows it does."""
_KNOWN = "a CSV, JSON objects of the same columns, or what vllm bench, AIPerf, GenAI-Perf or InferenceMAX wrote"


def read_measurements(path: Path, given: Given) -> Reading:
    """The measurements of a file.

    Args:
        path: a CSV or JSON of rows, or the result of a benchmark.
        given: words that hold for every measurement of it, where the file is silent.

    Raises:
        InputError: no such file or format, a value that is off, what nobody states, or a contradiction.
    """
    given = given.understood()
    sifted = list(map(_sifted, _rows(path)))
    found: list[Measurement] = [measurement(stated, given) for one in sifted for stated in one.stated]
    return Reading(
        measurements=tuple(found), left_out=dict(Counter(reason for one in sifted for reason in one.left_out))
    )


def _rows(path: Path) -> list[Row]:
    text = read_text(path)
    if path.suffix.lower() not in (".json", ".jsonl") and text.lstrip()[0] not in "{[":
        return csv_rows.rows(path, text)
    return [_object(where, value) for where, value in items(path, text)]


def _object(where: str, value: object) -> Row:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: {kind(value)} where an object of a measurement is due; give {_KNOWN}")
    return Row(where=where, values=value)


def _sifted(row: Row) -> Sifted:
    if row.word == "column":
        return csv_rows.read(row)
    read = next((read for knows, read in _FORMATS if knows(row.values)), None)
    if read is None:
        raise InputError(f"{row.where}: no format that is known here; give {_KNOWN}")
    return read(row)


__all__ = ["Given", "read_measurements"]
