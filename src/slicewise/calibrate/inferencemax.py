"""Results of InferenceMAX, since called InferenceX: an object a run, or a list of them, with times in seconds.

Keys as utils/process_result.py writes them: first (`hw`, `tp`, `ep`, `dp_attention`, `conc`, `model`, `framework`,
`precision`, `mtp`), and later with more (`isl`, `osl`, `pp`, `dcp_size`, `pcp_size`, `spec_decoding`, `disagg`,
`is_multinode`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slicewise.calibrate.measurement import DECODE
from slicewise.calibrate.row import Row
from slicewise.calibrate.served import SPECULATIVE, SPLIT, crowd, served_model, sifted
from slicewise.calibrate.stated import AUTO, Sifted, Stated, dtype, slice_name
from slicewise.errors import InputError

NODES = "several nodes: how their ranks share the work is not stated"
REPLICATED = "attention data-parallel: one request keeps one of its ranks busy"
SHARDED_CONTEXT = "context parallelism: no such layout is planned"
_NO = ("", "none", "off", "false")


def is_result(keys: Mapping[str, Any]) -> bool:
    """Whether it is such a result."""
    return "conc" in keys and any(name in keys for name in ("hw", "tput_per_gpu", "infmax_model_prefix"))


def read(row: Row) -> Sifted:
    """The decode step and the prefill of one prompt, from a run with one request at a time.

    Raises:
        InputError: a value is off.
    """
    concurrency = row.whole("conc", 1, "1")
    if concurrency != 1:
        return crowd(concurrency)
    why = _unplanned(row)
    if why:
        return Sifted(left_out=(why,))
    found = sifted(_about(row), _time(row, "ttft"), _time(row, "tpot"))
    if not _is_speculative(row):
        return found
    kept = tuple(one for one in found.stated if one.phase != DECODE)
    return Sifted(stated=kept, left_out=(*found.left_out, *(SPECULATIVE,) * (len(found.stated) - len(kept))))


def _unplanned(row: Row) -> str:
    """Why no layout of the planner is that of the run; "" where one is."""
    if row.truth("disagg"):
        return SPLIT
    if row.truth("is_multinode"):
        return NODES
    if row.truth("dp_attention"):
        return REPLICATED
    return SHARDED_CONTEXT if max(_degree(row, name) for name in ("dcp_size", "pcp_size")) > 1 else ""


def _is_speculative(row: Row) -> bool:
    return any((row.text(name) or "").lower() not in _NO for name in ("spec_decoding", "mtp"))


def _about(row: Row) -> Stated:
    model, loose = served_model(row.text("model"))
    return Stated(
        where=row.where,
        phase=DECODE,
        seconds=0.0,
        model=model,
        slice=_slice(row),
        weights=_precision(row),
        prompt_tokens=row.whole("isl", 1, "1024"),
        output_tokens=row.whole("osl", 1, "1024"),
        layout={name: _degree(row, name) for name in ("tp", "pp", "ep") if row.states(name)},
        engine=(row.text("framework") or "").lower() or None,
        loose=loose,
    )


def _degree(row: Row, name: str) -> int:
    return row.whole(name, 1, "8") or 1


def _time(row: Row, name: str) -> float | None:
    """A median time, or the mean where there is none. [s]"""
    median = row.measured(f"median_{name}")
    return row.measured(f"mean_{name}") if median is None else median


def _precision(row: Row) -> str | None:
    word = row.text("precision")
    weights = AUTO if word is None else dtype(word[:40], row.what("precision"))
    return None if weights == AUTO else weights


def _slice(row: Row) -> str | None:
    """The slice of the machine's name and the ranks, such as h200-cw and 8; None where the catalog has none."""
    hardware = row.text("hw")
    if hardware is None or not row.states("tp"):
        return None
    try:
        return slice_name(f"{hardware.lower().partition('-')[0]}:{_degree(row, 'tp') * _degree(row, 'pp')}")
    except InputError:
        return None
