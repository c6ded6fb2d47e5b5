"""The closed form beside a simulation: means, no queues, from the planner's formulas at the load's mean lengths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slicewise.costs.serving import longest_context_tokens, mean_context_tokens
from slicewise.planner.deployment import Deployment
from slicewise.planner.record import record
from slicewise.spec.workload import Workload
from slicewise.traffic.requests import Requests
from slicewise.traffic.synthetic import mean_rate

_POINTS = 4000
"""Batches at which the load is compared with what it brings, evenly in their logarithm."""
_LEAST = 0.001
"""The smallest of them: a server that is nearly always empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """What the planner's formulas say of a load. Means, no queues; one length for all.

    Attributes:
        batch: sequences that decode at once on a server, by Little's law; the most that fit where the load is too much.
        load: share of the servers' capacity that the load asks for; above 1 queues grow without end. []
        prefill_load: the same of the prefill servers; None where each server does both.
        capacity_requests_per_s: what the fleet can finish. [1/s]
        requests_per_s: what it finishes: the load, or its capacity where that is less. [1/s]
        ttft_s: prefill of a prompt of mean length, and its hand-off where the phases are split; nobody waits. [s]
        tpot_s: mean time a token, prefills in between where a server does both. [s]
        output_tokens_per_s: of the fleet. [1/s]
        servers: that the rate takes by the same formulas, rounded up; of a split fleet, decode servers.
        prefill_servers: that it takes likewise; None where each server does both.
    """

    batch: float
    load: float
    prefill_load: float | None
    capacity_requests_per_s: float
    requests_per_s: float
    ttft_s: float
    tpot_s: float
    output_tokens_per_s: float
    servers: int
    prefill_servers: int | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self)


def at_means(deployment: Deployment, requests: Requests) -> Deployment:
    """A deployment whose workload is of the mean lengths of some requests, at their mean rate."""
    prompt, output = float(requests.prompt_tokens.mean()), float(requests.output_tokens.mean())
    workload = Workload(
        prompt_tokens=max(round(prompt), 1),
        output_tokens=max(round(output), 1),
        context_tokens=float(mean_context_tokens(prompt, output)),
        capacity_context_tokens=float(longest_context_tokens(prompt, output)),
        context_is_set=True,
    )
    spans = len(requests) > 1 and requests.arrival_s[-1] > requests.arrival_s[0]
    return replace(deployment, workload=workload, requests_per_s=mean_rate(requests) if spans else None)


def steady(
    deployment: Deployment,
    *,
    n_servers: int,
    most_sequences: int,
    prefill: Deployment | None = None,
    n_prefill: int = 0,
    handoff_s: float = 0.0,
) -> Steady | None:
    """The closed form of a fleet under a load; None where the load has no rate, or the server holds not one sequence.

    Args:
        deployment: a server, at the load's means (`at_means`); of a split fleet, a decode server.
        n_servers: how many.
        most_sequences: of a batch, by the engine's rule.
        prefill: a prefill server, at the same means; None where each server does both.
        n_prefill: how many.
        handoff_s: of a cache of mean length. [s]
    """
    rate = deployment.requests_per_s
    most = min(most_sequences, int(deployment.value("max_batch")))
    if rate is None or most < 1:
        return None
    one = prefill or deployment
    prompt_s, output = float(one.value("prefill_s")), deployment.workload.output_tokens
    token_s, done, counted = _SPLIT if prefill else _SHARED
    prefill_capacity = n_prefill * float(one.value("prefill_requests_per_s")) if prefill else np.inf
    capacity = n_servers * float(deployment.value(done, batch=most))
    batches = np.geomspace(_LEAST, most, _POINTS)
    tokens_s = np.broadcast_to(np.asarray(deployment.value(token_s, batch=batches), dtype=float), batches.shape)
    # Little's law: as many decode at once as come while one of them does.
    comes = min(rate, prefill_capacity) / n_servers
    keeps_up = batches >= comes * output * tokens_s
    at = int(np.argmax(keeps_up)) if keeps_up.any() else len(batches) - 1
    served = min(rate, capacity, prefill_capacity)
    return Steady(
        batch=float(batches[at]),
        load=rate / capacity,
        prefill_load=rate / prefill_capacity if prefill else None,
        capacity_requests_per_s=min(capacity, prefill_capacity),
        requests_per_s=served,
        ttft_s=prompt_s + handoff_s,
        tpot_s=float(tokens_s[at]),
        output_tokens_per_s=served * output,
        servers=int(deployment.value(counted, batch=most)),
        prefill_servers=int(one.value("prefill_servers")) if prefill else None,
    )


_SHARED = ("tpot_shared_s", "requests_per_s_shared", "replicas")
_SPLIT = ("step_s", "decode_requests_per_s", "decode_servers")
"""What a token takes, what a server finishes, and how many servers a rate takes."""
