"""What to measure next: terms that the measurements cannot tell from each other, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from slicewise.calibrate.terms import Point

ENOUGH = 8
"""Measurements of a phase from which a range is its own."""
_WIDE = 4
"""Times by which batches, or contexts, should differ at least for their terms to be told apart."""


def advice(own: Sequence[Point]) -> tuple[str, ...]:
    """What one chip's measurements leave open, the most important first; empty where nothing is.

    Args:
        own: measurements of one chip.
    """
    steps = [point for point in own if point.phase != "prefill"]
    prompts = [point for point in own if point.phase != "decode"]
    found = [*_steps(steps), *_prompts(prompts)]
    if len({point.model for point in own}) == 1:
        found.append(
            f"All of it is of {own[0].model}: a second model, of another size, tells the cost of a layer from the"
            " bandwidth, and how well the figures carry over."
        )
    if len({point.n_chips for point in own}) == 1:
        chips = own[0].n_chips
        found.append(
            f"All of it ran on {chips} chip{'s' if chips > 1 else ''}: another number tells the network and the waiting"
            " between chips from the rest."
        )
    return tuple(found)


def _steps(steps: Sequence[Point]) -> list[str]:
    if not steps:
        return ["No decode step was measured: what is expected of one stays with the shipped figures."]
    found = []
    batches = {point.measurement.batch for point in steps}
    contexts = {point.measurement.held_tokens for point in steps}
    if len(steps) < ENOUGH:
        found.append(f"{len(steps)} steps are few: from {ENOUGH} on their range is their own.")
    if max(batches) < _WIDE * min(batches):
        found.append(
            f"Batches are {_span(batches)}: one at least {_WIDE} times larger tells FLOPs and the cost of a sequence"
            " from the rest."
        )
    if max(contexts) < _WIDE * max(min(contexts), 1):
        found.append(
            f"Contexts are {_span(contexts)}: one at least {_WIDE} times longer, at a large batch, tells the rate at"
            " which the cache is read."
        )
    return found


def _prompts(prompts: Sequence[Point]) -> list[str]:
    if not prompts:
        return ["No prefill was measured: what is expected of one stays with the shipped figures."]
    if len(prompts) < ENOUGH:
        return [f"{len(prompts)} prefills are few: from {ENOUGH} on their range is their own."]
    return []


def _span(values: set[int] | set[float]) -> str:
    low, high = min(values), max(values)
    return f"all {low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
