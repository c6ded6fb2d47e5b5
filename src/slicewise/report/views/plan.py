"""The document of `plan`: the answer first, then the candidates, the what-ifs and the refusals."""

from __future__ import annotations

from collections import Counter

from slicewise.planner.feasible import PRICE
from slicewise.planner.fleet import Fleet
from slicewise.planner.option import Option
from slicewise.planner.plan import Plan, Rejected
from slicewise.report.document import Block, Document, Heading, Items, Line
from slicewise.report.views.expected import TOLD, figures_table, spread, told
from slicewise.report.views.plan_tables import plan_tables
from slicewise.report.views.words import (
    BOUNDS,
    TERM_WORDS,
    experts_lines,
    kind,
    knee_sentence,
    ms,
    notes,
    rate,
    usd,
)
from slicewise.units import show, show_gib


def plan_document(plan: Plan) -> Document:
    """The answer, its figures, and the plans beside it."""
    best = plan.recommended
    if best is None:
        return _refusal(plan)
    blocks: list[Block] = [Heading(_headline(plan, best)), *notes(best.step), *_unranked(plan), *_numbers(plan, best)]
    if plan.fleet:
        blocks += _fleet(plan.fleet)
    blocks += [*_figures(best), *plan_tables(plan, best), Items("Not taken", _rejected(plan))]
    return [*blocks, Items("Assumed", [" ".join(best.step.assumptions)])]


def _headline(plan: Plan, best: Option) -> str:
    step, lengths = best.step, plan.question.workload
    asked = (
        f"{lengths.context_tokens:,.0f} tokens of context"
        if lengths.context_is_set
        else f"{lengths.prompt_tokens:,} prompt and {lengths.output_tokens:,} output tokens"
    )
    chips = f"{step.n_chips} chip{'s' if step.n_chips > 1 else ''}"
    return (
        f"Run {plan.question.model.name} on {step.slice} ({chips}{f', {step.layout}' if step.layout else ''}),"
        f" {_counted(step.batch, 'sequence')} at a time, {step.weight_dtype} weights and {step.kv_dtype} cache,"
        f" for {asked}{_within(plan)}."
    )


def _within(plan: Plan) -> str:
    limits = plan.question.limits
    named = [("TPOT", limits.tpot_s), ("TTFT", limits.ttft_s)]
    given = [f"{name} {show(limit_s, 's')}" for name, limit_s in named if limit_s is not None]
    return f", within {' and '.join(given)}" if given else ""


def _unranked(plan: Plan) -> list[Line]:
    slices = dict.fromkeys(item.slice.split(":")[0] for item in plan.rejected if item.reason == PRICE)
    return [Line(f"Note: {name} has no price and is not ranked; give --price {name}=USD.") for name in slices]


def _numbers(plan: Plan, best: Option) -> list[Block]:
    step = best.step
    terms = ", ".join(f"{words} {ms(getattr(step, name))}" for name, words in TERM_WORDS.items())
    cost = f"{usd(step.usd_per_million_output_tokens)} per million output tokens"
    if best.usd_per_million_input_tokens is not None:
        given = f"{usd(best.usd_per_million_input_tokens)} per million input tokens"
        cost = f"{given}, {cost}, {usd(best.request_usd)} a request"
    return [
        Line(f"Why: {best.why}."),
        Line(
            f"{ms(best.tpot_s)} a token ({_told(best, 'step_s')}), {rate(step.tokens_per_s)} tokens/s,"
            f" {rate(step.tokens_per_s_per_chip)} per chip; prefill {ms(best.ttft_s)}{_utilisation(best)}; {cost}."
        ),
        Line(f"{_bound_words(best)} {BOUNDS[step.bound or '']}: {terms}."),
        Line(
            f"Memory per chip {show_gib(step.total_bytes_per_chip)} of {show_gib(step.hbm_bytes / step.n_chips)};"
            f" {step.max_batch:,} sequences fit. {knee_sentence(step)}"
        ),
        *experts_lines(step),
        Line(
            f"While prefills run on the same chips a token takes {ms(best.tpot_shared_s)} on average"
            f"{_over_limit(plan, best)} (`slicewise disaggregate` splits them)."
        ),
    ]


def _told(best: Option, name: str) -> str:
    """What kind of figure a number is, with the others of it."""
    if best.step.view == "expected" and best.step.figures:
        return f"expected; {spread(name, best.step.figures[name])}"
    return kind(best.step)


def _utilisation(best: Option) -> str:
    """The assumption that prefill's time rests on in views of bounds."""
    return " expected" if best.step.view == "expected" else f" at {best.step.deployment.mfu:.0%} of peak FLOPs"


def _bound_words(best: Option) -> str:
    return "The bound is set by" if best.step.view == "expected" else "Bound by"


_FIGURES = (
    "step_s",
    "tokens_per_s",
    "tokens_per_s_per_chip",
    "ttft_s",
    "tpot_shared_s",
    "usd_per_million_input_tokens",
    "usd_per_million_output_tokens",
    "request_usd",
)
"""Numbers of the plan that are told three times; --json has all of them."""


def _figures(best: Option) -> list[Block]:
    """Three figures of every number of the recommended plan."""
    if best.figures is None:
        return []
    found = {**(best.step.figures or {}), **best.figures}
    return [figures_table({name: found[name] for name in _FIGURES if name in found})]


def _over_limit(plan: Plan, best: Option) -> str:
    """Whether the TPOT limit holds for decode alone."""
    limit_s = plan.question.limits.tpot_s
    if limit_s is None or best.tpot_shared_s <= limit_s:
        return ""
    return f", over the TPOT limit of {show(limit_s, 's')}, which holds on servers that only decode"


def _fleet(fleet: Fleet) -> list[Line]:
    one_kind = (
        f"{_counted(fleet.replicas, 'replica')} ({_counted(fleet.replicas_chips, 'chip')},"
        f" {usd(fleet.replicas_usd_per_hour)} an hour) with {ms(fleet.replicas_tpot_s)} a token on average, prefills in"
        f" between{_kept(fleet.replicas_meet_limits)}"
    )
    first = "an unknown time (give --network)" if fleet.split_ttft_s is None else ms(fleet.split_ttft_s)
    split = (
        f"{fleet.prefill_servers:,} prefill and {_counted(fleet.decode_servers, 'decode server')}"
        f" ({_counted(fleet.split_chips, 'chip')}, {usd(fleet.split_usd_per_hour)} an hour) with"
        f" {ms(fleet.split_tpot_s)} a token and {first} to the first{_kept(fleet.split_meets_limits)}"
    )
    return [Line(f"For {fleet.requests_per_s:g} requests/s, on average and without queues: {one_kind}; or {split}.")]


def _kept(meets: bool | None) -> str:  # noqa: FBT001 - a clause of a sentence
    if meets is None:
        return ", so whether it keeps the limits is not known"
    return "" if meets else ", which breaks the limits (`slicewise disaggregate` looks for a batch that keeps them)"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _rejected(plan: Plan) -> list[str]:
    found = []
    for reason, count in Counter(item.reason for item in plan.rejected).items():
        slices = ", ".join(dict.fromkeys(_where(item) for item in plan.rejected if item.reason == reason))
        # Of several the largest slice comes nearest, and says most.
        nearest = max((item for item in plan.rejected if item.reason == reason), key=lambda item: item.n_chips)
        found.append(f"{count} × {reason} ({slices}): {nearest.detail}")
    return found


def _where(item: Rejected) -> str:
    return f"{item.slice} as {item.layout}" if item.layout else item.slice


def _step(option: Option) -> str:
    found = option.step.figures
    return ms(option.tpot_s) if found is None else told("step_s", found["step_s"])


def _refusal(plan: Plan) -> Document:
    asked = plan.question
    told_thrice = any(what_if.option and what_if.option.step.figures for what_if in plan.what_ifs)
    offers = [
        f"{what_if.change}: {what_if.option.step.batch:,} sequences on {what_if.option.step.slice},"
        f" {_step(what_if.option)} a token"
        for what_if in plan.what_ifs
        if what_if.option
    ]
    return [
        Heading(f"{asked.model.name}: no plan meets the limits"),
        Items("Why not", _rejected(plan)),
        Line(
            f"The least time that any of the slices needs to read the weights is {ms(plan.least_param_load_s)}"
            f" ({plan.least_param_load.slice.name})."
        ),
        Items(
            f"What would{f', {TOLD}' if told_thrice else ''}",
            offers or ["none of the single changes tried: take larger slices (--chip), or relax a limit"],
        ),
    ]
