"""Shapes of fleets: what is alike in fleets that differ in their counts alone, and what holds at any count.

Two things are told without a search. What requests take where none waits for another: no count of servers is faster, so
that a limit below is refused at once. And how many servers the work would keep busy: near there a search begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from slicewise.costs.serving import mean_context_tokens
from slicewise.traffic.fleets import Fleet, PrefillPool, outcome_of
from slicewise.traffic.limits import Limit, Verdict, keeps
from slicewise.traffic.requests import Floats, Requests
from slicewise.traffic.search import Counts
from slicewise.traffic.server import CHUNKED, Server


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Fleets of one kind of server, or of one kind of prefill and one of decode servers.

    Attributes:
        name: of the kind, one of its own.
        server: one of them; of a split shape, a decode server.
        route: how a request finds its server.
        n_chips: of one server.
        usd_per_hour: of one server; None where no price is known. [USD]
        prefill: the prefill servers, whatever their count; None where each server does both phases.
        least: servers, and prefill servers, below which the load is more than they can finish however long it lasts.
    """

    name: str
    server: Server
    route: str = "least-loaded"
    n_chips: int = 1
    usd_per_hour: float | None = None
    prefill: PrefillPool | None = None
    least: Counts = (0, 0)

    @property
    def is_split(self) -> bool:
        """Prefill has servers of its own."""
        return self.prefill is not None

    @property
    def has_price(self) -> bool:
        """What its fleets cost is known."""
        return self.usd_per_hour is not None and (self.prefill is None or self.prefill.usd_per_hour is not None)

    def fleet(self, n_servers: int, n_prefill: int = 0) -> Fleet:
        """A fleet of so many servers, and prefill servers where they are split."""
        return Fleet(
            server=self.server,
            n_servers=n_servers,
            route=self.route,
            prefill=self.prefill and replace(self.prefill, n_servers=n_prefill),
            n_chips=self.n_chips,
            usd_per_hour=self.usd_per_hour,
        )


def alone(requests: Requests, shape: Shape, limits: tuple[Limit, ...], warm_up_s: float, most_servers: int) -> Verdict:
    """Limits where each request is served alone, on servers that remember every prefix: no fleet does better.

    Neglects: requests that do not fit a server that caches prefixes are told only by a run.

    Args:
        requests: as they arrive.
        shape: of the fleets.
        limits: to meet.
        warm_up_s: requests that arrive earlier are left out. [s]
        most_servers: whose caches may remember prefixes.

    Raises:
        InputError: no request arrives after the warm-up.
    """
    apart: Floats = np.arange(len(requests), dtype=np.float64) * _longest_s(requests, shape)
    spaced = replace(requests, arrival_s=apart)
    outcome = outcome_of(spaced, _at_best(shape, most_servers).fleet(1, 1))
    if not outcome.is_whole:
        raise KeyboardInterrupt
    left_out = int(np.searchsorted(requests.arrival_s, warm_up_s))
    since_s = apart[left_out] if left_out < len(requests) else np.inf
    return keeps(limits, spaced, outcome, float(since_s))


def _at_best(shape: Shape, most_servers: int) -> Shape:
    """Servers that remember what as many do, and whose chunks take no longer than beside the shortest step."""
    server, prefill = shape.server, shape.prefill
    if prefill is not None:
        # Prefixes are the prefill servers' to remember; decode servers hold what they are given.
        return replace(shape, prefill=replace(prefill, cache_tokens=prefill.cache_tokens * most_servers))
    if server.policy.caches_prefixes:
        server = replace(server, n_blocks=server.n_blocks * most_servers)
    if server.policy.kind == CHUNKED:
        times = server.times
        # Beside a step a chunk takes its work alone; what else an iteration takes is then the step's.
        rests_s = np.minimum(times.rests, times.steps_s[1:].min())
        server = replace(server, times=replace(times, prefills_s=times.works + rests_s, works_s=times.works))
    return replace(shape, server=server)


def _longest_s(requests: Requests, shape: Shape) -> float:
    """No request takes longer alone. [s]"""
    times, pool, prompt = shape.server.times, shape.prefill, int(requests.prompt_tokens.max())
    chunks = 1 + ceil(prompt / shape.server.policy.max_num_batched_tokens)
    decode_s = float(times.steps_s[1].max()) * int(requests.output_tokens.max())
    split_s = float(pool.prefills_s.max()) + pool.handoff_s_per_token * prompt if pool else 0.0
    return float(times.prefills_s.max()) * chunks + decode_s + split_s


def busy_counts(requests: Requests, shape: Shape) -> Counts:
    """Servers, and prefill servers, that the work would keep busy from the first arrival to the last. At least 1 each.

    Prompts one by one, and steps of batches as full as the cache allows; hits of prefixes are neglected.
    """
    span_s = float(requests.arrival_s[-1] - requests.arrival_s[0])
    decode_s, prefill_s = _decode_s(requests, shape.server), _prefill_s(requests, shape)
    if not span_s > 0:
        return 1, int(shape.is_split)
    if shape.is_split:
        return max(ceil(decode_s / span_s), 1), max(ceil(prefill_s / span_s), 1)
    return max(ceil((decode_s + prefill_s) / span_s), 1), 0


def _prefill_s(requests: Requests, shape: Shape) -> float:
    prefills_s = shape.prefill.prefills_s if shape.prefill else shape.server.times.prefills_s
    return float(prefills_s[np.minimum(requests.prompt_tokens, len(prefills_s) - 1)].sum())


def _decode_s(requests: Requests, server: Server) -> float:
    """Time of all steps in full batches of sequences of mean length. [s]"""
    held = float(mean_context_tokens(requests.prompt_tokens.mean(), requests.output_tokens.mean()))
    room = int(server.n_blocks * server.policy.block_tokens / held)
    batch = max(min(server.policy.max_num_seqs, server.times.most_sequences, room), 1)
    steps = float((requests.output_tokens - 1).sum()) / batch
    return steps * server.times.step_s(batch, held * batch)
