"""Writes a simulated run to files: charts, a row a request, AIPerf's summary, or a timeline for Perfetto."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from slicewise.report.figures import SUFFIXES, checked_suffix, pictures, vl_convert_module, write_files
from slicewise.report.frame import Spec
from slicewise.report.traffic_charts import cdf_spec, over_time_spec
from slicewise.report.views.simulate import fleet_words
from slicewise.traffic.export import aiperf_json, chrome_trace, per_request_csv
from slicewise.traffic.metrics import tpots_s
from slicewise.traffic.series import series
from slicewise.traffic.simulation import Simulation

TRACES = (".json", ".trace")


def check_out(path: Path) -> str:
    """The suffix of a file that `write_run` can write.

    Raises:
        InputError: an unknown suffix, a place that cannot be written, or vl-convert is not installed.
    """
    suffix = checked_suffix(path, SUFFIXES)
    if suffix not in (".csv", ".json"):
        vl_convert_module()
    return suffix


def check_timeline(path: Path) -> None:
    """Refuse a file that `write_timeline` cannot write; those that it can end in .json or .trace.

    Raises:
        InputError: an unknown suffix, or a place that cannot be written.
    """
    checked_suffix(path, TRACES)


def write_run(path: Path, found: Simulation) -> list[Path]:
    """Write what the suffix asks for: .html, .svg and .png charts, .csv a row a request, .json AIPerf's summary.

    Returns:
        The files written.

    Raises:
        InputError: an unknown suffix, a place that cannot be written, or vl-convert is not installed.
    """
    suffix = check_out(path)
    assert found.outcome is not None
    assert found.metrics is not None
    if suffix == ".csv":
        contents = {path: per_request_csv(found.load.first(len(found.outcome)), found.outcome).encode()}
    elif suffix == ".json":
        contents = {path: (json.dumps(aiperf_json(found.metrics), indent=2) + "\n").encode()}
    else:
        contents = pictures(path, run_specs(found))
    return write_files(contents)


def write_timeline(path: Path, found: Simulation) -> Path:
    """Write a timeline of the requests in the Trace Event Format, which Perfetto opens.

    Raises:
        InputError: the suffix is neither .json nor .trace, or the place cannot be written.
    """
    check_timeline(path)
    assert found.outcome is not None
    trace = chrome_trace(found.load.first(len(found.outcome)), found.outcome)
    write_files({path: json.dumps(trace).encode()})
    return path


def run_specs(found: Simulation) -> dict[str, Spec]:
    """The charts of a run by name: latencies, requests over time, rates over time; no time, no charts of it."""
    outcome = found.outcome
    assert outcome is not None
    load = found.load.first(len(outcome))
    latencies = {
        "TTFT": outcome.first_token_s - load.arrival_s,
        "TPOT": tpots_s(load, outcome),
        "end to end": outcome.finish_s - load.arrival_s,
    }
    kept = load.arrival_s >= (found.metrics.warm_up_s if found.metrics else 0.0)
    limits = {check.limit.text: check.limit.seconds for check in found.verdict.checks} if found.verdict else {}
    counted = {name: np.where(kept, values, np.nan) for name, values in latencies.items()}
    title = f"Latencies of {fleet_words(found)}"
    specs = {"latency": cdf_spec(counted, title=title, subtitle=f"{found.requests.source}.", limits=limits)}
    columns = series(load, outcome)
    if columns["time_s"]:
        queue = {"queued": "waiting", "running": "in work"}
        rates = {"arrivals_per_s": "arriving", "finished_per_s": "finishing"}
        specs["queue"] = over_time_spec(columns, queue, title="Requests in the system", unit="Requests")
        specs["rates"] = over_time_spec(columns, rates, title="Requests that come and go", unit="Requests/s")
    return specs
