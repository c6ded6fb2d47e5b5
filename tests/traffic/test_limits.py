"""Limits: how they are read, and what a run must show to keep them."""

import math

import numpy as np
import pytest

from slicewise.errors import InputError
from slicewise.traffic.limits import Limit, Verdict, keeps, parse_limit
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import Outcome


@pytest.mark.parametrize(
    ("text", "flag", "limit"),
    [
        ("p95:2s", "--ttft", ("ttft", "p95", 2.0)),
        ("p99:50ms", "--tpot", ("tpot", "p99", 0.05)),
        ("P50: 1.5 s", "--e2e", ("end_to_end", "p50", 1.5)),
        ("mean:1min", "--end-to-end", ("end_to_end", "mean", 60.0)),
        ("150ms", "--itl", ("itl", "p99", 0.15)),
    ],
)
def test_limits_are_read(text: str, flag: str, limit: tuple[str, str, float]) -> None:
    found = parse_limit(text, flag)
    assert (found.metric, found.at, found.seconds) == limit
    assert parse_limit(f"{found.at}:{found.seconds}s", flag) == found


@pytest.mark.parametrize(
    ("text", "flag", "says"),
    [
        ("p95:2", "--ttft", "--ttft: '2' has no unit"),
        ("p95:", "--ttft", "--ttft: '' is not a quantity"),
        ("p95:0s", "--tpot", "must be greater than 0"),
        ("p95:-1s", "--tpot", "must be greater than 0"),
        ("p42:2s", "--ttft", "--ttft: 'p42' is no statistic; choose mean, p50, p90, p95, p99"),
        (":2s", "--ttft", "'' is no statistic"),
        ("p95:2s", "--speed", "not on 'speed'"),
    ],
)
def test_what_is_no_limit_is_refused(text: str, flag: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_limit(text, flag)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_a_limit_is_a_time_above_zero(seconds: float) -> None:
    with pytest.raises(InputError, match="no time above 0"):
        Limit(metric="ttft", at="p50", seconds=seconds)
    with pytest.raises(InputError, match="no statistic"):
        Limit(metric="ttft", at="most", seconds=1.0)


def run(rows: list[tuple[float, int, float, float]]) -> tuple[Requests, Outcome]:
    """Of rows of arrival, output tokens, first token and finish; nan where it was dropped."""
    arrival, output, first, finish = (np.array(column) for column in zip(*rows, strict=True))
    n, kept = len(rows), np.isfinite(finish)
    none = np.zeros(n, np.int64)
    outcome = Outcome(
        server=np.where(kept, 0, -1), start_s=first, first_token_s=first, finish_s=finish, preemptions=none,
        cached_tokens=none,
    )  # fmt: skip
    return Requests(arrival_s=arrival, prompt_tokens=none + 9, output_tokens=output), outcome


TEN = [(float(at), 11, at + 1.0 + at / 10, at + 6.0 + at / 10) for at in range(10)]


def told(limits: list[str], rows: list[tuple[float, int, float, float]], warm_up_s: float = 0.0) -> Verdict:
    read = [parse_limit(text, flag) for flag, text in (limit.split("=") for limit in limits)]
    return keeps(read, *run(rows), warm_up_s)


def test_a_limit_is_kept_at_the_statistic_and_broken_below() -> None:
    # TTFT from 1.0 to 1.9 s, TPOT 0.5 s each, end-to-end from 6.0 to 6.9 s.
    ttft_s = [first - arrival for arrival, _, first, _ in TEN]
    for at, value in {"mean": np.mean(ttft_s), "p50": np.median(ttft_s), "p90": np.percentile(ttft_s, 90)}.items():
        assert told([f"--ttft={at}:{value + 1e-9:.12f}s"], TEN).kept
        broken = told([f"--ttft={at}:{value - 1e-9:.12f}s"], TEN)
        assert not broken.kept
        assert broken.checks[0].seconds == pytest.approx(value, rel=1e-12)
    assert told(["--tpot=p99:500.1ms", "--end-to-end=p99:6.9s"], TEN).kept


def test_the_reasons_say_which_limits_broke_and_by_how_much() -> None:
    found = told(["--ttft=p50:1.2s", "--tpot=p99:600ms", "--e2e=mean:6s"], TEN)
    assert [check.kept for check in found.checks] == [False, True, False]
    assert found.reasons == (
        "TTFT p50 is 1.45 s, over 1.2 s by 250 ms",
        "end-to-end mean is 6.45 s, over 6 s by 450 ms",
    )
    assert found.to_dict()["reasons"] == list(found.reasons)
    assert found.to_dict()["checks"][1] == {
        "metric": "tpot", "at": "p99", "value_s": pytest.approx(0.5), "limit_s": 0.6, "is_kept": True,
    }  # fmt: skip


def test_the_warm_up_does_not_count() -> None:
    slow_start = [(0.0, 2, 9.0, 9.5), *TEN[1:]]
    assert not told(["--ttft=p99:2s"], slow_start).kept
    assert told(["--ttft=p99:2s"], slow_start, warm_up_s=0.5).kept


def test_what_is_dropped_breaks_every_limit() -> None:
    rows = [(0.0, 2, math.nan, math.nan), *TEN[1:]]
    # Also where it arrives in the warm-up.
    for warm_up_s in (0.0, 0.5):
        found = told(["--ttft=p50:1h"], rows, warm_up_s)
        assert found.checks[0].kept
        assert not found.kept
        assert found.reasons == ("1 of 10 requests are dropped, as they fit no server",)


def test_without_a_second_token_there_is_no_gap_that_is_too_long() -> None:
    rows = [(0.0, 1, 1.0, 1.0), (1.0, 1, 2.0, 2.0)]
    assert told(["--tpot=p99:1ms", "--itl=p99:1ms", "--ttft=p99:1s"], rows).kept


def test_a_run_that_finished_nothing_keeps_no_limit() -> None:
    found = told(["--ttft=p50:1h", "--tpot=p50:1h"], [(0.0, 5, math.nan, math.nan)])
    assert [check.kept for check in found.checks] == [False, False]
    assert found.reasons[1] == "TTFT p50 is not known, as no request finished"
