"""What a load is like: how much comes, how long it is, and how unevenly it comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slicewise.planner.record import record
from slicewise.traffic.requests import Requests
from slicewise.traffic.summary import Summary, summary
from slicewise.traffic.synthetic import mean_rate

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A load in numbers.

    Attributes:
        source: where the requests are from.
        n_requests: how many.
        dropped_rows: rows that were no requests, by reason.
        span_s: from the first arrival to the last. [s]
        requests_per_s: in the mean; None where all come at once. [1/s]
        busiest_minute_ratio: requests of the busiest minute over those of a mean one; None for less than two minutes.
        prompt_tokens: T.
        output_tokens: G.
    """

    source: str
    n_requests: int
    dropped_rows: Mapping[str, int]
    span_s: float
    requests_per_s: float | None
    busiest_minute_ratio: float | None
    prompt_tokens: Summary
    output_tokens: Summary

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        lengths = ("prompt_tokens", "output_tokens")
        own = record(self, without=(*lengths, "dropped_rows"))
        return {
            **own,
            "dropped_rows": dict(self.dropped_rows),
            **{name: getattr(self, name).to_dict() for name in lengths},
        }


def profile_of(requests: Requests) -> Profile:
    """What a load of at least one request is like."""
    span_s = float(requests.arrival_s[-1] - requests.arrival_s[0])
    prompts, outputs = summary(requests.prompt_tokens.astype(float)), summary(requests.output_tokens.astype(float))
    assert prompts is not None
    assert outputs is not None
    return Profile(
        source=requests.source,
        n_requests=len(requests),
        dropped_rows=requests.dropped,
        span_s=span_s,
        requests_per_s=mean_rate(requests) if span_s else None,
        busiest_minute_ratio=_busiest(requests, span_s),
        prompt_tokens=prompts,
        output_tokens=outputs,
    )


def _busiest(requests: Requests, span_s: float) -> float | None:
    if span_s < 2 * MINUTE_S:
        return None
    minutes = ((requests.arrival_s - requests.arrival_s[0]) // MINUTE_S).astype(np.int64)
    return float(np.bincount(minutes).max() / (len(requests) * MINUTE_S / span_s))
