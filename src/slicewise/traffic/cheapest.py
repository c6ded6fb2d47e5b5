"""`size`, from words to the answer: which fleets to try, the cheapest that meets the limits, and whether to split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner.record import record
from slicewise.spec.model import Model
from slicewise.traffic.candidates import APART, KINDS, LeftOut, designs_of, kinds_of
from slicewise.traffic.design import Design
from slicewise.traffic.explained import derivation_of
from slicewise.traffic.profile import Profile, profile_of
from slicewise.traffic.requests import Requests
from slicewise.traffic.run import COUNTS, asked_of_planner, asked_of_run, assumed, places_of, steady_of
from slicewise.traffic.shapes import Shape
from slicewise.traffic.size import size as sized
from slicewise.traffic.sizing import Sizing, Tried
from slicewise.traffic.steady import Steady
from slicewise.traffic.words import requests_of, seed_of
from slicewise.units import parse_positive, show

_SURELY = 0.9
"""Of the servers that the closed form counts, what a load takes in any case."""
_SAME = 0.01


@dataclass(frozen=True, kw_only=True)
class Size:
    """The answer of `size`.

    Attributes:
        requests: the load.
        sizing: the cheapest fleet of each shape and of all, and every fleet that was run; None where none was.
        steady: the closed form of the cheapest fleet under the same load, with the servers that it says the rate takes.
        split_pays: the cheapest split fleet costs less than the cheapest of servers that do both, or these miss the
            limits whatever their count; None where that is not known.
        why: whether to split, in a sentence.
        left_out: fleets that were not tried, with the reason.
        fits: some fleet meets the limits.
        reason: why none does; None where one does.
    """

    model: str
    requests: Profile
    sizing: Sizing | None
    steady: Steady | None
    split_pays: bool | None
    why: str
    left_out: tuple[LeftOut, ...]
    fits: bool
    reason: str | None
    assumptions: tuple[str, ...]
    designs: Mapping[str, Design]
    load: Requests

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        own = record(self, without=("designs", "load", "requests", "sizing", "steady", "left_out"))
        return {
            **own,
            "requests": self.requests.to_dict(),
            "steady": self.steady and self.steady.to_dict(),
            "left_out": [each.to_dict() for each in self.left_out],
            **(self.sizing.to_dict() if self.sizing else {}),
        }

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number of the closed form of the cheapest fleet.

        Raises:
            InputError: no fleet meets the limits.
            UnknownNameError: no such number.
        """
        best = self.sizing.best if self.sizing else None
        if best is None or self.steady is None:
            raise InputError(f"{name or 'servers'} has no value: {self.reason or 'the load has no rate'}")
        design = self.designs[best.shape]
        return derivation_of(design, self.load, name or "servers", self.steady.batch)


def size(model: str | Path | Model, *, progress: Callable[[Tried], None] | None = None, **words: Any) -> Size:
    """The cheapest fleet that meets latency limits under a load: which slice, how many servers, and whether to split.

    Without `slice`, every standard slice of the chips that holds a request, but those that cost twice the cheapest by
    the closed form. Times are those that are expected, unless a view is given.

    Args:
        model: as for `plan`.
        progress: is told each fleet that was run.
        words: those of the command line's flags: of the load, the servers, the limits, and of `step`.

    Raises:
        InputError: a word is off.
    """
    given = next((name for name in COUNTS if words.get(name) is not None), None)
    if given:
        raise InputError(f"--{given.replace('_', '-')}: how many servers it takes is what size finds; leave it out")
    rate = None if words.get("rate") is None else parse_positive(words["rate"], "request/s", "--rate")
    requests = requests_of(words, rate, seed_of(words.get("seed")))
    asked = asked_of_run(words, requests)
    jobs, backend = places_of(words)
    if not asked.limits:
        raise InputError("there is no limit to size for: give --ttft, --tpot, --itl or --e2e, such as --ttft p95:2s")
    question = asked_of_planner(model, words)
    designs, left_out = designs_of(question, words, requests, asked.limits)
    profile = profile_of(requests)
    if not designs:
        reason = left_out[0].why if len(left_out) == 1 else "; ".join(f"{each.slice}: {each.why}" for each in left_out)
        return Size(
            model=question.model.name,
            requests=profile,
            sizing=None,
            steady=None,
            split_pays=None,
            why="no fleet was tried",
            left_out=left_out,
            fits=False,
            reason=reason,
            assumptions=(),
            designs={},
            load=requests,
        )
    found = sized(
        requests,
        [_shape(name, design, requests) for name, design in designs.items()],
        asked.limits,
        warm_up_s=asked.warm_up_s,
        jobs=jobs,
        backend=backend,
        progress=progress,
    )
    pays, why = _split(found, words, left_out)
    best = found.best
    first = designs[best.shape] if best else next(iter(designs.values()))
    return Size(
        model=question.model.name,
        requests=profile,
        sizing=found,
        steady=steady_of(first, requests, best.n_servers, best.n_prefill) if best else None,
        split_pays=pays,
        why=why,
        left_out=left_out,
        fits=best is not None,
        reason=None if best else _refused(found),
        assumptions=assumed(first, requests),
        designs=designs,
        load=requests,
    )


def _shape(name: str, design: Design, requests: Requests) -> Shape:
    return Shape(
        name=name,
        server=design.server(requests),
        route=design.route,
        n_chips=design.deployment.slice.n_chips,
        usd_per_hour=design.usd_per_hour,
        prefill=design.pool(requests, 1),
        least=_least(design, requests),
    )


def _least(design: Design, requests: Requests) -> tuple[int, int]:
    """Servers, and prefill servers, that the rate takes by the closed form, but for what it may be off by.

    A load that ends before its queues have grown shows no limit missed; one that lasts would. Prefixes that are cached
    save work that the closed form knows nothing of.
    """
    formula = None if design.policy.caches_prefixes else steady_of(design, requests, 1, 1)
    if formula is None:
        return 0, 0
    return ceil(_SURELY * formula.load), ceil(_SURELY * (formula.prefill_load or 0.0))


def _split(found: Sizing, words: Mapping[str, Any], left_out: tuple[LeftOut, ...]) -> tuple[bool | None, str]:
    """Whether splitting pays, and why."""
    shared, split = found.best_shared, found.best_split
    if kinds_of(words) != KINDS[:2]:
        return None, "only one kind of fleet was asked for"
    if not any(answer.is_split for answer in found.answers):
        reasons = dict.fromkeys(each.why.removeprefix(APART) for each in left_out if each.why.startswith(APART))
        return None, f"not known: no split fleet was tried, as {'; '.join(reasons)}"
    if shared is None or split is None:
        return _one_kind(shared, split) if found.is_whole else (None, "not known, as the search was stopped")
    apart, together = split.cost_key(found.has_price)[0], shared.cost_key(found.has_price)[0]
    words_of = f"{_words(split, found)} against {_words(shared, found)} of servers that do both"
    if apart < together * (1 - _SAME):
        return True, f"yes: {words_of}, {1 - apart / together:.0%} less"
    if apart > together * (1 + _SAME):
        return False, f"no: {words_of}, {apart / together - 1:.0%} more"
    return False, f"no: {words_of}: as dear, with one kind of server more to run"


def _one_kind(shared: Tried | None, split: Tried | None) -> tuple[bool | None, str]:
    if shared is None and split is None:
        return None, "no fleet of either kind meets the limits"
    if shared is None:
        return True, "yes: no count of servers that do both phases meets the limits"
    return False, "no: no split fleet meets the limits"


def _words(row: Tried, found: Sizing) -> str:
    cost = row.cost_key(found.has_price)[0]
    return f"{show(cost, 'USD')} an hour" if found.has_price else f"{cost:,.0f} chips"


def _refused(found: Sizing) -> str:
    return "; ".join(f"{each.shape}: {each.refused or 'stopped before any fleet did'}" for each in found.answers)
