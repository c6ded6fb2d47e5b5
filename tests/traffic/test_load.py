"""How busy servers are, against counts by hand and event by event."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.traffic import LONGEST, made_requests, small_servers, small_traces
from slicewise.traffic.engine import simulate
from slicewise.traffic.fleets import Fleet, PrefillPool, outcome_of
from slicewise.traffic.load import busy_share, held_share, load_shares, mean_queued, most_queued
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import DECODE, POLICIES, Outcome, Policy, Server
from slicewise.traffic.times import Times

NAN = math.nan


def made(*rows: tuple[float, float, float, float, int]) -> tuple[Requests, Outcome]:
    """A run of rows: arrival, start, first token, finish, and the server; each of 100 tokens, and 20 of output."""
    arrival_s, start_s, first_s, finish_s, server = (np.array(column) for column in zip(*rows, strict=True))
    none = np.zeros(len(rows), dtype=np.int64)
    outcome = Outcome(
        server=server, start_s=start_s, first_token_s=first_s, finish_s=finish_s, preemptions=none, cached_tokens=none
    )
    return made_requests([(at, 100, 20) for at in arrival_s]), outcome


def server_of(n_blocks: int) -> Server:
    times = Times(knots=np.array([0.0, 1.0]), steps_s=np.ones((9, 2)), prefills_s=np.ones(200))
    return Server(times=times, n_blocks=n_blocks, policy=Policy(block_tokens=10))


# Two servers; the first rests from 4 to 6, the second from 2 on. The fourth is dropped.
RUN = made((0, 0, 1, 3, 0), (0, 1, 2, 4, 0), (0, 0, 1, 2, 1), (1, NAN, NAN, NAN, -1), (5, 6, 7, 10, 0))


def test_the_share_of_time_with_a_request_in_hand() -> None:
    assert busy_share(RUN[1], 2) == pytest.approx((8 + 2) / 20)
    assert busy_share(RUN[1], 4) == pytest.approx((8 + 2) / 40)


def test_the_share_of_the_cache_that_is_held() -> None:
    # A second of prefill holds 100 tokens, and decode 110 in the mean: 2, 2, 1 and 3 s of it.
    assert held_share(*RUN, server_of(n_blocks=30), 2) == pytest.approx((4 * 100 + 8 * 110) / (2 * 300 * 10))


def test_requests_that_wait() -> None:
    assert mean_queued(*RUN) == pytest.approx((1 + 1) / 10)
    assert most_queued(*RUN) == 1
    crowd = made((0, 0, 1, 2, 0), (0, 2, 3, 4, 0), (1, 4, 5, 6, 0), (2, 6, 7, 8, 0), (6.5, 8, 9, 9, 0))
    # At 2 one goes and one comes.
    assert most_queued(*crowd) == 2


def test_all_shares_together() -> None:
    found = load_shares(*RUN, server_of(30), 2).to_dict()
    assert set(found) == {"busy", "cache_held", "queued", "most_queued"}
    assert found["busy"] == pytest.approx(0.5)


def test_where_nothing_is_served_nothing_is_busy() -> None:
    nothing = made((0, NAN, NAN, NAN, -1))
    shares: dict[str, Any] = load_shares(*nothing, server_of(30), 2).to_dict()
    assert set(shares.values()) == {0}


@given(st.sampled_from(POLICIES).flatmap(small_servers), small_traces(), st.integers(1, 3))
def test_shares_hold_event_by_event(server: Server, requests: Requests, n_servers: int) -> None:
    outcome = simulate(requests, server, n_servers, "least-loaded")
    found = load_shares(requests, outcome, server, n_servers)
    done = np.isfinite(outcome.finish_s)
    if not done.any():
        return
    moments = np.unique(np.concatenate([requests.arrival_s[done], outcome.start_s[done], outcome.finish_s[done]]))
    middles, widths = (moments[1:] + moments[:-1]) / 2, np.diff(moments)
    span_s = outcome.finish_s[done].max() - outcome.start_s[done].min()
    in_hand = (outcome.start_s[done, None] < middles) & (middles < outcome.finish_s[done, None])
    busy_s = sum((in_hand[outcome.server[done] == at].any(axis=0) * widths).sum() for at in range(n_servers))
    assert found.busy == pytest.approx(busy_s / (n_servers * span_s))
    waits = (requests.arrival_s[done, None] < middles) & (middles < outcome.start_s[done, None])
    assert found.queued == pytest.approx((waits.sum(axis=0) * widths).sum() / span_s)
    assert found.most_queued == waits.sum(axis=0).max(initial=0)
    assert 0 <= found.busy <= 1 + 1e-12


@given(small_servers(DECODE), small_traces(), st.integers(1, 3), st.integers(1, 3), st.sampled_from([0.01, 0.3]))
def test_shares_of_a_split_fleet_hold_event_by_event(
    server: Server, requests: Requests, n_servers: int, n_prefill: int, prefill_s: float
) -> None:
    prefills_s = prefill_s * (1.0 + np.arange(LONGEST + 1))
    pool = PrefillPool(
        n_servers=n_prefill, prefills_s=prefills_s, handoff_s_per_token=0.001, n_chips=1, usd_per_hour=None
    )
    outcome = outcome_of(requests, Fleet(server=server, n_servers=n_servers, prefill=pool))
    found = load_shares(requests, outcome, server, n_servers)
    assert 0 <= found.busy <= 1 + 1e-12
    assert 0 <= found.cache_held <= 1
    assert outcome.decode_start_s is not None
    decodes, done = np.isfinite(outcome.decode_start_s), np.isfinite(outcome.finish_s)
    np.testing.assert_array_equal(decodes, done & (requests.output_tokens > 1))
    if not decodes.any():
        return
    taken_s, finish_s = outcome.decode_start_s[decodes], outcome.finish_s[decodes]
    stretches = [
        (requests.arrival_s[done], outcome.start_s[done]),
        (outcome.first_token_s[decodes], taken_s),
    ]
    moments = np.unique(np.concatenate([*(each for pair in stretches for each in pair), finish_s]))
    middles, widths = (moments[1:] + moments[:-1]) / 2, np.diff(moments)
    waiting = sum(((a[:, None] < middles) & (middles < b[:, None])).sum(axis=0) for a, b in stretches)
    run_s = outcome.finish_s[done].max() - outcome.start_s[done].min()
    assert found.queued == pytest.approx((waiting * widths).sum() / run_s, abs=1e-12)
    assert found.most_queued == waiting.max(initial=0)
    in_hand = (taken_s[:, None] < middles) & (middles < finish_s[:, None])
    busy_s = 0.0
    for at in range(n_servers):
        mine = in_hand[outcome.server[decodes] == at]
        busy_s += (mine.any(axis=0) * widths).sum()
        # What has been preempted waits, and is still counted here.
        if not outcome.preemptions.any():
            assert mine.sum(axis=0).max(initial=0) <= server.policy.max_num_seqs
    assert found.busy == pytest.approx(busy_s / (n_servers * (finish_s.max() - taken_s.min())))


def test_requests_that_wait_for_a_decode_server_hold_none_of_its_cache() -> None:
    times = Times(knots=np.array([0.0, 1.0]), steps_s=np.ones((9, 2)), prefills_s=np.full(200, 0.01))
    server = Server(times=times, n_blocks=12, policy=Policy(kind=DECODE, max_num_seqs=1, block_tokens=10))
    pool = PrefillPool(n_servers=1, prefills_s=times.prefills_s, handoff_s_per_token=0.0, n_chips=1, usd_per_hour=None)
    requests = made_requests([(0.0, 100, 11)] * 8)
    outcome = outcome_of(requests, Fleet(server=server, n_servers=1, prefill=pool))
    found = load_shares(requests, outcome, server, 1)
    assert found.cache_held == pytest.approx(105.5 / 120)
    assert found.busy == pytest.approx(1.0)
    assert found.most_queued == 7
    # The k-th waits for its prompt, and then until those before it have their ten steps each.
    assert found.queued == pytest.approx(10 * sum(range(8)) / 80, rel=0.01)
