"""Rows and requests that are off, from the file to the metrics: refused, or dropped and counted, and never lost."""

from pathlib import Path

import numpy as np
import pytest

from slicewise.errors import InputError
from slicewise.traffic.engine import simulate
from slicewise.traffic.fleets import Fleet, PrefillPool, outcome_of
from slicewise.traffic.metrics import Metrics, metrics
from slicewise.traffic.read import read_trace
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import POLICIES, Outcome, Policy, Server
from slicewise.traffic.times import Times

HEADER = "arrival,prompt,output\n"


def server_of(kind: str, room_tokens: int = 1000) -> Server:
    """Prompts of up to 5,000 tokens have a time; the cache holds so many tokens."""
    times = Times(knots=np.array([0.0, 1e4]), steps_s=np.full((9, 2), 0.01), prefills_s=1e-4 * np.arange(5001.0))
    return Server(times=times, n_blocks=room_tokens // 16, policy=Policy(kind=kind, max_num_seqs=8))


def read(folder: Path, rows: str) -> Requests:
    path = folder / "t.csv"
    path.write_text(HEADER + rows, encoding="utf-8")
    return read_trace(path)


def told(requests: Requests, outcome: Outcome) -> Metrics:
    return metrics(requests, outcome, n_chips=1, usd_per_hour=None, ttft_s=1e9)


@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("kind", POLICIES)
def test_every_row_is_a_request_that_ends_or_is_counted_as_dropped(tmp_path: Path, kind: str, is_split: bool) -> None:
    rows = [
        ("5,100,10", "finished"),
        ("1,100,10", "finished"),  # unsorted: it is served in order of its arrival
        ("2,0,10", "an empty prompt"),
        ("2,100,0", "no tokens to generate"),
        ("2,0,0", "no tokens to generate"),
        ("3,2000,10", "dropped"),  # longer than the cache
        ("3,900,200", "dropped"),  # which it outgrows
        ("3,1000000000,1", "dropped"),  # huge
        ("3,1,1000000000", "dropped"),
        ("4,900,50", "finished"),
        ("4,1,1", "finished"),
    ]
    requests = read(tmp_path, "\n".join(row for row, _ in rows))
    fate = [what for _, what in rows]
    counted = {reason: fate.count(reason) for reason in ("no tokens to generate", "an empty prompt")}
    assert dict(requests.dropped) == counted
    assert len(requests) + sum(counted.values()) == len(rows)
    server = server_of(kind)
    pool = PrefillPool(
        n_servers=1, prefills_s=server.times.prefills_s, handoff_s_per_token=0.0, n_chips=1, usd_per_hour=None
    )
    outcome = outcome_of(requests, Fleet(server=server, n_servers=2, prefill=pool if is_split else None))
    found = told(requests, outcome)
    assert (found.finished, found.dropped) == (fate.count("finished"), fate.count("dropped"))
    assert found.arrived == found.finished + found.dropped == len(requests)
    # A dropped request keeps no limit, however wide.
    assert (found.good, found.goodput_share) == (found.finished, found.finished / found.arrived)
    kept = outcome.server >= 0
    for times_s in (outcome.start_s, outcome.first_token_s, outcome.finish_s):
        assert (np.isfinite(times_s) == kept).all()
    assert (outcome.start_s >= requests.arrival_s)[kept].all()
    assert requests.arrival_s.tolist() == sorted(requests.arrival_s)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("yesterday,1,1", "line 3, column arrival: 'yesterday' is no time; write seconds"),
        ("-1,1,1", "line 3, column arrival: -1.0 is below 0"),
        ("1,-1,1", "line 3, column prompt: -1.0 is below 0"),
        ("1,1,-1", "line 3, column output: -1.0 is below 0"),
        ("1,1,1000000001", "line 3, column output: 1000000001.0 is more than 1,000,000,000"),
    ],
)
def test_a_row_that_no_server_could_have_seen_is_refused_with_its_line(tmp_path: Path, row: str, expected: str) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, f"0,1,1\n{row}\n2,1,1")
    assert expected in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("rows", "expected"), [("", "has no row below its header"), ("0,0,1\n1,1,0", "no row is a request")]
)
def test_an_empty_trace_is_refused(tmp_path: Path, rows: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        read(tmp_path, rows)


@pytest.mark.parametrize("kind", POLICIES)
def test_a_cache_that_holds_no_request_drops_all_and_says_so(tmp_path: Path, kind: str) -> None:
    requests = read(tmp_path, "0,100,10\n1,200,10")
    found = told(requests, simulate(requests, server_of(kind, room_tokens=16)))
    assert (found.arrived, found.finished, found.dropped, found.ttft_s) == (2, 0, 2, None)


@pytest.mark.parametrize("kind", POLICIES)
def test_the_order_of_rows_is_no_matter(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{at / 8},{prompt},{output}" for at, (prompt, output) in enumerate(rng.integers(1, 400, (60, 2)))]
    in_order = read(tmp_path, "\n".join(rows))
    mixed = read(tmp_path, "\n".join(rng.permutation(rows)))
    first, second = (simulate(each, server_of(kind)) for each in (in_order, mixed))
    np.testing.assert_array_equal(first.finish_s, second.finish_s)
