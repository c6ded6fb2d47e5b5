"""What a run was like: latencies as users see them, rates as the fleet gives them, and what a token cost.

Which requests count. Those that arrived before the warm-up's end are left out of every latency, count and share. They
still load the servers: what of their work falls into the window counts among its rates.

The window of the rates begins with the first counted arrival and ends with the last arrival; where servers still have
requests waiting then, it goes on until the first of them has none. Later the batches only shrink: that is the drain,
which says how long the last requests were, not what the fleet can do. Within the window rates are those that a server's
own counters would tell: a prompt's tokens at its first token, the others evenly from the first token to the last (an
approximation where a request was preempted), requests as they finish. So a saturated run shows the rate of full
batches. A run that starts empty without a warm-up still has the filling of the batches in its window.

Where that window sees the end of fewer than half as many requests as count, such as in a burst that fits one batch,
there is no steady state to speak of: the window is the whole run, and `includes_drain` says so.

What is named `run_...` is of counted requests alone, over the whole run, from the first arrival to the last finish of
them, as load generators (vLLM, AIPerf) count. Between the two, the drain is the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.costs.money import usd_per_million_output_tokens
from slicewise.errors import InputError
from slicewise.planner.record import record
from slicewise.traffic.gaps import gap_summary
from slicewise.traffic.requests import Floats, Requests
from slicewise.traffic.server import Outcome
from slicewise.traffic.summary import Summary, summary
from slicewise.units import show

ENOUGH = 0.5
"""A window tells the steady state where so many requests finish in it, as a share of those that count."""


def tpots_s(requests: Requests, outcome: Outcome) -> Floats:
    """Mean gap between the tokens of each request; nan where it has but one, or was dropped. [s] Shape (n,)."""
    gaps = requests.output_tokens - 1
    return np.where(gaps >= 1, (outcome.finish_s - outcome.first_token_s) / np.maximum(gaps, 1), np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """A run in numbers. The module says which requests count and what the window is.

    Attributes:
        arrived: requests that count, of which some may be dropped.
        finished: of them, those that got their last token.
        dropped: of them, those that fit no server.
        left_out: requests of the warm-up, which do not count.
        prompt_tokens: of the finished.
        output_tokens: of the finished.
        ttft_s: from arrival to first token. [s]
        queueing_s: from arrival until the prompt is first worked on; part of the TTFT. [s]
        tpot_s: mean gap between tokens after the first, of each request with two or more. [s]
        itl_s: gap between two tokens, over all tokens after the warm-up: what a user sees stall. [s]
        end_to_end_s: from arrival to last token. [s]
        warm_up_s: what was asked to be left out. [s]
        window_s: that the rates are over. [s]
        includes_drain: the run is too short for a window of its own: it is the whole run.
        duration_s: from the first counted arrival to the last finish of a counted request. [s]
        requests_per_s: that finish within the window. [1/s]
        output_tokens_per_s: of all servers, within the window. [1/s]
        total_tokens_per_s: the same with prompts, cached or not. [1/s]
        output_tokens_per_s_per_chip: what a chip gives. [1/s]
        total_tokens_per_s_per_chip: the same with prompts. [1/s]
        output_tokens_per_s_per_user: what a user sees: 1 / mean TPOT, not a share of the fleet's rate. [1/s]
        run_requests_per_s: finished requests over the duration. [1/s]
        run_output_tokens_per_s: their output tokens over the duration. [1/s]
        run_total_tokens_per_s: the same with prompts. [1/s]
        mean_concurrency: requests in the system, queued or running, on average over the window.
        mean_concurrency_by_little: requests_per_s × mean end-to-end. Far from the mean where a run is not steady, such
            as while a queue grows.
        run_mean_concurrency: counted requests in the system, on average over the duration; Little's law holds exactly.
        good: finished requests that keep the limits on TTFT, TPOT and end to end; None without such, as the next three.
            Limits on the ITL are of tokens, and no request keeps or breaks them.
        goodput_share: of the arrived, the dropped among them.
        goodput_requests_per_s: good requests that finish within the window. [1/s]
        run_goodput_requests_per_s: good requests over the duration. [1/s]
        preemptions_per_request: of the finished.
        cached_prompt_share: of the finished requests' prompt tokens, found in the prefix cache.
        usd_per_million_output_tokens: the fleet's price over its output in the window, none of it for prompts. [USD]
        usd_per_million_tokens: the same over all tokens. [USD]
    """

    arrived: int
    finished: int
    dropped: int
    left_out: int
    prompt_tokens: int
    output_tokens: int
    ttft_s: Summary | None
    queueing_s: Summary | None
    tpot_s: Summary | None
    itl_s: Summary | None
    end_to_end_s: Summary | None
    warm_up_s: float
    window_s: float
    includes_drain: bool
    duration_s: float
    requests_per_s: float
    output_tokens_per_s: float
    total_tokens_per_s: float
    output_tokens_per_s_per_chip: float
    total_tokens_per_s_per_chip: float
    output_tokens_per_s_per_user: float | None
    run_requests_per_s: float
    run_output_tokens_per_s: float
    run_total_tokens_per_s: float
    mean_concurrency: float
    mean_concurrency_by_little: float
    run_mean_concurrency: float
    good: int | None
    goodput_share: float | None
    goodput_requests_per_s: float | None
    run_goodput_requests_per_s: float | None
    preemptions_per_request: float
    cached_prompt_share: float
    usd_per_million_output_tokens: float | None
    usd_per_million_tokens: float | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: base units; a summary is an object inside."""
        return {name: value.to_dict() if isinstance(value, Summary) else value for name, value in record(self).items()}


def metrics(
    requests: Requests,
    outcome: Outcome,
    *,
    n_chips: int,
    usd_per_hour: float | None,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
    end_to_end_s: float | None = None,
    warm_up_s: float = 0.0,
) -> Metrics:
    """The metrics of a run. Rates are over the window that the module describes, and 0 where nothing finished.

    Args:
        requests: as they arrived.
        outcome: what became of them.
        n_chips: of the whole fleet.
        usd_per_hour: price of the whole fleet; None where it is not known. [USD]
        ttft_s: limit of a good request's TTFT. [s]
        tpot_s: limit of a good request's TPOT, which one of a single token keeps. [s]
        end_to_end_s: limit of a good request from arrival to last token. [s]
        warm_up_s: requests that arrive earlier are left out. [s]

    Raises:
        InputError: no request arrives after the warm-up.
    """
    run = _Run(requests, outcome, warm_up_s)
    start, end, includes_drain = run.window
    window_s, duration_s, mine = end - start, run.last_s - run.first_s, run.mine
    end_to_end, tpot = summary(run.end_to_end_s[mine]), summary(run.tpot_s[mine])
    prompt_tokens, output_tokens = int(requests.prompt_tokens[mine].sum()), int(requests.output_tokens[mine].sum())
    requests_per_s = _rate(run.inside(outcome.finish_s).sum(), window_s)
    output_per_s = _rate(run.output_inside(), window_s)
    total_per_s = output_per_s + _rate(requests.prompt_tokens[run.inside(outcome.first_token_s)].sum(), window_s)
    finished = int(mine.sum())
    return Metrics(
        arrived=int(run.counted.sum()),
        finished=finished,
        dropped=int((run.counted & (outcome.server < 0)).sum()),
        left_out=int((~run.counted).sum()),
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        ttft_s=summary(run.ttft_s[mine]),
        queueing_s=summary((outcome.start_s - requests.arrival_s)[mine]),
        tpot_s=tpot,
        itl_s=gap_summary(outcome.gaps, warm_up_s),
        end_to_end_s=end_to_end,
        warm_up_s=warm_up_s,
        window_s=window_s,
        includes_drain=includes_drain,
        duration_s=duration_s,
        requests_per_s=requests_per_s,
        output_tokens_per_s=output_per_s,
        total_tokens_per_s=total_per_s,
        output_tokens_per_s_per_chip=output_per_s / n_chips,
        total_tokens_per_s_per_chip=total_per_s / n_chips,
        output_tokens_per_s_per_user=1 / tpot.mean if tpot and tpot.mean else None,
        run_requests_per_s=_rate(finished, duration_s),
        run_output_tokens_per_s=_rate(output_tokens, duration_s),
        run_total_tokens_per_s=_rate(prompt_tokens + output_tokens, duration_s),
        mean_concurrency=_rate(run.within(requests.arrival_s, outcome.finish_s)[run.done].sum(), window_s),
        mean_concurrency_by_little=requests_per_s * end_to_end.mean if end_to_end else 0.0,
        run_mean_concurrency=_rate(run.end_to_end_s[mine].sum(), duration_s),
        **_goodput(run, ttft_s, tpot_s, end_to_end_s),
        preemptions_per_request=_rate(outcome.preemptions[mine].sum(), finished),
        cached_prompt_share=_rate(outcome.cached_tokens[mine].sum(), prompt_tokens),
        usd_per_million_output_tokens=_price(usd_per_hour, output_per_s),
        usd_per_million_tokens=_price(usd_per_hour, total_per_s),
    )


def _rate(amount: float, per: float) -> float:
    """One over the other; 0 where there is nothing to divide by, as nothing finished."""
    return float(amount / per) if per > 0 else 0.0


def _goodput(run: _Run, ttft_s: float | None, tpot_s: float | None, end_to_end_s: float | None) -> dict[str, Any]:
    """The fields of goodput; None each without a limit."""
    if ttft_s is None and tpot_s is None and end_to_end_s is None:
        return dict.fromkeys(("good", "goodput_share", "goodput_requests_per_s", "run_goodput_requests_per_s"))
    is_good = run.keeps(ttft_s, tpot_s, end_to_end_s)
    good = int((is_good & run.mine).sum())
    start, end, _ = run.window
    return {
        "good": good,
        "goodput_share": _rate(good, int(run.counted.sum())),
        "goodput_requests_per_s": _rate((is_good & run.inside(run.outcome.finish_s)).sum(), end - start),
        "run_goodput_requests_per_s": _rate(good, run.last_s - run.first_s),
    }


def _price(usd_per_hour: float | None, tokens_per_s: float) -> float | None:
    """Cost of a million tokens; None without a price, or without tokens. [USD]"""
    if usd_per_hour is None or tokens_per_s <= 0:
        return None
    return float(usd_per_million_output_tokens(usd_per_hour, tokens_per_s))


@dataclass(frozen=True)
class _Run:
    """Columns that follow from a run. Shape (n,) all of them; nan where there is no such time."""

    requests: Requests
    outcome: Outcome
    warm_up_s: float

    def __post_init__(self) -> None:
        if not self.counted.any():
            if not len(self.requests):
                raise InputError("there are no requests; give a trace or a load that holds one")
            last = f"the last of {len(self.requests):,} arrives at {show(self.requests.arrival_s[-1], 's')}"
            raise InputError(f"no request arrives after a warm-up of {show(self.warm_up_s, 's')}: {last}; shorten it")

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        return self.requests.arrival_s >= self.warm_up_s

    @cached_property
    def done(self) -> NDArray[np.bool_]:
        return np.isfinite(self.outcome.finish_s)

    @cached_property
    def mine(self) -> NDArray[np.bool_]:
        return self.counted & self.done

    @cached_property
    def ttft_s(self) -> Floats:
        return self.outcome.first_token_s - self.requests.arrival_s

    @cached_property
    def end_to_end_s(self) -> Floats:
        return self.outcome.finish_s - self.requests.arrival_s

    @cached_property
    def tpot_s(self) -> Floats:
        return tpots_s(self.requests, self.outcome)

    @cached_property
    def first_s(self) -> float:
        """The first counted arrival. [s]"""
        return float(self.requests.arrival_s[self.counted][0])

    @cached_property
    def last_s(self) -> float:
        """The last finish of a counted request; the first arrival where none finished. [s]"""
        return float(self.outcome.finish_s[self.mine].max()) if self.mine.any() else self.first_s

    @cached_property
    def window(self) -> tuple[float, float, bool]:
        """Begin and end of the time that rates are over, and whether it had to be the whole run. [s]"""
        end = max(float(self.requests.arrival_s[-1]), self._none_waits_s())
        n_inside = int((self.done & (self.outcome.finish_s > self.first_s) & (self.outcome.finish_s <= end)).sum())
        if n_inside and n_inside >= ENOUGH * int(self.mine.sum()):
            return self.first_s, end, False
        return self.first_s, self.last_s, True

    def _none_waits_s(self) -> float:
        """When the first of the servers has started the last request that it was sent. [s]"""
        server = self.outcome.server[self.done]
        if not len(server):
            return self.first_s
        last_s = np.full(int(server.max()) + 1, -np.inf)
        np.maximum.at(last_s, server, self.outcome.start_s[self.done])
        return float(last_s[np.isfinite(last_s)].min())

    def inside(self, time_s: Floats) -> NDArray[np.bool_]:
        """Whether a time is within the window."""
        start, end, _ = self.window
        found: NDArray[np.bool_] = (time_s > start) & (time_s <= end)
        return found

    def within(self, from_s: Floats, to_s: Floats) -> Floats:
        """How much of each stretch is within the window. [s]"""
        start, end, _ = self.window
        found: Floats = np.maximum(np.minimum(to_s, end) - np.maximum(from_s, start), 0.0)
        return found

    def output_inside(self) -> float:
        """Output tokens made within the window, those after the first evenly spread."""
        done, first_s, finish_s = self.done, self.outcome.first_token_s, self.outcome.finish_s
        decode_s = finish_s - first_s
        lasts = decode_s > 0
        share = np.where(lasts, self.within(first_s, finish_s) / np.where(lasts, decode_s, 1.0), self.inside(finish_s))
        return float(self.inside(first_s).sum() + ((self.requests.output_tokens - 1) * share)[done].sum())

    def keeps(self, ttft_s: float | None, tpot_s: float | None, end_to_end_s: float | None) -> NDArray[np.bool_]:
        """Whether a request finished and kept the limits that there are."""
        good = self.done.copy()
        if ttft_s is not None:
            good &= self.ttft_s <= ttft_s
        if tpot_s is not None:
            good &= (self.requests.output_tokens == 1) | (self.tpot_s <= tpot_s)
        if end_to_end_s is not None:
            good &= self.end_to_end_s <= end_to_end_s
        return good
