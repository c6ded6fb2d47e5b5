"""The main job: of every slice, precision and batch, the plan to take; what binds it, and what would change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner import feasible
from slicewise.planner.choose import choose
from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import Verdict
from slicewise.planner.fleet import Fleet, fleet
from slicewise.planner.option import Option, option_of
from slicewise.planner.question import Flags, Question, ask, chosen_by
from slicewise.planner.search import ROUNDING, Searched, first_best, round_of, score, search
from slicewise.planner.whatif import WhatIf, what_ifs
from slicewise.spec.model import Model
from slicewise.spec.precision import Precision
from slicewise.spec.topology import Slice
from slicewise.units import plain


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """A candidate that was refused: the kind of reason, and the sentence with the numbers."""

    slice: str
    n_chips: int
    layout: str
    weight_dtype: str
    kv_dtype: str
    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The answer of `plan`.

    Attributes:
        recommended: the plan to take; None where nothing is feasible.
        candidates: the best batch of every feasible slice and precision, best objective first.
        smallest: the fewest chips that meet the limits, at their best batch.
        fastest: the lowest step of all, at the batch asked for, a round of the batch shards, or a lone sequence.
        highest_throughput: the most tokens per chip within the limits.
        runner_up: the best candidate on another slice or precision.
        rejected: refused candidates, in the order tried.
        what_ifs: the recommended slice with one thing changed.
        fleet: servers for the rate that was asked for.
        least_param_load: the deployment that needs the least time to read the weights.
    """

    question: Question
    recommended: Option | None
    candidates: tuple[Option, ...]
    smallest: Option | None
    fastest: Option | None
    highest_throughput: Option | None
    runner_up: Option | None
    rejected: tuple[Rejected, ...]
    what_ifs: tuple[WhatIf, ...]
    fleet: Fleet | None
    least_param_load: Deployment

    @property
    def least_param_load_s(self) -> float:
        """The least time that any of the slices needs to read the weights, which no step undercuts. [s]"""
        return float(self.least_param_load.value("param_load_s", batch=1.0))

    @property
    def fits(self) -> bool:
        """Whether there is a plan at all."""
        return self.recommended is not None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        asked = self.question
        named = {
            name: getattr(self, name)
            for name in ("smallest", "fastest", "highest_throughput", "runner_up", "recommended")
        }
        return {
            "model": asked.model.name,
            "workload": {
                **{key: plain(value) for key, value in asdict(asked.workload).items()},
                **asdict(asked.limits),
                "rate": asked.rate,
                "objective": asked.objective,
            },
            **{name: option.to_dict() if option else None for name, option in named.items()},
            "candidates": [option.to_dict() for option in self.candidates],
            "rejected": dict(Counter(item.reason for item in self.rejected)),
            "rejected_candidates": [asdict(item) for item in self.rejected],
            "what_ifs": [what_if.to_dict() for what_if in self.what_ifs],
            "fleet": self.fleet.to_dict() if self.fleet else None,
            "least_param_load_s": self.least_param_load_s,
            "least_param_load_slice": self.least_param_load.slice.name,
        }

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number of the recommended plan; of the objective when none is named.

        Raises:
            InputError: there is no plan to explain.
            UnknownNameError: no such number.
        """
        if self.recommended is None:
            raise InputError("nothing fits, so there is no plan to explain; see the reasons, or relax a limit")
        if name == "least_param_load_s":
            return replace(self.least_param_load.explain("param_load_s", batch=1), name=name)
        if name == "batch":
            return self._explain_batch(self.recommended)
        name = _FLEET_NAMES.get(name, name)
        if getattr(self.recommended, name, 0) is None:
            raise InputError(f"{name} is not known: a price is missing, or --context prices decode alone")
        return self.recommended.step.explain(name or headline(self.recommended, self.question.objective))

    def _explain_batch(self, chosen: Option) -> Derivation:
        """Why so many sequences: what the plan is chosen by, and what memory allows."""
        by = headline(chosen, self.question.objective)
        is_asked = self.question.batch is not None
        return Derivation(
            name="batch",
            value=chosen.step.batch,
            unit="",
            meaning="Sequences in a decode step",
            formula="" if is_asked else f"the batch up to max_batch, within the limits, of {chosen.why}",
            origin="as asked" if is_asked else "",
            parts=tuple(chosen.step.explain(each) for each in ("max_batch", by)),
        )


_FLEET_NAMES = {
    "rate": "requests_per_s",
    "replicas_tpot_s": "tpot_shared_s",
    "replicas_ttft_s": "ttft_s",
    "split_tpot_s": "step_s",
    "split_ttft_s": "ttft_split_s",
}


def headline(option: Option, objective: str) -> str:
    """The number that a plan is chosen by."""
    if objective == "latency":
        return "step_s"
    if objective == "throughput" or option.step.usd_per_hour is None:
        return "tokens_per_s_per_chip"
    return "usd_per_million_output_tokens" if option.request_usd is None else "request_usd"


def plan(model: str | Path | Model, **flags: Unpack[Flags]) -> Plan:
    """Choose slice, precision and batch for a model and a workload.

    Raises:
        InputError: a word is off.
    """
    return plan_of(ask(model, chosen_by(flags)))


def plan_of(question: Question) -> Plan:
    """Choose slice, precision and batch for a question."""
    found, rejected = search_all(question)
    ranked = comparable(question, found, rejected)
    picked = choose(ranked)
    live = sorted((s for s in ranked if s.batches.size), key=lambda s: float(s.score.min()))
    recommended = _option(picked, why_chosen(question)) if picked else None
    candidates = tuple(_option((s, s.best), "best batch of its slice and precision") for s in live)
    return Plan(
        question=question,
        recommended=recommended,
        candidates=candidates,
        smallest=_smallest(candidates, recommended),
        fastest=_fastest(live, question.batch),
        highest_throughput=_most_tokens(live),
        runner_up=_runner_up(candidates, recommended),
        rejected=tuple(rejected),
        what_ifs=what_ifs(question, found, picked[0].deployment if picked else None),
        fleet=fleet(recommended, question.rate, question.limits) if recommended and question.rate else None,
        least_param_load=min((s.deployment for s in found), key=lambda d: float(d.value("param_load_s", batch=1.0))),
    )


def search_all(question: Question) -> tuple[list[Searched], list[Rejected]]:
    """Every slice, precision and layout of a question, searched; and those that were refused.

    Raises:
        InputError: none of the chips offers a compute dtype that was asked for.
    """
    found, rejected = [], []
    refused: InputError | None = None
    for precision, slice_ in product(question.precisions, question.slices):
        try:
            deployments = question.deployments(slice_, precision)
        except InputError as error:
            refused = error
            rejected.append(_rejected(slice_, precision, Verdict(reason=feasible.COMPUTE, detail=str(error))))
            continue
        if not deployments:
            verdict = Verdict(reason=feasible.LAYOUT, detail=question.refusal(slice_, precision))
            rejected.append(_rejected(slice_, precision, verdict))
        for deployment in deployments:
            searched = search(deployment, question.limits, question.objective, question.batch)
            found.append(searched)
            if not searched.verdict.fits:
                rejected.append(_rejected(slice_, precision, searched.verdict, deployment.layout_name))
    if refused and not found:
        raise refused
    return found, rejected


def comparable(question: Question, found: list[Searched], rejected: list[Rejected]) -> list[Searched]:
    """Under the cost objective, chips without a price cannot be ranked beside chips with one."""
    priced = {searched.deployment.price is not None for searched in found if searched.verdict.fits}
    if question.objective != "cost" or len(priced) < len((True, False)):
        return found
    for searched in found:
        if searched.deployment.price is None and searched.verdict.fits:
            deployment = searched.deployment
            name = deployment.slice.chip.name
            detail = f"{deployment.slice.name}: no price is known for {name}; give --price {name}=USD"
            verdict = Verdict(reason=feasible.PRICE, detail=detail)
            rejected.append(_rejected(deployment.slice, deployment.precision, verdict))
    return [searched for searched in found if searched.deployment.price is not None]


def _rejected(slice_: Slice, precision: Precision, verdict: Verdict, layout: str = "") -> Rejected:
    return Rejected(
        slice=slice_.name,
        n_chips=slice_.n_chips,
        layout=layout,
        weight_dtype=precision.weights,
        kv_dtype=precision.kv,
        reason=verdict.reason,
        detail=verdict.detail,
    )


def _option(picked: tuple[Searched, int], why: str) -> Option:
    searched, index = picked
    return option_of(searched.deployment, int(searched.batches[index]), why)


def why_chosen(question: Question) -> str:
    """What a plan is chosen for, in words."""
    goal = {
        "cost": "cheapest decode" if question.workload.context_is_set else "cheapest request",
        "latency": "lowest step",
        "throughput": "most tokens per chip",
    }[question.objective]
    return f"the {goal}; of plans within 1 % of it the lowest step, then the fewest chips"


def _smallest(candidates: Sequence[Option], recommended: Option | None) -> Option | None:
    smallest = min(candidates, key=lambda option: option.step.n_chips, default=None)
    if smallest and recommended and recommended.step.n_chips == smallest.step.n_chips:
        smallest = recommended
    return replace(smallest, why="fewest chips within the limits") if smallest else None


def _fastest(live: Sequence[Searched], batch: int | None) -> Option | None:
    """The lowest step; a lone sequence where that is quicker than a whole round of the batch shards."""
    if not live:
        return None
    searched = min(live, key=lambda s: (_quickest(s, batch)[0], s.deployment.slice.n_chips))
    return option_of(searched.deployment, _quickest(searched, batch)[1], "lowest step of all")


def _quickest(searched: Searched, asked: int | None) -> tuple[float, int]:
    """The lowest step of a candidate [s], and its batch: the one asked for, or any."""
    index = first_best(searched.step_s)
    step_s, batch = float(searched.step_s[index]), int(searched.batches[index])
    if asked is not None or batch != round_of(searched.deployment):
        return step_s, batch
    lone_s = float(searched.deployment.value("step_s", batch=1.0))
    return (lone_s, 1) if lone_s < step_s * (1 - ROUNDING) else (step_s, batch)


def _most_tokens(live: Sequence[Searched]) -> Option | None:
    if not live:
        return None
    fewest_first = sorted(live, key=lambda searched: searched.deployment.slice.n_chips)
    lost = [score(searched.deployment, "throughput", searched.batches) for searched in fewest_first]
    # Slices tie where the network does not bind: then the fewest chips, at the smallest batch.
    best = first_best(np.array([float(values.min()) for values in lost]))
    return _option((fewest_first[best], first_best(lost[best])), "most tokens per chip within the limits")


def _runner_up(candidates: Sequence[Option], recommended: Option | None) -> Option | None:
    if recommended is None:
        return None
    taken = _place(recommended)
    other = next((option for option in candidates if _place(option) != taken), None)
    return replace(other, why="best on another slice or precision") if other else None


def _place(option: Option) -> tuple[str, ...]:
    step = option.step
    return step.slice, step.layout, step.weight_dtype, step.kv_dtype, step.compute_dtype
