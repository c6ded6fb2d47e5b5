"""Designs: what becomes of planned deployments as servers and prefill servers."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.plans import MODEL, deployment
from helpers.traffic import made_requests
from slicewise.errors import InputError
from slicewise.traffic.design import Design
from slicewise.traffic.planned import MOST_TOKENS, blocks_of, longest_of
from slicewise.traffic.server import Policy

POLICY = Policy(max_num_seqs=8)
REQUESTS = made_requests([(0.0, 1000, 50), (1.0, 3000, 20)])


def design(*, split: bool = False, prefill_slice: str = "v5e:4x4", policy: Policy = POLICY) -> Design:
    prefill = deployment(slice=prefill_slice) if split else None
    return Design(deployment=deployment(), prefill=prefill, policy=policy, route="least-loaded")


def test_a_server_has_the_planners_times_and_blocks() -> None:
    server, planned = design().server(REQUESTS), deployment()
    assert server.times.step_s(3, 3000.0) == pytest.approx(
        planned.value("step_s", batch=3, context_tokens=1000), rel=1e-4
    )
    assert server.times.prefill_s(1000) == pytest.approx(float(planned.value("prefill_s", prompt_tokens=1000)))
    assert server.n_blocks == blocks_of(planned, POLICY, REQUESTS)


def test_other_names_are_other_times() -> None:
    bound = design().server(REQUESTS, ("step_overlapped_s", "prefill_bound_s"))
    assert bound.times.prefill_s(1000) < design().server(REQUESTS).times.prefill_s(1000)


def test_prefill_servers_are_of_their_own_slice() -> None:
    assert design().pool(REQUESTS, 2) is None
    here, there = (design(split=True, prefill_slice=name).pool(REQUESTS, 3) for name in ("v5e:4x4", "v5e:4x8"))
    assert here is not None
    assert there is not None
    assert (here.n_servers, here.n_chips, there.n_chips) == (3, 16, 32)
    assert there.usd_per_hour == pytest.approx(2 * here.usd_per_hour)
    assert there.prefills_s[1000] == pytest.approx(
        float(deployment(slice="v5e:4x8").value("prefill_s", prompt_tokens=1000))
    )


def test_only_prefill_servers_that_cache_have_room_for_prefixes() -> None:
    caching = replace(POLICY, caches_prefixes=True)
    without, with_cache = (design(split=True, policy=policy).pool(REQUESTS, 1) for policy in (POLICY, caching))
    assert without is not None
    assert with_cache is not None
    assert without.cache_tokens == 0
    one = replace(caching, max_num_seqs=1)
    assert with_cache.cache_tokens == blocks_of(deployment(), one, REQUESTS) * 16


def test_a_fleet_costs_what_its_chips_do() -> None:
    fleet = design(split=True, prefill_slice="v5e:4x8").fleet(REQUESTS, 3, 2)
    assert fleet.total_chips == 3 * 16 + 2 * 32
    assert fleet.total_usd_per_hour == pytest.approx(1.2 * fleet.total_chips)
    assert fleet.route == "least-loaded"


def test_a_chip_without_a_price_leaves_the_fleet_without_one() -> None:
    unpriced = replace(design(), deployment=deployment().with_(price=None))
    assert unpriced.usd_per_hour is None
    assert unpriced.fleet(REQUESTS, 1).total_usd_per_hour is None


def test_tables_go_as_far_as_the_longest_request_that_fits() -> None:
    short = design().server(REQUESTS)
    assert len(short.times.prefills_s) == 3020 + 1
    huge = made_requests([(0.0, 1000, 50), (1.0, 10**9, 20)])
    server = design().server(huge)
    assert len(server.times.prefills_s) == server.most_blocks * 16 + 1
    # A prefill slice that holds less than the decode slice takes no longer prompts than it holds.
    pool = Design(
        deployment=deployment(slice="v5e:4x8"), prefill=deployment(slice="v5e:2x4"), policy=POLICY, route="round-robin"
    ).pool(huge, 1)
    assert pool is not None
    room = blocks_of(deployment(slice="v5e:2x4"), replace(POLICY, max_num_seqs=1), huge) * 16
    assert len(pool.prefills_s) == room + 1 < len(server.times.prefills_s)


def test_what_is_longer_than_any_table_is_refused() -> None:
    requests = made_requests([(0.0, 10**9, 1)])
    assert longest_of(requests, 5000) == 5000
    with pytest.raises(InputError, match=f"longer than the {MOST_TOKENS:,} that are simulated; leave it out"):
        longest_of(requests, 10**9)


def test_a_cache_without_a_block_is_refused() -> None:
    with pytest.raises(InputError, match=f"{MODEL} on v5e:4x4: no room for a block"):
        design(policy=replace(POLICY, block_tokens=10**9)).server(REQUESTS)


def test_prefix_rules_leave_times_alone() -> None:
    caching = design(policy=replace(POLICY, caches_prefixes=True)).server(REQUESTS)
    np.testing.assert_array_equal(caching.times.prefills_s, design().server(REQUESTS).times.prefills_s)
