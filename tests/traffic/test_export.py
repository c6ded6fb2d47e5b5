"""The formats of others: read back by what reads them."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slicewise.calibrate import aiperf
from slicewise.calibrate.read import Given, read_measurements
from slicewise.calibrate.served import OPEN
from slicewise.errors import InputError
from slicewise.traffic.export import aiperf_json, chrome_trace, per_request_csv
from slicewise.traffic.metrics import metrics
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import Outcome

NAN = math.nan
REQUESTS = Requests(
    arrival_s=np.array([0.0, 1.0, 2.0, 4.0]),
    prompt_tokens=np.array([100, 200, 9999, 300]),
    output_tokens=np.array([11, 21, 99, 1]),
)
OUTCOME = Outcome(
    server=np.array([0, 1, -1, 0]),
    start_s=np.array([0.0, 1.5, NAN, 4.25]),
    first_token_s=np.array([1.0, 3.0, NAN, 4.5]),
    finish_s=np.array([3.0, 4.0, NAN, 4.5]),
    preemptions=np.array([0, 1, 0, 0]),
    cached_tokens=np.array([0, 64, 0, 0]),
)
METRICS = metrics(REQUESTS, OUTCOME, n_chips=8, usd_per_hour=None, ttft_s=1.0, tpot_s=1.0)


def test_the_table_has_a_row_a_request_and_empty_cells_for_the_dropped() -> None:
    rows = list(csv.DictReader(io.StringIO(per_request_csv(REQUESTS, OUTCOME))))
    assert len(rows) == 4
    assert rows[1] == {
        "arrival_s": "1.0", "prompt_tokens": "200", "output_tokens": "21", "server": "1", "start_s": "1.5",
        "first_token_s": "3.0", "finish_s": "4.0", "queueing_s": "0.5", "ttft_s": "2.0", "tpot_s": "0.05",
        "end_to_end_s": "3.0", "preemptions": "1", "cached_tokens": "64",
    }  # fmt: skip
    given = {"arrival_s", "prompt_tokens", "output_tokens"}
    assert {name for name, cell in rows[2].items() if cell} == given
    assert {name for name, cell in rows[3].items() if not cell} == {"tpot_s"}


def test_a_table_of_no_requests_is_its_header() -> None:
    nothing, none = np.zeros(0), np.zeros(0, int)
    requests = Requests(arrival_s=nothing, prompt_tokens=none, output_tokens=none)
    outcome = Outcome(
        server=none, start_s=nothing, first_token_s=nothing, finish_s=nothing, preemptions=none, cached_tokens=none
    )
    assert per_request_csv(requests, outcome).count("\n") == 1
    assert chrome_trace(requests, outcome)["traceEvents"] == []


def test_aiperf_writes_milliseconds_and_rates_of_the_whole_run() -> None:
    found = aiperf_json(METRICS)
    first = found["time_to_first_token"]
    assert list(first) == ["unit", "avg", "p50", "p90", "p95", "p99", "max"]
    assert first["unit"] == "ms"
    assert first["avg"] == pytest.approx(3500 / 3)
    assert (first["p50"], first["max"]) == (1000.0, 2000.0)
    assert found["inter_token_latency"]["avg"] == pytest.approx(125.0)
    assert found["request_latency"]["max"] == 3000.0
    assert found["request_throughput"] == {"unit": "requests/sec", "avg": 3 / 4.5}
    assert found["output_token_throughput"] == {"unit": "tokens/sec", "avg": 33 / 4.5}
    assert found["benchmark_duration"] == {"unit": "sec", "avg": 4.5}
    assert found["request_count"]["avg"] == 3
    assert found["error_request_count"]["avg"] == 1
    assert found["good_request_count"]["avg"] == 2
    assert found["goodput"]["avg"] == pytest.approx(2 / 4.5)
    assert (found["input_sequence_length"]["avg"], found["output_sequence_length"]["avg"]) == (200.0, 11.0)
    json.dumps(found, allow_nan=False)


def test_what_is_not_known_is_absent() -> None:
    dropped = Outcome(
        server=np.array([-1]),
        start_s=np.array([NAN]),
        first_token_s=np.array([NAN]),
        finish_s=np.array([NAN]),
        preemptions=np.array([0]),
        cached_tokens=np.array([0]),
    )
    alone = Requests(arrival_s=np.zeros(1), prompt_tokens=np.ones(1, int), output_tokens=np.ones(1, int))
    found = aiperf_json(metrics(alone, dropped, n_chips=1, usd_per_hour=None))
    assert not {"time_to_first_token", "inter_token_latency", "request_latency", "goodput"} & set(found)
    assert found["error_request_count"]["avg"] == 1
    json.dumps(found, allow_nan=False)


def test_what_reads_aiperf_knows_it_and_takes_it_for_no_measurement(tmp_path: Path) -> None:
    found = aiperf_json(METRICS)
    assert aiperf.is_export(found)
    path = tmp_path / "profile_export_aiperf.json"
    path.write_text(json.dumps(found))
    given = Given(slice="h200:1", weights="bf16", kv="bf16", model="llama-3-8b")
    reading = read_measurements(path, given)
    assert not reading.measurements
    assert reading.left_out == {OPEN: 1}


def slices(trace: dict[str, Any]) -> dict[int, dict[str, tuple[float, float]]]:
    """Begin and end of each slice by request and name; every one that begins must end, inside out."""
    found: dict[int, dict[str, tuple[float, float]]] = {}
    stacks: dict[int, list[tuple[str, float]]] = {}
    last: dict[int, float] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            continue
        number, ts = event["id"], event["ts"]
        assert ts >= last.get(number, -1.0)
        last[number] = ts
        if event["ph"] == "b":
            stacks.setdefault(number, []).append((event["name"], ts))
        else:
            name, begun = stacks[number].pop()
            assert (event["ph"], event["name"]) == ("e", name)
            found.setdefault(number, {})[name] = (begun, ts)
    assert not any(stacks.values())
    return found


def test_a_trace_has_a_process_a_server_and_the_stages_of_each_request() -> None:
    trace = chrome_trace(REQUESTS, OUTCOME)
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert names == {1: "server 0", 2: "server 1"}
    found = slices(trace)
    assert set(found) == {0, 1, 3}
    assert found[1] == {
        name: pytest.approx(times)
        for name, times in {
            "request": (1e6, 4e6), "queued": (1e6, 1.5e6), "prefill": (1.5e6, 3e6), "decode": (3e6, 4e6)
        }.items()
    }  # fmt: skip
    # No stage without time: the first did not wait, the last has one token.
    assert set(found[0]) == {"request", "prefill", "decode"}
    assert set(found[3]) == {"request", "queued", "prefill"}
    pids = {event["id"]: event["pid"] for event in trace["traceEvents"] if event["ph"] != "M"}
    assert pids == {0: 1, 1: 2, 3: 1}
    args = next(event["args"] for event in trace["traceEvents"] if event.get("id") == 1 and "args" in event)
    assert args == {"request": 1, "prompt_tokens": 200, "output_tokens": 21, "cached_tokens": 64, "preemptions": 1}
    json.dumps(trace, allow_nan=False)


def test_a_trace_shows_so_many_and_says_so() -> None:
    trace = chrome_trace(REQUESTS, OUTCOME, most=2)
    assert set(slices(trace)) == {0, 1}
    assert trace["otherData"] == {"requests_shown": 2, "requests_served": 3}
    with pytest.raises(InputError, match="most: 0 must be at least 1"):
        chrome_trace(REQUESTS, OUTCOME, most=0)
