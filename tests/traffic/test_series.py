"""Columns over time against a count by hand and against brute force."""

import json
import math
import time
from itertools import pairwise

import numpy as np
import pytest

from slicewise.errors import InputError
from slicewise.traffic.requests import Requests
from slicewise.traffic.series import COLUMNS, series
from slicewise.traffic.server import Outcome

NAN = math.nan


def made(arrival: list[float], start: list[float], finish: list[float]) -> tuple[Requests, Outcome]:
    n = len(arrival)
    begin, end = np.array(start), np.array(finish)
    ones = np.ones(n, int)
    return Requests(arrival_s=np.array(arrival), prompt_tokens=ones, output_tokens=ones), Outcome(
        server=np.where(np.isfinite(end), 0, -1),
        start_s=begin,
        first_token_s=end,
        finish_s=end,
        preemptions=0 * ones,
        cached_tokens=0 * ones,
    )


def test_a_small_run_by_hand() -> None:
    # The third is dropped: it arrives, and that is all.
    run = made([2.0, 2.5, 3.0, 5.0], [2.0, 4.0, NAN, 5.5], [4.0, 6.0, NAN, 10.0])
    found = series(*run, n_bins=4)
    assert list(found) == list(COLUMNS)
    assert found["time_s"] == [3.0, 5.0, 7.0, 9.0]
    assert found["queued"] == [0.75, 0.25, 0.0, 0.0]
    assert found["running"] == [1.0, 1.25, 1.0, 1.0]
    assert found["arrivals_per_s"] == [1.5, 0.5, 0.0, 0.0]
    # What happens at an edge belongs to the bin that begins there, and the end to the last.
    assert found["finished_per_s"] == [0.0, 0.5, 0.5, 0.5]


def test_the_columns_are_those_of_brute_force() -> None:
    rng = np.random.default_rng(3)
    n, n_bins = 300, 37
    arrival = np.cumsum(rng.exponential(0.3, n)) + 17.0
    start = arrival + rng.exponential(2.0, n)
    finish = start + rng.exponential(5.0, n)
    found = series(*made(arrival.tolist(), start.tolist(), finish.tolist()), n_bins=n_bins)
    edges = np.linspace(arrival[0], finish.max(), n_bins + 1)
    for k, (low, high) in enumerate(pairwise(edges)):

        def spent(begin: np.ndarray, end: np.ndarray, low: float = low, high: float = high) -> float:
            return float(np.maximum(np.minimum(end, high) - np.maximum(begin, low), 0).sum() / (high - low))

        assert found["queued"][k] == pytest.approx(spent(arrival, start), abs=1e-9)
        assert found["running"][k] == pytest.approx(spent(start, finish), abs=1e-9)
    bin_s = edges[1] - edges[0]
    assert sum(found["queued"]) * bin_s == pytest.approx((start - arrival).sum())
    assert sum(found["running"]) * bin_s == pytest.approx((finish - start).sum())
    assert sum(found["arrivals_per_s"]) * bin_s == pytest.approx(n)
    assert sum(found["finished_per_s"]) * bin_s == pytest.approx(n)
    assert min(found["queued"] + found["running"]) >= 0
    json.dumps(found, allow_nan=False)


def test_no_time_is_no_columns() -> None:
    nothing = {name: [] for name in COLUMNS}
    assert series(*made([], [], [])) == nothing
    assert series(*made([3.0], [NAN], [NAN])) == nothing
    dropped = series(*made([3.0, 5.0], [NAN, NAN], [NAN, NAN]), n_bins=2)
    assert dropped["arrivals_per_s"] == [1.0, 1.0]
    assert dropped["queued"] == dropped["running"] == dropped["finished_per_s"] == [0.0, 0.0]


def test_a_series_has_a_bin() -> None:
    with pytest.raises(InputError, match="bins: 0 must be at least 1"):
        series(*made([0.0], [0.0], [1.0]), n_bins=0)
    whole = series(*made([0.0], [1.0], [4.0]), n_bins=1)
    assert whole == {
        "time_s": [2.0], "queued": [0.25], "running": [0.75], "finished_per_s": [0.25], "arrivals_per_s": [0.25]
    }  # fmt: skip


def test_a_million_requests_take_about_a_second() -> None:
    n = 1_000_000
    rng = np.random.default_rng(5)
    arrival = np.cumsum(rng.exponential(0.01, n))
    start = arrival + rng.exponential(1.0, n)
    ones = np.ones(n, int)
    requests = Requests(arrival_s=arrival, prompt_tokens=ones, output_tokens=ones)
    outcome = Outcome(
        server=0 * ones, start_s=start, first_token_s=start, finish_s=start + 1.0, preemptions=0 * ones,
        cached_tokens=0 * ones,
    )  # fmt: skip
    began = time.perf_counter()
    found = series(requests, outcome)
    assert time.perf_counter() - began < 5
    assert np.mean(found["running"]) == pytest.approx(100, rel=0.01)
