"""Fleets: servers that do both phases, or prefill servers that hand their caches to decode servers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from slicewise.traffic.engine import Progress, fits, simulate
from slicewise.traffic.prefix_cache import Prefix, PrefixCache
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import DECODE, Outcome, Server


@dataclass(frozen=True, kw_only=True)
class PrefillPool:
    """Prefill servers: one queue, one prompt at a time on each.

    Attributes:
        n_servers: how many.
        prefills_s: prefill of a prompt by its tokens, as in `Times`. [s] Shape (t + 1,).
        handoff_s_per_token: time in which a token's cache reaches its decode server. [s]
        cache_tokens: of prompts that one of them has room to keep, where it caches prefixes; 0 where it does not.
        n_chips: of one of them.
        usd_per_hour: of one of them; None where no price is known.
    """

    n_servers: int
    prefills_s: NDArray[np.float64]
    handoff_s_per_token: float
    n_chips: int
    usd_per_hour: float | None
    cache_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Servers that are all alike, and prefill servers before them where the phases are split.

    Attributes:
        server: one of them; of a split fleet, a decode server.
        n_servers: how many.
        route: how a request finds its server.
        prefill: the prefill servers; None where each server does both.
        n_chips: of one server.
        usd_per_hour: of one server; None where no price is known.
    """

    server: Server
    n_servers: int
    route: str = "least-loaded"
    prefill: PrefillPool | None = None
    n_chips: int = 1
    usd_per_hour: float | None = None

    @property
    def total_chips(self) -> int:
        """Chips of all servers."""
        prefill = self.prefill.n_servers * self.prefill.n_chips if self.prefill else 0
        return self.n_servers * self.n_chips + prefill

    @property
    def total_usd_per_hour(self) -> float | None:
        """Price of all servers; None where one is not known. [USD/h]"""
        if self.usd_per_hour is None:
            return None
        if self.prefill is None:
            return self.n_servers * self.usd_per_hour
        if self.prefill.usd_per_hour is None:
            return None
        return self.n_servers * self.usd_per_hour + self.prefill.n_servers * self.prefill.usd_per_hour


def outcome_of(requests: Requests, fleet: Fleet, progress: Progress | None = None) -> Outcome:
    """What becomes of requests on a fleet.

    On a split fleet the first token is there when the cache has reached its decode server, as in the planner's
    `ttft_split_s`; a request of one token is finished then. Stopped by Ctrl-C, it gives what is known so far.

    Args:
        requests: in the order of their arrival.
        fleet: the servers.
        progress: is told how far the run is.

    Raises:
        InputError: no servers, or a route that is not known.
    """
    if fleet.prefill is None:
        return simulate(requests, fleet.server, fleet.n_servers, fleet.route, progress)
    decoder = replace(fleet.server, policy=replace(fleet.server.policy, kind=DECODE, caches_prefixes=False))
    longest = len(fleet.prefill.prefills_s) - 1
    kept = fits(requests, decoder) & (requests.prompt_tokens <= longest)
    start_s, ready_s, cached = _prefilled(requests, fleet.prefill, kept, by_prefix=fleet.route == "prefix-aware")
    at = np.flatnonzero(kept & (requests.output_tokens > 1))
    at = at[np.argsort(ready_s[at], kind="stable")]
    decoded = simulate(_part(requests, at, ready_s), decoder, fleet.n_servers, fleet.route, progress)
    n_decoded, at = len(at), at[: len(decoded)]
    finish_s, server = np.where(kept, ready_s, np.nan), np.where(kept, 0, -1)
    preemptions = np.zeros(len(requests), dtype=np.int64)
    finish_s[kept & (requests.output_tokens > 1)] = np.nan
    finish_s[at], server[at], preemptions[at] = decoded.finish_s, decoded.server, decoded.preemptions
    decode_start_s = np.full(len(requests), np.nan)
    decode_start_s[at] = decoded.start_s
    outcome = Outcome(
        server=server,
        start_s=start_s,
        first_token_s=ready_s,
        finish_s=finish_s,
        preemptions=preemptions,
        cached_tokens=cached,
        gaps=decoded.gaps,
        decode_start_s=decode_start_s,
        is_whole=decoded.is_whole,
    )
    if len(decoded) == n_decoded:
        return outcome
    return _until(float(ready_s[at[-1]]) if len(at) else -np.inf, requests, outcome)


def _until(now_s: float, requests: Requests, outcome: Outcome) -> Outcome:
    """What is known at a time of a run that was stopped then: prompts that are computed later have not been."""
    n = int(np.searchsorted(requests.arrival_s, now_s, side="right"))

    def by_then(time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(time_s[:n] <= now_s, time_s[:n], np.nan)

    is_there = outcome.first_token_s[:n] <= now_s
    return replace(
        outcome,
        server=outcome.server[:n],
        start_s=by_then(outcome.start_s),
        first_token_s=by_then(outcome.first_token_s),
        finish_s=np.where(is_there, outcome.finish_s[:n], np.nan),
        preemptions=outcome.preemptions[:n],
        cached_tokens=outcome.cached_tokens[:n],
        decode_start_s=None if outcome.decode_start_s is None else outcome.decode_start_s[:n],
    )


def _part(requests: Requests, at: NDArray[np.int64], arrival_s: NDArray[np.float64]) -> Requests:
    return replace(
        requests,
        arrival_s=arrival_s[at],
        prompt_tokens=requests.prompt_tokens[at],
        output_tokens=requests.output_tokens[at],
        prefixes=(),
        prefix_block_tokens=0,
    )


def _prefilled(
    requests: Requests, pool: PrefillPool, kept: NDArray[np.bool_], *, by_prefix: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """When each prompt is begun, when its cache has reached a decode server, and what was cached of it.

    Times are nan of those that are not kept.
    """
    prefills_s: list[float] = pool.prefills_s.tolist()
    caches = pool.cache_tokens > 0 and bool(requests.prefixes)
    cache = [PrefixCache(requests.prefix_block_tokens) for _ in range(pool.n_servers)] if caches else []
    free = [(0.0, server) for server in range(pool.n_servers)]
    start_s, ready_s = np.full(len(requests), np.nan), np.full(len(requests), np.nan)
    found = np.zeros(len(requests), dtype=np.int64)
    arrivals: list[float] = requests.arrival_s.tolist()
    prompts: list[int] = requests.prompt_tokens.tolist()
    for request in np.flatnonzero(kept).tolist():
        tokens, hits = prompts[request], 0
        if cache and by_prefix:
            free_s, server = _best(free, cache, requests.prefixes[request], arrivals[request])
        else:
            free_s, server = heappop(free)
        if cache:
            prefix = requests.prefixes[request]
            hits = cache[server].cached_tokens(prefix, tokens)
            cache[server].remember(prefix, tokens, pool.cache_tokens - tokens)
        begins_s = max(arrivals[request], free_s)
        ends_s = begins_s + prefills_s[0] + (prefills_s[tokens] - prefills_s[hits])
        heappush(free, (ends_s, server))
        start_s[request], ready_s[request], found[request] = begins_s, ends_s, hits
    return start_s, ready_s + requests.prompt_tokens * pool.handoff_s_per_token, found


def _best(
    free: list[tuple[float, int]], cache: list[PrefixCache], prefix: Prefix, arrival_s: float
) -> tuple[float, int]:
    """Take the server that begins first, and of those that are idle the one that has most of a prefix."""
    idle = [each for each in free if each[0] <= arrival_s] or [min(free)]
    chosen = min(idle, key=lambda each: (-cache[each[1]].hits(prefix), each))
    free.remove(chosen)
    heapify(free)
    return chosen
