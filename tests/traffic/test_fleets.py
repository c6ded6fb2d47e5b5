"""Fleets: what they cost, and the hand-off. That split ones serve as they should is in test_engine.py."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.traffic import even_times, made_requests
from slicewise.errors import InputError
from slicewise.traffic.fleets import Fleet, PrefillPool, outcome_of
from slicewise.traffic.server import Policy, Server

SERVER = Server(times=even_times(0.25, 0, 0, 0.25), n_blocks=90, policy=Policy(block_tokens=1, max_num_seqs=6))
POOL = PrefillPool(
    n_servers=2, prefills_s=0.5 + 0.25 * np.arange(41.0), handoff_s_per_token=0.125, n_chips=4, usd_per_hour=10.0
)


def test_chips_and_prices_are_of_all_servers() -> None:
    one = Fleet(server=SERVER, n_servers=3, n_chips=8, usd_per_hour=20.0)
    assert (one.total_chips, one.total_usd_per_hour) == (24, 60)
    split = replace(one, prefill=POOL)
    assert (split.total_chips, split.total_usd_per_hour) == (32, 80)


def test_a_price_that_is_not_known_makes_the_whole_unknown() -> None:
    assert Fleet(server=SERVER, n_servers=3).total_usd_per_hour is None
    pool = replace(POOL, usd_per_hour=None)
    assert Fleet(server=SERVER, n_servers=3, usd_per_hour=20.0, prefill=pool).total_usd_per_hour is None


def test_the_first_token_comes_with_the_cache_and_the_others_from_the_decode_server() -> None:
    fleet = Fleet(server=SERVER, n_servers=1, prefill=POOL)
    found = outcome_of(made_requests([(0, 8, 5), (0, 4, 1), (0, 4, 3)]), fleet)
    # Prompts of 2.5, 1.5 and, once the second server is free, 1.5 s; caches travel for 1, 0.5 and 0.5 s.
    assert found.start_s.tolist() == [0, 0, 1.5]
    assert found.first_token_s.tolist() == [3.5, 2, 3.5]
    # The second has its only token; the others take steps of 0.25 s together.
    assert found.finish_s.tolist() == [4.5, 2, 4]
    assert found.server.tolist() == [0, 0, 0]


def test_a_request_that_either_side_has_no_room_for_is_dropped() -> None:
    fleet = Fleet(server=SERVER, n_servers=1, prefill=POOL)
    requests = made_requests([(0, 41, 2), (0, 40, 2), (0, 40, 22), (0, 40, 21)])
    assert outcome_of(requests, fleet).server.tolist() == [-1, 0, -1, 0]
    small = replace(fleet, server=replace(SERVER, n_blocks=41))
    assert outcome_of(requests, small).server.tolist() == [-1, 0, -1, -1]


def test_an_unknown_route_is_refused() -> None:
    with pytest.raises(InputError, match="route 'best' is not known"):
        outcome_of(made_requests([(0, 8, 5)]), Fleet(server=SERVER, n_servers=1, route="best", prefill=POOL))
