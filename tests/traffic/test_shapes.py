"""Shapes: no fleet is faster than requests that are served alone, and where a search begins."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers.traffic import LONGEST, even_tables, made_requests, small_traces
from slicewise.traffic.fleets import PrefillPool, outcome_of
from slicewise.traffic.gaps import MOST_PARTS
from slicewise.traffic.limits import AT, METRICS, Limit, keeps
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import POLICIES, ROUTES, Policy, Server
from slicewise.traffic.shapes import Shape, alone, busy_counts
from slicewise.traffic.times import Times

EVERY = tuple(Limit(metric=metric, at=at, seconds=1.0) for metric in METRICS for at in AT)


def pool(prefills_s: np.ndarray, **words: float) -> PrefillPool:
    found = {"n_servers": 99, "handoff_s_per_token": 0.25, "n_chips": 2, "usd_per_hour": 8.0} | words
    return PrefillPool(prefills_s=prefills_s, **found)


@st.composite
def shapes(draw: st.DrawFn, kind: str) -> Shape:
    times = draw(even_tables())
    policy = Policy(
        kind=kind,
        max_num_seqs=draw(st.integers(1, 6)),
        max_num_batched_tokens=draw(st.integers(6, 30)),
        block_tokens=draw(st.sampled_from([1, 4])),
        caches_prefixes=draw(st.booleans()),
    )
    # Each request fits, and so many that none is ever preempted: what is computed anew may take less than steps.
    return Shape(
        name="made up",
        server=Server(times=times, n_blocks=400 // policy.block_tokens, policy=policy),
        route=draw(st.sampled_from(ROUTES)),
        prefill=draw(st.none() | st.just(pool(times.prefills_s))),
    )


@pytest.mark.parametrize("kind", POLICIES)
@given(data=st.data())
def test_no_fleet_is_faster_than_requests_alone(kind: str, data: st.DataObject) -> None:
    requests, shape = data.draw(small_traces()), data.draw(shapes(kind))
    assume(len(requests))
    # Up to so many gaps in a row are told one by one.
    requests = replace(requests, output_tokens=np.minimum(requests.output_tokens, MOST_PARTS))
    assume((requests.prompt_tokens + requests.output_tokens).max() <= LONGEST)
    counts = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    under_load = keeps(EVERY, requests, outcome_of(requests, shape.fleet(*counts)))
    for least, found in zip(alone(requests, shape, EVERY, 0.0, 4).checks, under_load.checks, strict=True):
        assert (least.seconds is None) == (found.seconds is None)
        assert least.seconds is None or least.seconds <= found.seconds * (1 + 1e-9)


TIMES = Times(
    knots=np.array([0.0, 100.0]), steps_s=np.full((9, 2), 0.5), prefills_s=2.0 + 0.125 * np.arange(LONGEST + 1.0)
)
SERVER = Server(times=TIMES, n_blocks=40, policy=Policy(max_num_seqs=8, block_tokens=4))
AT_ONCE = made_requests([(0.0, 8, 5), (0.0, 16, 3), (0.0, 24, 1)])


def seconds(requests: Requests, shape: Shape, warm_up_s: float = 0.0) -> dict[str, float | None]:
    means = tuple(Limit(metric=metric, at="mean", seconds=1.0) for metric in METRICS)
    return {check.limit.metric: check.seconds for check in alone(requests, shape, means, warm_up_s, 9).checks}


def test_requests_alone_by_hand() -> None:
    found = seconds(AT_ONCE, Shape(name="shared", server=SERVER))
    assert found == pytest.approx({"ttft": 4.0, "tpot": 0.5, "itl": 0.5, "end_to_end": (3 + 2 + 4 + 1 + 5) / 3})
    split = seconds(AT_ONCE, Shape(name="split", server=SERVER, prefill=pool(TIMES.prefills_s)))
    assert split == pytest.approx({**found, "ttft": 4.0 + 0.25 * 16, "end_to_end": 5.0 + 0.25 * 16})


def test_prefixes_are_remembered_by_as_many_prefill_servers_as_may_stand_there() -> None:
    # Two prompts by turns, and a cache for one of them: alone with one server none is ever found again, and of two
    # servers each keeps its own.
    rows = [(4.0 * at, 16, 2) for at in range(10)]
    own = tuple((100 * (at % 2), 1 + 100 * (at % 2)) for at in range(10))
    requests = made_requests(rows, own, 8)
    shape = Shape(name="split", server=SERVER, route="prefix-aware", prefill=pool(TIMES.prefills_s, cache_tokens=32))
    limit = (Limit(metric="ttft", at="p50", seconds=1.0),)
    fleet = keeps(limit, requests, outcome_of(requests, shape.fleet(1, 2)))
    least = alone(requests, shape, limit, 0.0, 2)
    assert outcome_of(requests, shape.fleet(1, 2)).cached_tokens.sum() > 0
    assert outcome_of(requests, shape.fleet(1, 1)).cached_tokens.sum() == 0
    assert least.checks[0].seconds <= fleet.checks[0].seconds


def test_the_warm_up_is_left_out_of_them() -> None:
    requests = made_requests([(0.0, 8, 5), (1.0, 16, 3), (2.0, 24, 1)])
    assert seconds(requests, Shape(name="shared", server=SERVER), 1.0)["ttft"] == pytest.approx((4 + 5) / 2)


def test_the_work_that_a_search_begins_with() -> None:
    requests = made_requests([(float(at), 8, 5) for at in range(11)])
    # Prompts of 3 s; 44 steps of 0.5 s in batches of 8, and of 3 where the cache holds no more of 10.5 tokens each.
    shared = Shape(name="shared", server=SERVER)
    assert busy_counts(requests, shared) == (4, 0)
    split = Shape(name="split", server=SERVER, prefill=pool(TIMES.prefills_s))
    assert busy_counts(requests, split) == (1, 4)
    small = Shape(name="small", server=Server(times=TIMES, n_blocks=8, policy=SERVER.policy))
    assert busy_counts(requests, small) == (5, 0)
    assert busy_counts(AT_ONCE, shared) == (1, 0)
    assert busy_counts(AT_ONCE, split) == (1, 1)


def test_fleets_of_a_shape() -> None:
    shape = Shape(name="split", server=SERVER, n_chips=4, usd_per_hour=12.0, prefill=pool(TIMES.prefills_s))
    fleet = shape.fleet(3, 5)
    assert (fleet.n_servers, fleet.prefill and fleet.prefill.n_servers) == (3, 5)
    assert (fleet.total_chips, fleet.total_usd_per_hour) == (3 * 4 + 5 * 2, 3 * 12 + 5 * 8)
    assert (shape.is_split, shape.has_price) == (True, True)
    assert not Shape(
        name="free", server=SERVER, usd_per_hour=1.0, prefill=pool(TIMES.prefills_s, usd_per_hour=None)
    ).has_price
