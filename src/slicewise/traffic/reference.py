"""The reference engine: requests to servers in order of arrival, step by step. Slow: an oracle for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from slicewise.traffic.reference_server import Job, ReferenceServer
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import PREFIX_SLACK, Outcome, Server


def simulate(requests: Requests, server: Server, n_servers: int = 1, route: str = "round-robin") -> Outcome:
    """What becomes of each request on servers that are all alike.

    Valid: times hold batches up to max_num_seqs, and max_num_seqs, max_num_batched_tokens, block_tokens and n_servers
        are at least 1.
    """
    servers = [ReferenceServer(server, requests.prefix_block_tokens) for _ in range(n_servers)]
    jobs = _jobs(requests)
    chosen = [-1] * len(jobs)
    n_kept = 0
    for job in jobs:
        if not _fits(job, server):
            continue
        for one in servers:
            one.advance(job.arrival_s)
        chosen[job.index] = _choose(job, servers, n_kept, route)
        servers[chosen[job.index]].send(job)
        n_kept += 1
    for one in servers:
        one.advance(math.inf)
    return Outcome(
        server=np.array(chosen, dtype=np.int64),
        start_s=np.array([job.start_s for job in jobs], dtype=np.float64),
        first_token_s=np.array([job.first_token_s for job in jobs], dtype=np.float64),
        finish_s=np.array([job.finish_s for job in jobs], dtype=np.float64),
        preemptions=np.array([job.preemptions for job in jobs], dtype=np.int64),
        cached_tokens=np.array([job.cached_tokens for job in jobs], dtype=np.int64),
        gaps=np.array([(0.0, gap_s, 0.0, 1.0, 1.0) for one in servers for gap_s in one.gaps_s]).reshape(-1, 5),
    )


def _jobs(requests: Requests) -> list[Job]:
    return [
        Job(
            index=index,
            arrival_s=float(requests.arrival_s[index]),
            prompt_tokens=int(requests.prompt_tokens[index]),
            output_tokens=int(requests.output_tokens[index]),
            prefix=requests.prefixes[index] if requests.prefixes else (),
        )
        for index in range(len(requests))
    ]


def _fits(job: Job, server: Server) -> bool:
    """Whether its cache fits an empty server, and the table of prompts holds it even when it is computed anew."""
    most_tokens = job.prompt_tokens + job.output_tokens - 1
    longest = len(server.times.prefills_s) - 1
    blocks = -(-most_tokens // server.policy.block_tokens)
    return blocks <= server.most_blocks and job.prompt_tokens <= longest and most_tokens <= longest


def _choose(job: Job, servers: Sequence[ReferenceServer], n_kept: int, route: str) -> int:
    """Index of the server for a request that arrives now; all iterations that begin before have been run."""
    everyone = list(range(len(servers)))
    if route == "round-robin":
        return n_kept % len(servers)
    if route == "least-loaded":
        return _least_loaded(everyone, servers, job.arrival_s)
    if route == "prefix-aware":
        load = [one.n_unfinished(job.arrival_s) for one in servers]
        among = [index for index in everyone if load[index] <= min(load) + PREFIX_SLACK]
        hits = {index: servers[index].n_hits(job.prefix) for index in among}
        best = [index for index in among if hits[index] == max(hits.values())]
        return _least_loaded(best, servers, job.arrival_s)
    raise ValueError(f"no such route: {route}")


def _least_loaded(among: Sequence[int], servers: Sequence[ReferenceServer], at_s: float) -> int:
    """The one with the fewest unfinished requests; of several the first."""
    return min(among, key=lambda index: servers[index].n_unfinished(at_s))
