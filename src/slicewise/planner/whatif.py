"""What-ifs, computed: the recommended slice with one thing changed. Offered, never chosen unasked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from slicewise.catalog.slices import standard_slices
from slicewise.costs.serving import longest_context_tokens, mean_context_tokens
from slicewise.planner.choose import choose
from slicewise.planner.deployment import Deployment
from slicewise.planner.option import Option, option_of
from slicewise.planner.question import Question
from slicewise.planner.search import Searched, search
from slicewise.spec.precision import NARROWER
from slicewise.spec.topology import Slice
from slicewise.spec.workload import Workload


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """One change and what the best plan would then be.

    Attributes:
        change: what is changed, in words.
        option: the best batch then; None where it is still refused.
        reason: why it is refused then.
    """

    change: str
    option: Option | None
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        option = self.option.to_dict() if self.option else None
        return {"change": self.change, "option": option, "reason": self.reason}


def what_ifs(question: Question, found: Sequence[Searched], chosen: Deployment | None) -> tuple[WhatIf, ...]:
    """Narrower weights, a narrower cache, the doubled slice and half the context, each on its own.

    Where nothing was chosen they start from the largest slice that was tried.
    """
    if not found:
        return ()
    base = chosen or max((s.deployment for s in found), key=lambda d: d.slice.n_chips)
    enough = [] if chosen else _enough_chips(question, base)
    told = {what_if.option.step.slice for what_if in enough if what_if.option}
    tried = [
        _tried(question, change, deployments)
        for change, deployments in _changes(question, base)
        if not any(one.slice.name in told for one in deployments)
    ]
    return (*enough, *tried)


def _enough_chips(question: Question, base: Deployment) -> list[WhatIf]:
    """The smallest standard slice of the chip that meets the limits, beyond those that were asked about."""
    asked = {slice_.name for slice_ in question.slices}
    others = sorted((s for s in standard_slices(base.slice.chip) if s.name not in asked), key=lambda s: s.n_chips)
    for slice_ in others:
        what_if = _tried(question, f"{slice_.n_chips} chips ({slice_.name})", _on(question, base, slice_))
        if what_if.option:
            return [what_if]
    return []


def _changes(question: Question, base: Deployment) -> list[tuple[str, tuple[Deployment, ...]]]:
    now = base.precision
    has_fp8 = "fp8" in base.slice.chip.flops_per_s
    weights = NARROWER.get(now.weights, ())
    caches = tuple("fp8" if has_fp8 and dtype == "int8" else dtype for dtype in NARROWER.get(now.kv, ())[:1])
    narrower: list[tuple[str, dict[str, Any]]] = [
        (f"{dtype} weights", {"weights": dtype, "as_stored": False}) for dtype in weights
    ]
    narrower += [(f"{dtype} cache", {"kv": dtype}) for dtype in caches]
    for dtype, cache in zip(weights[:1], caches, strict=False):
        both = {"weights": dtype, "as_stored": False, "kv": cache}
        narrower.append((f"{dtype} weights and {cache} cache", both))
    changes: list[tuple[str, tuple[Deployment, ...]]] = [
        (words, (base.with_(precision=replace(now, **change)),)) for words, change in narrower
    ]
    doubled = _doubled(base.slice)
    if doubled:
        changes.append((f"twice the chips ({doubled.name})", _on(question, base, doubled)))
    half = _half(base.workload)
    if half:
        words = f"half the context ({half.capacity_context_tokens:,.0f} tokens)"
        changes.append((words, (base.with_(workload=half),)))
    return changes


def _on(question: Question, base: Deployment, slice_: Slice) -> tuple[Deployment, ...]:
    """The same on another slice: cut evenly where it was, else in every layout that was asked for."""
    if base.ranks is None:
        return (base.with_(slice=slice_),)
    return question.deployments(slice_, base.precision)


def _doubled(slice_: Slice) -> Slice | None:
    return next((s for s in standard_slices(slice_.chip) if s.n_chips == 2 * slice_.n_chips), None)


def _half(workload: Workload) -> Workload | None:
    if workload.prompt_tokens == 1:
        return None
    prompt, output = workload.prompt_tokens // 2, workload.output_tokens
    if workload.context_is_set:
        held = max(1.0, workload.context_tokens // 2)
        return replace(workload, prompt_tokens=prompt, context_tokens=held, capacity_context_tokens=held)
    if workload.context_tokens == workload.prompt_tokens:
        # The book counts the prompt alone.
        return replace(workload, prompt_tokens=prompt, context_tokens=prompt, capacity_context_tokens=prompt)
    return replace(
        workload,
        prompt_tokens=prompt,
        context_tokens=float(mean_context_tokens(prompt, output)),
        capacity_context_tokens=float(longest_context_tokens(prompt, output)),
    )


def _tried(question: Question, change: str, deployments: tuple[Deployment, ...]) -> WhatIf:
    tried = [search(deployment, question.limits, question.objective, question.batch) for deployment in deployments]
    fitting = [searched for searched in tried if searched.verdict.fits]
    if not fitting:
        why = tried[0].verdict.detail if tried else "no layout of what was asked for is legal there"
        return WhatIf(change=change, option=None, reason=why)
    searched, index = choose(fitting) or (fitting[0], fitting[0].best)
    option = option_of(searched.deployment, int(searched.batches[index]), f"with {change}")
    return WhatIf(change=change, option=option, reason=None)
