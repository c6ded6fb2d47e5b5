"""Plans beside the one that is shown: candidates, the next best, and what one change would do where nothing fits."""

from __future__ import annotations

from collections import Counter
from typing import Any

from slicewise.planner.deployment import Deployment
from slicewise.planner.option import Option
from slicewise.planner.search import Searched
from slicewise.planner.whatif import WhatIf, what_ifs
from slicewise.report.explorer.commands import door_to
from slicewise.report.explorer.found import Found
from slicewise.report.explorer.numbers import PLAN, number, row

MOST_LISTED = 24
Document = dict[str, Any]
_SHORT = (("step", "decode step"), ("tokens_per_chip", "tokens per chip"), ("usd", "a million output tokens"))


def other_plans(found: Found) -> tuple[Document, Document]:
    """The parts of the document that tell of other plans, and the doors behind their numbers.

    Returns:
        runner_up, candidates and what_ifs; and by the name of each door the words behind it.
    """
    listed = found.in_order[:MOST_LISTED]
    candidates = [_candidate(found, searched, _door(searched)) for searched in listed]
    doors = {_door(searched): door_to(found, searched.deployment, _batch(found, searched)) for searched in listed}
    # Only where there is no answer; a plan tells more of them.
    changes = what_ifs(found.question, found.searched, None) if found.option is None else ()
    named = {f"what if {what_if.change}": what_if for what_if in changes}
    doors |= {
        door: door_to(found, what_if.option.step.deployment, what_if.option.step.batch)
        for door, what_if in named.items()
        if what_if.option
    }
    parts = {
        "runner_up": _runner_up(found, listed, candidates),
        "candidates": candidates,
        "what_ifs": [_what_if(what_if, door) for door, what_if in named.items()],
    }
    return parts, doors


def _door(searched: Searched) -> str:
    """The name of a candidate's door: its place, so that it is the same one whatever its rank."""
    deployment = searched.deployment
    formats = f"{deployment.precision.weights}/{deployment.precision.kv}/{deployment.precision.compute}"
    return " ".join(filter(None, ("plan", deployment.slice.name, deployment.layout_name, formats)))


def _batch(found: Found, searched: Searched) -> int:
    """The best batch of a candidate; of the one that is shown, the batch that is shown."""
    return found.step.batch if searched.deployment is found.deployment else int(searched.batches[searched.best])


def _candidate(found: Found, searched: Searched, door: str) -> Document:
    deployment, batch = searched.deployment, _batch(found, searched)
    priced = ["usd_per_million_output_tokens"] if deployment.price else []
    if deployment.price and not deployment.workload.context_is_set:
        priced.append("request_usd")
    names = ["step_s", "tokens_per_s", "tokens_per_s_per_chip", deployment.ttft, *priced]
    values = {name: float(value) for name, value in deployment.evaluate(names, batch=batch).items()}
    return {
        "slice": deployment.slice.name,
        "n_chips": deployment.slice.n_chips,
        "layout": deployment.layout_name,
        "weight_dtype": deployment.precision.weights,
        "kv_dtype": deployment.precision.kv,
        "is_chosen": deployment is found.deployment,
        "words": _words(found, deployment, batch),
        "batch": number("batch", batch, door=PLAN if found.option and deployment is found.deployment else door),
        "step": number("step_s", values["step_s"], door=door),
        "tokens": number("tokens_per_s", values["tokens_per_s"], door=door),
        "tokens_per_chip": number("tokens_per_s_per_chip", values["tokens_per_s_per_chip"], door=door),
        "ttft": number("ttft_s", values[deployment.ttft], door=door),
        "usd": number("usd_per_million_output_tokens", values.get("usd_per_million_output_tokens"), door=door),
        "request_usd": number("request_usd", values.get("request_usd"), door=door),
    }


def _words(found: Found, deployment: Deployment, batch: int) -> Document:
    """The words that take a candidate: what tells it from the others, and the batch."""
    said: Document = {"slice": [deployment.slice.name], "batch": batch}
    precisions = found.question.precisions
    for word, dtype, others in (
        ("weights", deployment.precision.weights, {one.weights for one in precisions}),
        ("kv", deployment.precision.kv, {one.kv for one in precisions}),
    ):
        if len(others) > 1:
            said[word] = [dtype]
    alike = Counter((one.deployment.slice.name, one.deployment.precision) for one in found.searched)
    if deployment.ranks and alike[deployment.slice.name, deployment.precision] > 1:
        ranks = deployment.ranks
        said |= {"tp": ranks.tp, "pp": ranks.pp, "dp": ranks.dp, "ep": ranks.ep}
    return said


def _runner_up(found: Found, listed: list[Searched], candidates: list[Document]) -> Document | None:
    """The best on another slice or in other formats."""
    if found.option is None:
        return None
    taken = _place(found.deployment)
    told = next(
        (one for searched, one in zip(listed, candidates, strict=True) if _place(searched.deployment) != taken), None
    )
    if told is None:
        return None
    return {
        "text": f"{told['slice']}, {told['batch']['text']} at a time",
        "words": told["words"],
        "rows": [row(words, told[key]) for key, words in _SHORT if told[key]],
    }


def _place(deployment: Deployment) -> tuple[object, ...]:
    return deployment.slice.name, deployment.layout_name, deployment.precision


def _what_if(what_if: WhatIf, door: str) -> Document:
    numbers = None if what_if.option is None else _numbers(what_if.option, door)
    return {"text": what_if.change, "reason": what_if.reason, "numbers": numbers}


def _numbers(option: Option, door: str) -> Document:
    return {
        "batch": number("batch", option.step.batch, door=door),
        "step": number("step_s", option.step.step_s, door=door),
        "tokens": number("tokens_per_s", option.step.tokens_per_s, door=door),
    }
