"""How loaded servers are: the share of time that they work, of the cache that is held, and who waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.planner.record import record
from slicewise.traffic.requests import Floats, Requests
from slicewise.traffic.server import Outcome, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadShares:
    """How busy servers and their caches were, from the first work to the last; the drain is part of it.

    Attributes:
        busy: share of the time in which a server has a request in hand, over all servers. []
        cache_held: share of the caches that is held, in the mean over the time. []
        queued: requests that wait to be worked on, in the mean over the time; where the phases are split, for a prefill
            server or for a decode server. []
        most_queued: the most that wait at once. []
    """

    busy: float
    cache_held: float
    queued: float
    most_queued: int

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self)


def load_shares(requests: Requests, outcome: Outcome, server: Server, n_servers: int) -> LoadShares:
    """How busy servers of a kind were, which are the decode servers where the phases are split."""
    here = _decoding(outcome)
    return LoadShares(
        busy=busy_share(here, n_servers),
        cache_held=held_share(requests, here, server, n_servers),
        queued=mean_queued(requests, outcome),
        most_queued=most_queued(requests, outcome),
    )


def _decoding(outcome: Outcome) -> Outcome:
    """The part of a split run that decode servers see: a request from when it is taken until its last token."""
    taken_s = outcome.decode_start_s
    if taken_s is None:
        return outcome
    finish_s = np.where(np.isnan(taken_s), np.nan, outcome.finish_s)
    return replace(outcome, start_s=taken_s, first_token_s=taken_s, finish_s=finish_s)


def decode_waits_s(outcome: Outcome) -> Floats:
    """How long each request waited for a place on a decode server, once its cache was there. [s] Shape (k,)."""
    if outcome.decode_start_s is None:
        return np.zeros(0)
    waits_s = outcome.decode_start_s - outcome.first_token_s
    found: Floats = waits_s[np.isfinite(waits_s)]
    return found


def busy_share(outcome: Outcome, n_servers: int) -> float:
    """Share of the run in which a server has a request in hand, over all servers. []"""
    told = np.isfinite(outcome.finish_s)
    if not told.any():
        return 0.0
    span_s = _span_s(outcome, told)
    server, start_s, finish_s = outcome.server[told], outcome.start_s[told], outcome.finish_s[told]
    order = np.lexsort((start_s, server))
    busy_s = 0.0
    for mine in np.split(order, 1 + np.flatnonzero(np.diff(server[order]))):
        begun_s, done_s = start_s[mine], np.maximum.accumulate(finish_s[mine])
        gaps_s = np.maximum(begun_s[1:] - done_s[:-1], 0).sum()
        busy_s += float(done_s[-1] - begun_s[0] - gaps_s)
    return busy_s / (n_servers * span_s) if span_s else 1.0


def held_share(requests: Requests, outcome: Outcome, server: Server, n_servers: int) -> float:
    """Mean share of the caches that is held. []

    From the first work on a prompt until its last token a request holds its prompt, and on average half its output.
    Neglects what preempted requests do not hold while they wait, but never tells more than there is.
    """
    told = np.isfinite(outcome.finish_s)
    if not told.any():
        return 0.0
    prompt, output = requests.prompt_tokens[told], requests.output_tokens[told]
    start_s, first_s, finish_s = outcome.start_s[told], outcome.first_token_s[told], outcome.finish_s[told]
    token_s = ((first_s - start_s) * prompt + (finish_s - first_s) * (prompt + output / 2)).sum()
    span_s = _span_s(outcome, told)
    room = server.n_blocks * server.policy.block_tokens * n_servers
    return min(float(token_s / (room * span_s)), 1.0) if span_s else 0.0


def mean_queued(requests: Requests, outcome: Outcome) -> float:
    """Requests that wait to be worked on, in the mean over the time. []"""
    told = np.isfinite(outcome.finish_s)
    if not told.any():
        return 0.0
    span_s = _span_s(outcome, told)
    waits_s = (outcome.start_s - requests.arrival_s)[told].sum() + decode_waits_s(outcome).sum()
    return float(waits_s / span_s) if span_s else 0.0


def most_queued(requests: Requests, outcome: Outcome) -> int:
    """The most requests that wait to be worked on at once. []"""
    told = np.isfinite(outcome.start_s)
    from_s, to_s = [requests.arrival_s[told]], [outcome.start_s[told]]
    if outcome.decode_start_s is not None:
        decodes = np.isfinite(outcome.decode_start_s)
        from_s.append(outcome.first_token_s[decodes])
        to_s.append(outcome.decode_start_s[decodes])
    times = np.concatenate([*from_s, *to_s])
    change = np.repeat([1, -1], len(times) // 2)
    # At one time, who is taken leaves before who comes joins: nobody waits who is taken at once.
    order = np.lexsort((change, times))
    waiting = np.cumsum(change[order])
    return int(max(waiting.max(initial=0), 0))


def _span_s(outcome: Outcome, told: NDArray[np.bool_]) -> float:
    return float(outcome.finish_s[told].max() - outcome.start_s[told].min())
