"""What to measure next: terms that the measurements cannot tell from each other, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from slicewise.calibrate.held_out import ENOUGH
from slicewise.calibrate.terms import Point

_APART = 1.5
"""Times by which repetitions may differ before something else than noise is to blame."""
_WIDE = 4
"""Times by which batches, or contexts, should differ at least for their terms to be told apart."""


def advice(own: Sequence[Point]) -> tuple[str, ...]:
    """What one chip's measurements leave open, the most important first; empty where nothing is.

    Args:
        own: measurements of one chip.
    """
    steps = [point for point in own if point.phase != "prefill"]
    prompts = [point for point in own if point.phase != "decode"]
    is_compiled = all(point.compiled_s for point in own)
    tells = " a layer's cost from the bandwidth, and" if not is_compiled else ""
    engines = sorted({point.measurement.engine for point in own if point.measurement.engine})
    mixed = f"Rows of {', '.join(engines)} are fitted as one: give each engine a file of its own."
    found = [
        *([mixed] if len(engines) > 1 else []),
        *_disagreeing(own),
        *_few(steps, "decode step"),
        *_steps(steps, is_compiled=is_compiled),
        *_few(prompts, "prefill"),
    ]
    if len({point.model for point in own}) == 1:
        found.append(
            f"All of it is of {own[0].model}: a second model, of another size, tells{tells} how well the figures carry"
            " over."
        )
    if len({point.n_chips for point in own}) == 1:
        chips = own[0].n_chips
        tells = (
            "the network and the waiting between chips from the rest" if not is_compiled else "what the network adds"
        )
        found.append(f"All of it ran on {chips} chip{'s' if chips > 1 else ''}: another number tells {tells}.")
    return tuple(found)


def _disagreeing(own: Sequence[Point]) -> list[str]:
    """Configurations whose repetitions lie far apart, which no figures tell."""
    seconds: dict[tuple[object, ...], list[float]] = {}
    for point in own:
        seconds.setdefault(point.measurement.configuration, []).append(point.measurement.seconds)
    apart = sum(max(each) > _APART * min(each) for each in seconds.values())
    if not apart:
        return []
    what = "1 configuration was" if apart == 1 else f"{apart} configurations were"
    return [f"{what} measured with times more than {_APART:g} times apart: what else differed?"]


def _few(points: Sequence[Point], noun: str) -> list[str]:
    if not points:
        return [f"No {noun} was measured: what is expected of one stays with the shipped figures."]
    if len(points) < ENOUGH:
        words = f"1 {noun} is" if len(points) == 1 else f"{len(points)} {noun}s are"
        return [f"{words} few: of several models, {ENOUGH} and more have a range of their own."]
    return []


def _steps(steps: Sequence[Point], *, is_compiled: bool) -> list[str]:
    """Batches and contexts that lie too near each other for their terms to be told apart."""
    if not steps:
        return []
    batches = {point.measurement.batch for point in steps}
    contexts = {point.measurement.held_tokens for point in steps}
    tells = "how far the ratio carries" if is_compiled else "FLOPs and the cost of a sequence from the rest"
    found = []
    if max(batches) < _WIDE * min(batches):
        found.append(f"Batches are {_span(batches)}: one at least {_WIDE} times larger tells {tells}.")
    tells = "how far the ratio carries" if is_compiled else "the rate at which the cache is read"
    if max(contexts) < _WIDE * max(min(contexts), 1):
        found.append(
            f"Contexts are {_span(contexts)}: one at least {_WIDE} times longer, at a large batch, tells {tells}."
        )
    return found


def _span(values: set[int] | set[float]) -> str:
    low, high = min(values), max(values)
    return f"all {low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
