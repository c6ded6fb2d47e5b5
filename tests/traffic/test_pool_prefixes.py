"""Prefill servers with prefix caches against a pool that is stepped through request by request, and what follows."""

from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from helpers.traffic import LONGEST, even_times, made_requests, small_traces
from slicewise.traffic.fleets import Fleet, PrefillPool, outcome_of
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import Outcome, Policy, Server

TIMES = even_times(0.25, 0.0, 0.0, 0.25)
HANDOFF_S = 1 / 64


def fleet(n_prefill: int, cache_tokens: int, route: str = "least-loaded") -> Fleet:
    pool = PrefillPool(
        n_servers=n_prefill, prefills_s=TIMES.prefills_s, handoff_s_per_token=HANDOFF_S, n_chips=1, usd_per_hour=1.0,
        cache_tokens=cache_tokens,
    )  # fmt: skip
    decoder = Server(times=TIMES, n_blocks=200, policy=Policy(max_num_seqs=6, caches_prefixes=cache_tokens > 0))
    return Fleet(server=decoder, n_servers=2, route=route, prefill=pool)


@dataclass
class OnePrefill:
    """A prefill server: when it is free, and the blocks that it keeps, the latest last."""

    free_s: float = 0.0
    kept: list[int] = field(default_factory=list)

    def hits(self, prefix: tuple[int, ...]) -> int:
        found = 0
        while found < len(prefix) and prefix[found] in self.kept:
            found += 1
        return found


def stepped(requests: Requests, pool: PrefillPool, *, by_prefix: bool) -> list[tuple[float, float, int]]:
    """When each prompt begins, when its first token is there, and its cached tokens; in the order of arrival."""
    servers = [OnePrefill() for _ in range(pool.n_servers)]
    size, found = requests.prefix_block_tokens, []
    rows = zip(requests.arrival_s.tolist(), requests.prompt_tokens.tolist(), strict=True)
    for at, (arrival_s, tokens) in enumerate(rows):
        prefix = requests.prefixes[at] if requests.prefixes and pool.cache_tokens else ()
        soonest_s = min(server.free_s for server in servers)
        idle = [server for server in servers if server.free_s <= arrival_s]
        if by_prefix and prefix and idle:
            most = max(server.hits(prefix) for server in idle)
            among = [server for server in idle if server.hits(prefix) == most]
            chosen = min(among, key=lambda server: server.free_s)
        else:
            chosen = next(server for server in servers if server.free_s == soonest_s)
        cached = 0
        while prefix and cached // size < chosen.hits(prefix) and cached + size < tokens:
            cached += size
        for block in prefix[: tokens // size] if prefix else ():
            chosen.kept = [each for each in chosen.kept if each != block] + [block]
        if prefix:
            room = max(pool.cache_tokens - tokens, 0) // size
            chosen.kept = chosen.kept[-room:] if room else []
        begins_s = max(arrival_s, chosen.free_s)
        chosen.free_s = begins_s + float(pool.prefills_s[0] + pool.prefills_s[tokens] - pool.prefills_s[cached])
        found.append((begins_s, chosen.free_s + tokens * HANDOFF_S, cached))
    return found


def assert_as_stepped(requests: Requests, servers: Fleet) -> Outcome:
    assert servers.prefill is not None
    found = outcome_of(requests, servers)
    kept = np.flatnonzero(found.server >= 0)
    part = replace(
        requests,
        arrival_s=requests.arrival_s[kept], prompt_tokens=requests.prompt_tokens[kept],
        output_tokens=requests.output_tokens[kept],
        prefixes=tuple(requests.prefixes[at] for at in kept) if requests.prefixes else (),
    )  # fmt: skip
    right = stepped(part, servers.prefill, by_prefix=servers.route == "prefix-aware")
    # All times are sums of powers of two: nothing is rounded.
    assert list(zip(found.start_s[kept], found.first_token_s[kept], found.cached_tokens[kept], strict=True)) == right
    return found


@given(
    small_traces(), st.integers(1, 3), st.sampled_from([0, 10, 40, 70, 500]),
    st.sampled_from(["least-loaded", "prefix-aware"]),
)  # fmt: skip
def test_each_prompt_is_as_in_a_pool_stepped_through(requests: Requests, n: int, cache_tokens: int, route: str) -> None:
    assert_as_stepped(requests, fleet(n, cache_tokens, route))


SHARED = made_requests(
    # Two families of prompts, in turns, each long enough to keep a server.
    [(20.0 * at, 40, 4) for at in range(12)], tuple(((at % 2) * 100 + 1, (at % 2) * 100 + 2) for at in range(12)), 16
)  # fmt: skip


def test_a_second_prompt_of_a_family_finds_its_blocks() -> None:
    found = assert_as_stepped(SHARED, fleet(1, 500))
    assert found.cached_tokens.tolist() == [0, 0] + [32] * 10
    saved_s = (found.first_token_s - found.start_s)[0] - (found.first_token_s - found.start_s)[2:]
    np.testing.assert_allclose(saved_s, TIMES.prefills_s[40] - TIMES.prefills_s[8])


def test_room_for_one_family_is_lost_to_the_other() -> None:
    assert assert_as_stepped(SHARED, fleet(1, 72)).cached_tokens.sum() == 0
    assert assert_as_stepped(SHARED, fleet(1, 104)).cached_tokens.sum() == 10 * 32


def test_routes_by_prefix_keep_families_apart() -> None:
    # With room for one family in each of two caches, only those who look for it find it again.
    by_prefix = assert_as_stepped(SHARED, fleet(2, 72, "prefix-aware"))
    assert by_prefix.cached_tokens.tolist() == [0, 0] + [32] * 10


def test_a_cache_changes_no_request_but_in_its_times() -> None:
    with_cache, without = outcome_of(SHARED, fleet(1, 500)), outcome_of(SHARED, fleet(1, 0))
    assert without.cached_tokens.sum() == 0
    assert (with_cache.finish_s <= without.finish_s).all()


def test_a_prompt_longer_than_the_tables_is_dropped() -> None:
    requests = made_requests([(0.0, LONGEST + 1, 2), (0.0, 5, 2)])
    assert outcome_of(requests, fleet(1, 30)).server.tolist() == [-1, 0]


def test_a_prompt_longer_than_a_cache_leaves_nothing_there() -> None:
    requests = made_requests([(0.0, 48, 2), (50.0, 48, 2)], ((1, 2, 3), (1, 2, 3)), 16)
    assert outcome_of(requests, fleet(1, 30)).cached_tokens.tolist() == [0, 0]
