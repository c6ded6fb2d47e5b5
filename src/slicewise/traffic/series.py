"""A run over time: who waits, who is served, what comes and what goes, in bins of equal length."""

from __future__ import annotations

import numpy as np

from slicewise.errors import InputError
from slicewise.traffic.requests import Floats, Ints, Requests
from slicewise.traffic.server import Outcome

COLUMNS = ("time_s", "queued", "running", "finished_per_s", "arrivals_per_s")


def series(requests: Requests, outcome: Outcome, n_bins: int = 200) -> dict[str, list[float]]:
    """Columns over time, from the first arrival to the last finish or arrival; empty where no time passes.

    `queued` (arrived, not started) and `running` (started, not finished) are averages over a bin, so that no burst
    falls between two samples: summed over bins, times a bin's length, they are the time that requests waited and ran.
    A preempted request runs on, as it were. Dropped requests arrive, but neither wait nor run.

    Args:
        requests: as they arrived.
        outcome: what became of them.
        n_bins: how many bins.

    Returns:
        `time_s` the middle of each bin, `queued`, `running`, `finished_per_s`, `arrivals_per_s`.

    Raises:
        InputError: fewer than one bin.
    """
    if n_bins < 1:
        raise InputError(f"bins: {n_bins} must be at least 1; write for example 200")
    done = np.isfinite(outcome.finish_s)
    arrival_s, finish_s = requests.arrival_s, outcome.finish_s[done]
    first_s = float(arrival_s[0]) if len(requests) else 0.0
    last_s = max((float(times.max()) for times in (arrival_s, finish_s) if len(times)), default=first_s)
    bin_s = (last_s - first_s) / n_bins
    if bin_s <= 0:
        return {name: [] for name in COLUMNS}
    come, begun, gone = ((times_s - first_s) / bin_s for times_s in (arrival_s[done], outcome.start_s[done], finish_s))
    have_come, have_begun, have_gone = (_passed(times, n_bins) for times in (come, begun, gone))
    columns = (
        first_s + bin_s * (np.arange(n_bins) + 0.5),
        # What rounding leaves of nothing is nothing.
        np.maximum(have_come - have_begun, 0.0),
        np.maximum(have_begun - have_gone, 0.0),
        _counts(gone, n_bins) / bin_s,
        _counts((arrival_s - first_s) / bin_s, n_bins) / bin_s,
    )
    return {name: column.tolist() for name, column in zip(COLUMNS, columns, strict=True)}


def _bins(times: Floats, n_bins: int) -> Ints:
    """The bin of each time, in lengths of a bin; the end belongs to the last."""
    return np.minimum(times.astype(np.int64), n_bins - 1)


def _counts(times: Floats, n_bins: int) -> Floats:
    return np.bincount(_bins(times, n_bins), minlength=n_bins).astype(np.float64)


def _passed(times: Floats, n_bins: int) -> Floats:
    """How many of the times have passed, on average over each bin."""
    at = _bins(times, n_bins)
    counts: Ints = np.bincount(at, minlength=n_bins)
    within = np.bincount(at, weights=at + 1 - times, minlength=n_bins)
    return np.asarray(np.cumsum(counts) - counts + within, dtype=np.float64)
