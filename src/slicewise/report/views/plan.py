"""The document of `plan`: the answer first, then the candidates, the what-ifs and the refusals."""

from __future__ import annotations

from collections import Counter

from slicewise.planner.fleet import Fleet
from slicewise.planner.option import Option
from slicewise.planner.plan import Plan
from slicewise.report.document import Block, Document, Heading, Items, Line, Table
from slicewise.report.views.words import BOUND_BY, BOUNDS, TERM_WORDS, knee_sentence, ms, notes, rate, usd
from slicewise.units import show, show_gib


def plan_document(plan: Plan) -> Document:
    """The answer on one screen."""
    best = plan.recommended
    if best is None:
        return _refusal(plan)
    blocks: list[Block] = [Heading(_headline(plan, best)), *notes(best.step), *_numbers(best)]
    if plan.fleet:
        blocks.append(Line(_fleet(plan.fleet)))
    blocks += [_named(plan, best), _what_ifs(plan), Items("Not taken", _rejected(plan))]
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
        f"Run {plan.question.model.name} on {step.slice} ({chips}), {step.batch:,} sequences at a time,"
        f" {step.weight_dtype} weights and {step.kv_dtype} cache, for {asked}{_within(plan)}."
    )


def _within(plan: Plan) -> str:
    limits = plan.question.limits
    named = [("TPOT", limits.tpot_s), ("TTFT", limits.ttft_s)]
    given = [f"{name} {show(limit_s, 's')}" for name, limit_s in named if limit_s is not None]
    return f", within {' and '.join(given)}" if given else ""


def _numbers(best: Option) -> list[Block]:
    step = best.step
    terms = ", ".join(f"{words} {ms(getattr(step, name))}" for name, words in TERM_WORDS.items())
    cost = f"{usd(step.usd_per_million_output_tokens)} per million output tokens"
    if best.usd_per_million_input_tokens is not None:
        given = f"{usd(best.usd_per_million_input_tokens)} per million input tokens"
        cost = f"{given}, {cost}, {usd(best.request_usd)} a request"
    return [
        Line(f"Why: {best.why}."),
        Line(
            f"{ms(best.tpot_s)} a token (a bound), {rate(step.tokens_per_s)} tokens/s,"
            f" {rate(step.tokens_per_s_per_chip)} per chip; prefill {ms(best.ttft_s)} at"
            f" {step.deployment.mfu:.0%} of peak FLOPs; {cost}."
        ),
        Line(f"Bound by {BOUNDS[step.bound or '']}: {terms}."),
        Line(
            f"Memory per chip {show_gib(step.total_bytes_per_chip)} of {show_gib(step.hbm_bytes / step.n_chips)};"
            f" {step.max_batch:,} sequences fit. {knee_sentence(step)}"
        ),
        Line(
            f"While prefills run on the same chips a token waits {ms(best.tpot_shared_s)} on average"
            " (`slicewise disaggregate` splits them)."
        ),
    ]


def _fleet(fleet: Fleet) -> str:
    return (
        f"For {fleet.rate:g} requests/s: {fleet.replicas} replicas ({fleet.replicas_chips} chips,"
        f" {usd(fleet.replicas_usd_per_hour)} an hour), or {fleet.prefill_servers} prefill and"
        f" {fleet.decode_servers} decode servers ({fleet.split_chips} chips, {usd(fleet.split_usd_per_hour)} an hour)."
    )


def _cells(option: Option) -> list[str]:
    step = option.step
    price = step.usd_per_million_output_tokens
    return [
        f"{step.batch:,}",
        ms(step.step_s),
        rate(step.tokens_per_s),
        rate(step.tokens_per_s_per_chip),
        ms(option.ttft_s),
        "-" if price is None else show(price, "USD"),
        BOUND_BY.get(step.bound or "", ""),
    ]


_HEADER = ["batch", "step", "tok/s", "per chip", "prefill", "$/M out", "bound by"]
_OTHERS = 5


def _named(plan: Plan, best: Option) -> Table:
    named = [
        ("recommended", best),
        ("runner-up", plan.runner_up),
        ("fewest chips", plan.smallest),
        ("lowest step", plan.fastest),
        ("most per chip", plan.highest_throughput),
    ]
    rows: dict[tuple[str, str, int], tuple[str, Option]] = {}
    for label, option in [*named, *(("also", option) for option in plan.candidates)]:
        if option is None:
            continue
        place = (option.step.slice, _dtypes(option), option.step.batch)
        if place not in rows:
            rows[place] = (label, option)
        elif label != "also":
            rows[place] = (f"{rows[place][0]}, {label}", option)
    shown = list(rows.values())[: len(named) + _OTHERS]
    several = len(plan.question.precisions) > 1
    cells = [[label, o.step.slice, *([_dtypes(o)] if several else []), *_cells(o)] for label, o in shown]
    header = ["", "slice", *(["weights/cache"] if several else []), *_HEADER]
    return Table("Plans (all times are bounds)", header, cells, left=(0, 1, len(header) - 1), marked=0)


def _dtypes(option: Option) -> str:
    return f"{option.step.weight_dtype}/{option.step.kv_dtype}"


def _what_ifs(plan: Plan) -> Table:
    rows = [
        [what_if.change, *_cells(what_if.option)]
        if what_if.option
        else [what_if.change, *["-"] * (len(_HEADER) - 1), "beyond the limits"]
        for what_if in plan.what_ifs
    ]
    return Table("What if, on that slice", ["", *_HEADER], rows, left=(0, len(_HEADER)))


def _rejected(plan: Plan) -> list[str]:
    found = []
    for reason, count in Counter(item.reason for item in plan.rejected).items():
        slices = ", ".join(dict.fromkeys(item.slice for item in plan.rejected if item.reason == reason))
        # Of several the largest slice comes nearest, and says most.
        nearest = max((item for item in plan.rejected if item.reason == reason), key=lambda item: item.n_chips)
        found.append(f"{count} × {reason} ({slices}): {nearest.detail}")
    return found


def _refusal(plan: Plan) -> Document:
    asked = plan.question
    offers = [
        f"{what_if.change}: {what_if.option.step.batch:,} sequences on {what_if.option.step.slice},"
        f" {ms(what_if.option.tpot_s)} a token"
        for what_if in plan.what_ifs
        if what_if.option
    ]
    return [
        Heading(f"{asked.model.name}: no plan meets the limits"),
        Items("Why not", _rejected(plan)),
        Line(
            f"The least time that any of the slices needs to read the weights is {ms(plan.least_param_load_s)}"
            f" ({plan.least_param_load_slice})."
        ),
        Items(
            "What would", offers or ["none of the single changes tried: take larger slices (--chip), or relax a limit"]
        ),
    ]
