"""Sizing against brute force over all counts, what it refuses, and what it tells when it is stopped."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from helpers.sizes import ASKED, SHAPES, STRICT, limits, shared, split, traffic
from slicewise.errors import InputError
from slicewise.traffic.fleets import outcome_of
from slicewise.traffic.limits import Limit, keeps
from slicewise.traffic.requests import Requests
from slicewise.traffic.shapes import Shape
from slicewise.traffic.size import size
from slicewise.traffic.sizing import Sizing, Tried

MOST = 8


def brute(requests: Requests, shape: Shape, asked: Sequence[Limit], most: int = MOST) -> dict[tuple[int, int], bool]:
    """Whether limits are kept at all counts."""
    prefills = range(1, most + 1) if shape.is_split else (0,)
    return {
        counts: keeps(asked, requests, outcome_of(requests, shape.fleet(*counts))).kept
        for counts in product(range(1, most + 1), prefills)
    }


def cost(shape: Shape, counts: tuple[int, int]) -> float:
    return shape.fleet(*counts).total_usd_per_hour or 0.0


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: " ".join(limit.title for limit in asked))
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("seed", [0, 10, 20])
def test_brute_force_finds_no_cheaper_fleet(seed: int, shape: Shape, asked: list[Limit]) -> None:
    requests = traffic(seed)
    does = brute(requests, shape, asked)
    kept = [counts for counts, is_kept in does.items() if is_kept]
    found = size(requests, [shape], asked, most_servers=MOST)
    assert found.is_whole
    if not kept:
        assert found.best is None
        assert found.answers[0].refused
        return
    best = found.best
    assert best is not None
    assert does[best.n_servers, best.n_prefill]
    assert best.usd_per_hour == min(cost(shape, counts) for counts in kept)
    # One server fewer was run and rejected, for a reason.
    below = {(best.n_servers - 1, best.n_prefill), (best.n_servers, best.n_prefill - 1)} & does.keys()
    assert {(row.n_servers, row.n_prefill) for row in found.answers[0].rejected} == below
    assert all(row.reason for row in found.answers[0].rejected)
    # Rows are what a run of its own tells, each once.
    assert all(row.kept == does[row.n_servers, row.n_prefill] for row in found.tried)
    assert len({(row.n_servers, row.n_prefill) for row in found.tried}) == len(found.tried)


def test_the_brute_force_has_both_kinds_of_answers() -> None:
    answers = [size(traffic(seed), SHAPES, asked, most_servers=MOST).answers for seed in (0, 20) for asked in ASKED]
    counts = {(row.n_servers, row.n_prefill) for each in answers for row in (answer.best for answer in each) if row}
    assert len(counts) >= 6
    assert any(answer.refused for each in answers for answer in each)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_looser_limits_never_cost_more(seed: int) -> None:
    requests = traffic(seed, n=200, rate=12.0, burstiness=0.5)
    costs = []
    for share in (0.6, 1.0, 1.5, 3.0):
        asked = [replace(limit, seconds=limit.seconds * share) for limit in STRICT]
        found = size(requests, SHAPES, asked)
        costs.append([row.usd_per_hour if row else np.inf for row in (found.best, found.best_shared, found.best_split)])
    table = np.array(costs)
    assert (np.diff(table, axis=0) <= 0).all()
    assert (table[0] > table[-1]).any()


def test_the_cheapest_of_all_shapes() -> None:
    found = size(traffic(0), SHAPES, STRICT)
    assert [answer.shape for answer in found.answers] == ["prefill-first", "chunked", "split"]
    best = {answer.shape: answer.best for answer in found.answers}
    prices = {name: row.usd_per_hour for name, row in best.items() if row and row.usd_per_hour}
    assert len(prices) == 3
    assert found.best is best[min(prices, key=lambda name: prices[name])]
    assert found.best_split is best["split"]
    assert found.best_shared in (best["prefill-first"], best["chunked"])


def test_without_a_price_fleets_are_compared_by_chips() -> None:
    # Split, a prefill server is cheap in dollars and dear in chips.
    priced = [shared(usd_per_hour=12.0), split(prefill_usd_per_hour=1.0)]
    unpriced = [shared(usd_per_hour=12.0), split(prefill_usd_per_hour=None)]
    by_price, by_chips = (size(traffic(0), shapes, STRICT) for shapes in (priced, unpriced))
    assert (by_price.has_price, by_chips.has_price) == (True, False)
    assert (by_price.to_dict()["compared_by"], by_chips.to_dict()["compared_by"]) == ("usd_per_hour", "total_chips")
    rows = [answer.best for answer in by_chips.answers if answer.best]
    assert by_chips.best in rows
    assert by_chips.best.total_chips == min(row.total_chips for row in rows)


def told_once(requests: Requests, shapes: Sequence[Shape], asked: Sequence[Limit], **words: int) -> tuple[Sizing, int]:
    rows: list[Tried] = []
    found = size(requests, shapes, asked, progress=rows.append, **words)
    return found, len(rows)


def test_a_limit_below_what_a_request_takes_alone_is_refused_without_a_run() -> None:
    for shape in SHAPES:
        found, n_rows = told_once(traffic(0), [shape], limits("--ttft=p50:20ms"))
        assert (found.best, n_rows) == (None, 0)
        assert found.answers[0].refused.startswith("TTFT p50 is ")
        assert "where no request waits for another, over 20 ms by " in found.answers[0].refused
        assert found.answers[0].refused.endswith("no count of servers helps")


def test_what_no_count_within_bounds_meets_is_refused_with_the_last_reason() -> None:
    burst = replace(traffic(0), arrival_s=np.zeros(120))
    found = size(burst, [shared(), split()], limits("--ttft=p99:700ms"), most_servers=6)
    assert found.answers[0].refused.startswith("TTFT p99 is ")
    assert found.answers[0].refused.endswith(", even with 6 servers")
    assert found.answers[1].refused.endswith(", even with 6 and 6 prefill servers")


@pytest.mark.parametrize("caches", [0, 1])
def test_requests_that_fit_no_server_are_no_fleet_s_fault_to_find(caches: int) -> None:
    small = shared(n_blocks=100, caches_prefixes=caches)
    requests = traffic(0)
    n_dropped = int((-(-(requests.prompt_tokens + requests.output_tokens - 1) // 16) > 100).sum())
    assert n_dropped
    found, n_rows = told_once(requests, [small, replace(shared(), name="large")], limits("--ttft=p95:1h"))
    lost = f"{n_dropped} of 120 requests are dropped, as they fit no server, however many there are"
    assert found.answers[0].refused == lost
    assert found.best is found.answers[1].best
    assert found.best.shape == "large"
    # A run tells it where prefixes are cached, and none is needed where not.
    assert n_rows == len(found.tried)
    assert sum(row.shape == small.name for row in found.tried) == caches


def test_rows_do_not_depend_on_the_shapes_beside_them() -> None:
    together = size(traffic(0), SHAPES, STRICT)
    apart = [size(traffic(0), [shape], STRICT) for shape in SHAPES]
    assert together.tried == tuple(row for sizing in apart for row in sizing.tried)
    assert together.answers == tuple(sizing.answers[0] for sizing in apart)


@pytest.mark.parametrize("after", [1, 3, 5])
def test_ctrl_c_tells_what_is_known_so_far(after: int) -> None:
    whole = size(traffic(0), SHAPES, STRICT)
    rows: list[Tried] = []

    def stop(row: Tried) -> None:
        rows.append(row)
        if len(rows) == after:
            raise KeyboardInterrupt

    found = size(traffic(0), SHAPES, STRICT, progress=stop)
    assert not found.is_whole
    assert len(found.tried) == after
    assert set(map(id, found.tried)) == set(map(id, rows))
    assert all(row in whole.tried for row in found.tried)
    for answer in found.answers:
        kept = [row for row in found.tried if row.shape == answer.shape and row.kept]
        assert answer.best == min(kept, key=lambda row: row.usd_per_hour, default=None)
    assert found.to_dict()["is_whole"] is False


def test_ctrl_c_within_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    def stopped(requests: Requests, fleet: object) -> object:
        runs.append(fleet)
        outcome = outcome_of(requests, fleet)
        return replace(outcome, is_whole=False) if len(runs) == 4 else outcome

    monkeypatch.setattr("slicewise.traffic.size.outcome_of", stopped)
    found = size(traffic(0), SHAPES, STRICT)
    assert (found.is_whole, len(found.tried), len(runs)) == (False, 3, 4)


def test_ctrl_c_before_anything_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(requests: Requests, fleet: object) -> object:
        return replace(outcome_of(requests, fleet), is_whole=False)

    monkeypatch.setattr("slicewise.traffic.shapes.outcome_of", stopped)
    found = size(traffic(0), SHAPES, STRICT)
    assert (found.is_whole, found.tried, found.best) == (False, (), None)
    assert [(answer.refused, answer.is_whole) for answer in found.answers] == [("", False)] * 3


def test_what_cannot_be_sized_is_refused() -> None:
    requests = traffic(0)
    for words, says in [
        ((requests.first(0), SHAPES, STRICT), "there are no requests"),
        ((requests, [], STRICT), "no shape"),
        ((requests, SHAPES, []), "no limit"),
        ((requests, [shared(), shared()], STRICT), "two shapes are named 'prefill-first'"),
    ]:
        with pytest.raises(InputError, match=says):
            size(*words)
    with pytest.raises(InputError, match="0 servers serve nobody"):
        size(requests, SHAPES, STRICT, most_servers=0)
    with pytest.raises(InputError, match="no request arrives after a warm-up"):
        size(requests, SHAPES, STRICT, warm_up_s=1e6)
