"""`simulate`: what users feel when a load meets planned servers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner.figures import Figures, as_dict, names_of, shows_expected
from slicewise.planner.record import record
from slicewise.traffic.design import Design
from slicewise.traffic.engine import Progress
from slicewise.traffic.explained import derivation_of
from slicewise.traffic.fleets import Fleet, outcome_of
from slicewise.traffic.limits import Limit, Verdict, goodput_limits
from slicewise.traffic.load import LoadShares
from slicewise.traffic.metrics import Metrics, metrics
from slicewise.traffic.profile import Profile
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import Outcome
from slicewise.traffic.steady import Steady

FIGURES = ("ttft_s", "tpot_s", "itl_s", "end_to_end_s")
RATES = ("output_tokens_per_s", "requests_per_s", "usd_per_million_output_tokens")


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The answer of `simulate`. What a run gives is None where the model does not fit.

    Attributes:
        split: prefill and decode are on servers of their own.
        n_servers: servers; of a split fleet, decode servers.
        n_prefill_servers: prefill servers; None where each server does both.
        n_chips: of a server.
        total_chips: of all servers.
        usd_per_hour: price of all servers; None where none is known. [USD]
        max_num_batched_tokens: most tokens of an iteration; None where prompts are not cut.
        kv_blocks: blocks of the cache that a server has room for.
        view: whose times the servers take.
        requests: the load.
        fits: the model fits, and the limits are kept; false with limits where the run was stopped.
        reason: the ledger line that breaks, or the limits that do, or that the run was stopped before they could be
            judged; None where none does.
        metrics: latencies, rates and prices.
        shares: how busy servers and caches are.
        verdict: the limits, each with what came of it; None without limits, or where the run was stopped.
        steady: the closed form of the same fleet under the same load.
        gap: why the simulation differs from it, in sentences; none of a run that was stopped.
        figures: latencies (`ttft_s_p99`), rates and prices with the times of the bound, as expected, and at both ends
            of the range; None where they were not asked for, or under the book's conventions.
        is_whole: nothing was stopped: neither the run, nor the further ones that `figures` takes.
    """

    model: str
    slice: str
    prefill_slice: str | None
    layout: str
    split: bool
    n_servers: int
    n_prefill_servers: int | None
    n_chips: int
    total_chips: int
    usd_per_hour: float | None
    weight_dtype: str
    kv_dtype: str
    policy: str
    route: str
    max_num_seqs: int
    max_num_batched_tokens: int | None
    block_tokens: int
    kv_blocks: int | None
    prefix_cache: bool
    view: str
    requests: Profile
    fits: bool
    reason: str | None
    metrics: Metrics | None
    shares: LoadShares | None
    verdict: Verdict | None
    steady: Steady | None
    gap: tuple[str, ...]
    figures: Mapping[str, Figures] | None
    is_whole: bool
    assumptions: tuple[str, ...]
    design: Design
    load: Requests
    outcome: Outcome | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        own = record(self, without=("design", "load", "outcome", *_OBJECTS))
        parts = {name: None if (part := getattr(self, name)) is None else part.to_dict() for name in _OBJECTS[:-1]}
        return {**own, **parts, "figures": None if self.figures is None else as_dict(self.figures)}

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number of the closed form; of the mean time a token when none is named.

        Raises:
            InputError: it does not fit, or the number is counted in a run, and follows from no formula.
            UnknownNameError: no such number.
        """
        if self.steady is None:
            raise InputError(f"{name or 'tpot_s'} has no value: {self.reason or 'the load has no rate'}")
        if name in Metrics.__dataclass_fields__ and name not in ("ttft_s", "tpot_s"):
            raise InputError(
                f"{name} is counted in a run, and no formula gives it; explain ttft_s or tpot_s of the closed form"
            )
        return derivation_of(self.design, self.load, name or "tpot_s", self.steady.batch)


_OBJECTS = ("requests", "metrics", "shares", "verdict", "steady", "figures")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of a run beside load and fleet.

    Attributes:
        limits: those to keep.
        warm_up_s: requests that arrive earlier do not count. [s]
        ranged: the run is repeated with the times of the bound and of the range.
    """

    limits: tuple[Limit, ...] = ()
    warm_up_s: float = 0.0
    ranged: bool = True


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A run, and what came of it with other times.

    Attributes:
        fleet: the servers.
        outcome: what became of the requests; of a run that was stopped, of the first of them.
        figures: with the times of the bound and of the range; None where they were not asked for, or are not all there.
        is_whole: nothing was stopped.
    """

    fleet: Fleet
    outcome: Outcome
    figures: Mapping[str, Figures] | None
    is_whole: bool


def run(
    design: Design,
    requests: Requests,
    n_servers: int,
    n_prefill: int,
    asked: Asked,
    progress: Progress | None = None,
) -> Ran:
    """A fleet under a load, and the same with the times of the bound and of the range. Ctrl-C leaves what is known.

    Raises:
        InputError: a server holds no block of the cache, or is of several groups.
        KeyboardInterrupt: it was stopped before the first request that counts.
    """
    fleet = design.fleet(requests, n_servers, n_prefill)
    ranged = asked.ranged and shows_expected(design.deployment)
    names = names_of(design.deployment) if ranged else {}
    n_runs = 1 + len(names)
    outcome = outcome_of(requests, fleet, _part(progress, 0, n_runs))
    if not outcome.is_whole:
        if not (requests.first(len(outcome)).arrival_s >= asked.warm_up_s).any():
            raise KeyboardInterrupt
        return Ran(fleet=fleet, outcome=outcome, figures=None, is_whole=False)
    found: dict[str, Metrics] = {}
    with suppress(KeyboardInterrupt):
        for place, (end, quantities) in enumerate(names.items(), start=1):
            other = design.fleet(requests, n_servers, n_prefill, quantities)
            again = outcome_of(requests, other, _part(progress, place, n_runs))
            if not again.is_whole:
                break
            found[end] = told(requests, again, other, asked)
    is_whole = len(found) == len(names)
    return Ran(fleet=fleet, outcome=outcome, figures=_figures(found) if found and is_whole else None, is_whole=is_whole)


def told(requests: Requests, outcome: Outcome, fleet: Fleet, asked: Asked) -> Metrics:
    """The metrics of a run; goodput is by the limits' seconds, whichever share of requests has to keep them."""
    known = requests.first(len(outcome))
    return metrics(
        known,
        outcome,
        n_chips=fleet.total_chips,
        usd_per_hour=fleet.total_usd_per_hour,
        warm_up_s=asked.warm_up_s,
        **goodput_limits(asked.limits),
    )


def _part(progress: Progress | None, place: int, n_runs: int) -> Progress | None:
    """Progress of one run of several."""
    if progress is None:
        return None
    return lambda done, of: progress(place * of + done, n_runs * of)


def _figures(found: Mapping[str, Metrics]) -> dict[str, Figures]:
    """Three figures of latencies, rates and prices; what nobody has is left out."""
    values: dict[str, dict[str, float | None]] = {}
    for end, each in found.items():
        row: dict[str, float | None] = {name: getattr(each, name) for name in RATES}
        for name in FIGURES:
            time = getattr(each, name)
            row |= {f"{name}_{at}": None if time is None else getattr(time, at) for at in ("mean", "p50", "p99")}
        values[end] = row
    told_of = {name for name in values["expected"] if all(row[name] is not None for row in values.values())}
    return {
        name: _figure({end: float(row[name] or 0) for end, row in values.items()})
        for name in values["expected"]
        if name in told_of
    }


def _figure(ends: Mapping[str, float]) -> Figures:
    low, high = sorted((ends["low"], ends["high"]))
    return Figures(bound=ends["bound"], expected=ends["expected"], low=low, high=high)
