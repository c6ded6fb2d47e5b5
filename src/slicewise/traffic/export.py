"""A run in the formats of others: a table of requests, AIPerf's export, and a trace for Perfetto."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.errors import InputError
from slicewise.traffic.metrics import Metrics, tpots_s
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import Outcome
from slicewise.traffic.summary import Summary
from slicewise.units import MS, US

_CATEGORY = "request"
_STAGES = ("queued", "prefill", "decode")


def per_request_csv(requests: Requests, outcome: Outcome) -> str:
    """One row a request, in the order of arrival; base units; a cell is empty where there is no such value."""
    kept = outcome.server >= 0
    columns: dict[str, list[Any]] = {
        "arrival_s": requests.arrival_s.tolist(),
        "prompt_tokens": requests.prompt_tokens.tolist(),
        "output_tokens": requests.output_tokens.tolist(),
        "server": _cells(outcome.server, kept),
    }
    times = {
        "start_s": outcome.start_s,
        "first_token_s": outcome.first_token_s,
        "finish_s": outcome.finish_s,
        "queueing_s": outcome.start_s - requests.arrival_s,
        "ttft_s": outcome.first_token_s - requests.arrival_s,
        "tpot_s": tpots_s(requests, outcome),
        "end_to_end_s": outcome.finish_s - requests.arrival_s,
    }
    columns |= {name: _cells(times_s, np.isfinite(times_s)) for name, times_s in times.items()}
    columns |= {name: _cells(getattr(outcome, name), kept) for name in ("preemptions", "cached_tokens")}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def _cells(values: NDArray[Any], is_there: NDArray[np.bool_]) -> list[Any]:
    return [value if told else "" for value, told in zip(values.tolist(), is_there.tolist(), strict=True)]


def aiperf_json(metrics: Metrics) -> dict[str, Any]:
    """The metrics under the names and in the units of AIPerf's `profile_export_aiperf.json` (schema 1.0).

    Rates are over the whole run, as AIPerf takes them. What is not known here is absent, as AIPerf has it: smallest
    values and deviations, the per-user rate of each request, and the configuration, so that nobody takes the file for
    a measurement of a known load. A dropped request counts as an error.
    """
    found = {
        "request_throughput": _one("requests/sec", metrics.run_requests_per_s),
        "request_latency": _milliseconds(metrics.end_to_end_s),
        "request_count": _one("requests", metrics.finished),
        "time_to_first_token": _milliseconds(metrics.ttft_s),
        "inter_token_latency": _milliseconds(metrics.tpot_s),
        "output_token_throughput": _one("tokens/sec", metrics.run_output_tokens_per_s),
        "total_token_throughput": _one("tokens/sec", metrics.run_total_tokens_per_s),
        "output_sequence_length": _mean(metrics.output_tokens, metrics.finished),
        "input_sequence_length": _mean(metrics.prompt_tokens, metrics.finished),
        "goodput": _one("requests/sec", metrics.run_goodput_requests_per_s),
        "good_request_count": _one("requests", metrics.good),
        "error_request_count": _one("requests", metrics.dropped or None),
        "benchmark_duration": _one("sec", metrics.duration_s),
        "total_isl": _one("tokens", metrics.prompt_tokens),
        "total_osl": _one("tokens", metrics.output_tokens),
    }
    return {"schema_version": "1.0", **{name: value for name, value in found.items() if value is not None}}


def _one(unit: str, value: float | None) -> dict[str, Any] | None:
    """A metric that is a single number, which AIPerf calls its average."""
    return None if value is None else {"unit": unit, "avg": float(value)}


def _mean(tokens: int, n_requests: int) -> dict[str, Any] | None:
    return _one("tokens", tokens / n_requests) if n_requests else None


def _milliseconds(time: Summary | None) -> dict[str, Any] | None:
    """A time of each request. [ms]"""
    if time is None:
        return None
    values = {"avg": time.mean, "p50": time.p50, "p90": time.p90, "p95": time.p95, "p99": time.p99, "max": time.most}
    return {"unit": "ms", **{name: value / MS for name, value in values.items()}}


def chrome_trace(requests: Requests, outcome: Outcome, most: int = 2000) -> dict[str, Any]:
    """The first requests that were served, as a trace in the Trace Event Format, which Perfetto opens.

    A server is a process with one track, on which a request is a slice with its stages inside: queued, prefill (until
    the first token) and decode. Requests overlap, which slices of a thread must not: these are asynchronous ones,
    paired by their number. What a preemption costs is in the stage that it falls into. Times are in µs.

    Args:
        requests: as they arrived.
        outcome: what became of them.
        most: so many are shown; `otherData` says of how many.

    Raises:
        InputError: fewer than one request is to be shown.
    """
    if most < 1:
        raise InputError(f"most: {most} must be at least 1; write for example 2000")
    kept = np.flatnonzero(np.isfinite(outcome.finish_s))
    shown = kept[:most]
    times = np.column_stack([requests.arrival_s, outcome.start_s, outcome.first_token_s, outcome.finish_s])[shown] / US
    # Process 0 is the idle one to Perfetto.
    pids = outcome.server[shown] + 1
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": pid, "args": {"name": f"server {pid - 1}"}}
        for pid in np.unique(pids).tolist()
    ]
    for number, pid, marks in zip(shown.tolist(), pids.tolist(), times.tolist(), strict=True):
        args = {
            "prompt_tokens": int(requests.prompt_tokens[number]),
            "output_tokens": int(requests.output_tokens[number]),
            "cached_tokens": int(outcome.cached_tokens[number]),
            "preemptions": int(outcome.preemptions[number]),
        }
        events += _slices(number, pid, marks, args)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"requests_shown": len(shown), "requests_served": len(kept)},
    }


def _slices(number: int, pid: int, marks: list[float], args: dict[str, int]) -> list[dict[str, Any]]:
    """The events of a request whose stages lie between the marks; a stage that takes no time is left out. [µs]"""
    same = {"cat": _CATEGORY, "id": number, "pid": pid, "tid": pid}
    stages = [
        {"ph": phase, "name": stage, "ts": ts, **same}
        for stage, begin, end in zip(_STAGES, marks, marks[1:], strict=False)
        if end > begin
        for phase, ts in (("b", begin), ("e", end))
    ]
    whole = {"name": _CATEGORY, **same}
    return [
        {"ph": "b", "ts": marks[0], **whole, "args": {"request": number, **args}},
        *stages,
        {"ph": "e", "ts": marks[-1], **whole},
    ]
