"""Latency limits that a fleet has to meet, such as a p95 of the TTFT, and whether a run keeps them.

A limit is on a statistic as `metrics` tells it: of TTFT, TPOT and end-to-end over requests, of the ITL over tokens. A
run that drops requests keeps no limit: those that got nothing waited forever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slicewise.errors import InputError
from slicewise.traffic.metrics import Metrics, metrics
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import Outcome
from slicewise.traffic.summary import Summary
from slicewise.units import parse_positive, plain, show

METRICS = ("ttft", "tpot", "itl", "end_to_end")
AT = ("mean", "p50", "p90", "p95", "p99")
_TITLES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "end_to_end": "end-to-end"}
_SHORT = {"e2e": "end_to_end", "e2el": "end_to_end"}
_OF_GAPS = ("tpot", "itl")
_AT_UNLESS_SAID = "p99"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a statistic of a latency may be at most.

    Attributes:
        metric: ttft, tpot, itl or end_to_end.
        at: mean, p50, p90, p95 or p99.
        seconds: the most that keeps it. [s]

    Raises:
        InputError: no such metric or statistic, or no time above zero.
    """

    metric: str
    at: str
    seconds: float

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise InputError(f"limits are on {', '.join(METRICS)}, not on '{self.metric}'; take one of them")
        if self.at not in AT:
            raise InputError(f"'{self.at}' is no statistic of a limit; choose {', '.join(AT)}")
        if not 0 < self.seconds < float("inf"):
            raise InputError(f"a limit of {self.seconds} s is no time above 0; give for example 2s")

    @property
    def title(self) -> str:
        """What is limited, in words."""
        return f"{_TITLES[self.metric]} {self.at}"

    @property
    def text(self) -> str:
        """The limit in words."""
        return f"{self.title} within {show(self.seconds, 's')}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {"metric": self.metric, "at": self.at, "seconds": plain(self.seconds)}


def parse_limit(text: str, what: str) -> Limit:
    """Read a limit as people write it; a time alone is a limit of the p99.

    >>> parse_limit("p95:2s", "--ttft").text, parse_limit("50ms", "--tpot").text
    ('TTFT p95 within 2 s', 'TPOT p99 within 50 ms')

    Args:
        text: such as "p95:2s".
        what: the flag, which names the metric: --ttft, --tpot, --itl or --end-to-end, also --e2e.

    Raises:
        InputError: no such metric or statistic, or no time above zero.
    """
    name = what.lstrip("-").replace("-", "_")
    at, colon, time = text.rpartition(":")
    at = at.strip().lower() if colon else _AT_UNLESS_SAID
    if at not in AT:
        raise InputError(f"{what}: '{at}' is no statistic; choose {', '.join(AT)}, such as p95:2s")
    return Limit(metric=_SHORT.get(name, name), at=at, seconds=parse_positive(time, "s", what))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A limit beside what a run showed.

    Attributes:
        limit: that was asked for.
        seconds: the statistic; None where no request has the metric, as none has a second token. [s]
        kept: it is within the limit.
    """

    limit: Limit
    seconds: float | None
    kept: bool

    @property
    def reason(self) -> str:
        """By how much it is broken; nothing where it is kept."""
        if self.kept:
            return ""
        if self.seconds is None:
            return f"{self.limit.title} is not known, as no request finished"
        over = show(self.seconds - self.limit.seconds, "s", 3)
        return f"{self.limit.title} is {show(self.seconds, 's', 4)}, over {show(self.limit.seconds, 's')} by {over}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: the statistic, the limit, and whether it is kept."""
        value = {"value_s": plain(self.seconds), "limit_s": plain(self.limit.seconds)}
        return {"metric": self.limit.metric, "at": self.limit.at, **value, "is_kept": self.kept}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a run meets all limits.

    Attributes:
        checks: one a limit, in their order.
        dropped: requests that fit no server, those of the warm-up among them.
        arrived: requests of the run, those of the warm-up among them.
    """

    checks: tuple[Check, ...]
    dropped: int
    arrived: int

    @property
    def kept(self) -> bool:
        """Every limit is kept, and no request was dropped."""
        return not self.dropped and all(check.kept for check in self.checks)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not, a line each; none where it is."""
        lost = f"{self.dropped:,} of {self.arrived:,} requests are dropped, as they fit no server"
        return (lost,) * bool(self.dropped) + tuple(check.reason for check in self.checks if not check.kept)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        checks = [check.to_dict() for check in self.checks]
        return {"is_kept": self.kept, "dropped": self.dropped, "checks": checks, "reasons": list(self.reasons)}


def keeps(limits: Sequence[Limit], requests: Requests, outcome: Outcome, warm_up_s: float = 0.0) -> Verdict:
    """Whether a run that was not stopped meets limits.

    Args:
        limits: to meet.
        requests: as they arrived.
        outcome: what became of them.
        warm_up_s: requests that arrive earlier count only where they are dropped. [s]

    Raises:
        InputError: no request arrives after the warm-up.
    """
    return verdict(limits, metrics(requests, outcome, n_chips=1, usd_per_hour=None, warm_up_s=warm_up_s), outcome)


def goodput_limits(limits: Sequence[Limit]) -> dict[str, float | None]:
    """The times that a good request keeps, as `metrics` takes them; whichever share of requests the limits are on.

    Of several limits on one metric the loosest, as that is the only one that every request has to keep: p50 within 1 s
    and p99 within 5 s let a request take 5 s. Limits on the ITL are of tokens, not of requests, and are left out.
    """
    return {
        f"{metric}_s": max((limit.seconds for limit in limits if limit.metric == metric), default=None)
        for metric in METRICS
        if metric != "itl"
    }


def verdict(limits: Sequence[Limit], run: Metrics, outcome: Outcome) -> Verdict:
    """Whether a run whose metrics are known meets limits."""
    checks = tuple(_check(limit, run) for limit in limits)
    return Verdict(checks=checks, dropped=int((outcome.server < 0).sum()), arrived=len(outcome))


def _check(limit: Limit, run: Metrics) -> Check:
    told: Summary | None = getattr(run, f"{limit.metric}_s")
    if told is None:
        # Outputs of one token have no gaps, and so none that is too long.
        return Check(limit=limit, seconds=None, kept=limit.metric in _OF_GAPS and run.finished > 0)
    seconds = float(getattr(told, limit.at))
    return Check(limit=limit, seconds=seconds, kept=seconds <= limit.seconds)
