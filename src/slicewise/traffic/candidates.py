"""The fleets that `size` tries: on which slices, by which rules, with the phases together or apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slicewise.catalog.slices import load_slice
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import Question
from slicewise.planner.record import record
from slicewise.planner.search import search
from slicewise.spec.workload import Limits
from slicewise.traffic.design import Design
from slicewise.traffic.limits import Limit
from slicewise.traffic.requests import Requests
from slicewise.traffic.run import refuse_unknown, steady_of, unfit
from slicewise.traffic.server import CHUNKED, PREFILL_FIRST
from slicewise.traffic.steady import at_means
from slicewise.traffic.words import DEFAULT_SEQUENCES, kind_of, policy_of, route_of
from slicewise.units import parse_count

KINDS = ("shared", "split", "both")
"""Fleets to try: servers that do both phases, servers of their own for each, or both kinds."""
APART = "prefill and decode apart: "
"""Begins the reason of a split fleet that is left out, whose servers stand together all the same."""
WORTH = 2.0
"""A slice that costs so many times the cheapest by the closed form is left out, where no slice was named."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Fleets that were not tried.

    Attributes:
        slice: of their servers.
        why: in a sentence.
    """

    slice: str
    why: str

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self)


def designs_of(
    question: Question, words: Mapping[str, Any], requests: Requests, limits: Sequence[Limit]
) -> tuple[dict[str, Design], tuple[LeftOut, ...]]:
    """The fleets to try, by name, and those that are left out.

    Raises:
        InputError: a word is off.
    """
    kinds = kinds_of(words)
    policies = policies_of(words)
    found: dict[str, Design] = {}
    left: list[LeftOut] = []
    for deployment in _deployments(question, requests, left):
        sequences = _sequences(deployment, requests, limits, words)
        for kind in kinds:
            for policy in policies if kind == "shared" else policies[:1]:
                chosen = {**words, "policy": policy, "batch": sequences}
                if policy != CHUNKED:
                    chosen |= {"max_num_batched_tokens": None}
                prefill = _prefill(question, deployment, words) if kind == "split" else None
                rules = policy_of(chosen, requests)
                design = Design(deployment=deployment, prefill=prefill, policy=rules, route=route_of(words))
                reason = _no_pool(design, requests)
                if reason:
                    left.append(LeftOut(slice=deployment.slice.name, why=f"{APART}{reason}"))
                else:
                    found[name_of(design)] = design
    return found, tuple(left)


def _no_pool(design: Design, requests: Requests) -> str:
    """Why there are no such prefill servers; "" where there are, or need be none."""
    refuse_unknown(design)
    reason = unfit(design, requests)
    if reason:
        return reason
    try:
        design.pool(requests, 1)
    except InputError as error:
        return str(error)
    return ""


def policies_of(words: Mapping[str, Any]) -> tuple[str, ...]:
    """The policies to try on servers that do both phases; decode servers have but one.

    Raises:
        InputError: one is not known, or has no use.
    """
    given = words.get("policy")
    asked = [given] if isinstance(given, str) else list(given or ())
    if asked and kinds_of(words) == ("split",):
        raise InputError("--policy: servers of one phase have no prompts to fit in between; leave it out")
    found = tuple(dict.fromkeys(kind_of({"policy": each}) for each in asked)) or (PREFILL_FIRST, CHUNKED)
    if words.get("max_num_batched_tokens") is not None and (CHUNKED not in found or kinds_of(words) == ("split",)):
        raise InputError(f"--max-num-batched-tokens: no prompt is cut here; add --policy {CHUNKED}, or leave it out")
    return found


def kinds_of(words: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of fleets that are asked for.

    Raises:
        InputError: there is no such kind, or prefill servers have a slice and there are none.
    """
    asked = KINDS[-1] if words.get("servers") is None else words["servers"]
    if asked not in KINDS:
        raise InputError(f"--servers '{str(asked)[:40]}' is not offered; choose {', '.join(KINDS)}")
    if words.get("prefill_slice") is not None and asked == "shared":
        raise InputError(
            "--prefill-slice: servers that do both phases have none; leave it out, or give --servers split"
        )
    return KINDS[:2] if asked == KINDS[-1] else (str(asked),)


def _prefill(question: Question, decode: Deployment, words: Mapping[str, Any]) -> Deployment:
    named = words.get("prefill_slice")
    return decode if named is None else question.deployment(load_slice(named, "--prefill-slice"), decode.precision)


def _deployments(question: Question, requests: Requests, left: list[LeftOut]) -> list[Deployment]:
    """Servers that hold a request; without a named slice, those that are not far dearer than others."""
    kept: list[tuple[float, float | None, Deployment]] = []
    for slice_ in question.slices:
        for precision in question.precisions:
            if not question.layouts(slice_, precision):
                left.append(LeftOut(slice=slice_.name, why=question.refusal(slice_, precision)))
                continue
            deployment = question.deployment(slice_, precision)
            design = Design(deployment=deployment, prefill=None, policy=policy_of({}, requests), route="least-loaded")
            reason = _no_server(design, question, requests)
            if not reason and not question.slice_is_given:
                holds_one = int(at_means(deployment, requests).value("max_batch")) >= 1
                reason = "" if holds_one else "it holds no request of mean length"
            if reason:
                left.append(LeftOut(slice=slice_.name, why=reason))
                continue
            formula = steady_of(design, requests, 1, 0)
            # Where all come at once there is no closed form: slices are then compared by what one server costs.
            chips = (max(formula.servers, formula.load) if formula else 1) * slice_.n_chips
            price = deployment.price.usd_per_chip_hour if deployment.price else None
            kept.append((chips, None if price is None else chips * price, deployment))
    if question.slice_is_given or not kept:
        return [deployment for *_, deployment in kept]
    # A price against a count of chips would say nothing: all are compared by price, or all by chips.
    has_price = all(usd is not None for _, usd, _ in kept)
    costs = [(float(usd) if has_price and usd is not None else chips, deployment) for chips, usd, deployment in kept]
    least, what = min(cost for cost, _ in costs), "costs" if has_price else "takes"
    of = "the cheapest slice" if has_price else "the chips of the smallest fleet (no price is known of some)"
    for cost, deployment in costs:
        if cost > WORTH * least:
            why = f"by the closed form it {what} {cost / least:.1f} times {of}; name it with --slice to try it"
            left.append(LeftOut(slice=deployment.slice.name, why=why))
    return [deployment for cost, deployment in costs if cost <= WORTH * least]


def _no_server(design: Design, question: Question, requests: Requests) -> str:
    """Why it is no server; "" where it is one.

    Raises:
        InputError: its slice was named, and its layout is of several groups.
    """
    try:
        refuse_unknown(design)
    except InputError as error:
        if question.slice_is_given:
            raise
        return str(error)
    return unfit(design, requests)


def _sequences(deployment: Deployment, requests: Requests, limits: Sequence[Limit], words: Mapping[str, Any]) -> int:
    """Most sequences of a batch: as given, or as many as keep a limit on the gaps where nothing comes between."""
    if words.get("batch") is not None:
        return parse_count(words["batch"], "--batch", "sequences")
    gaps = [limit.seconds for limit in limits if limit.metric in ("tpot", "itl")]
    if not gaps:
        return DEFAULT_SEQUENCES
    means = at_means(deployment, requests)
    found = search(means, Limits(tpot_s=min(gaps)), "throughput", None)
    return min(int(found.batches[found.best]), DEFAULT_SEQUENCES) if found.verdict.fits else DEFAULT_SEQUENCES


def name_of(design: Design) -> str:
    """A fleet in words, without its counts."""
    deployment, rules = design.deployment, design.policy
    where = f"{deployment.slice.name} {deployment.precision.weights}/{deployment.precision.kv}"
    if design.prefill is None:
        return f"{where}, {rules.kind}, batch {rules.max_num_seqs:,}"
    other = design.prefill.slice.name
    before = "" if other == deployment.slice.name else f"{other} before "
    return f"{before}{where}, split, batch {rules.max_num_seqs:,}"
