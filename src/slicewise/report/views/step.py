"""The document of `step`."""

from __future__ import annotations

from slicewise.planner.step import Step
from slicewise.report.document import Document, Heading, Line, Table
from slicewise.report.views.expected import figures_table, terms_table
from slicewise.report.views.words import (
    BOUNDS,
    assumed,
    cache_words,
    experts_lines,
    kind,
    knee_sentence,
    ledger,
    ms,
    notes,
    rate,
    terms,
    usd,
)
from slicewise.units import show


def step_document(step: Step) -> Document:
    """Ledger, terms, views, throughput and cost of one decode step."""
    laid_out = f" ({step.layout})" if step.layout else ""
    where = f"{step.model} on {step.slice}{laid_out}, batch {step.batch:,}, {step.context_tokens:,.0f} tokens held"
    numbers = (
        f"KV cache: {cache_words(step)}; {step.kv_head_shards} head shards by"
        f" {step.kv_batch_shards} batch shards. {step.max_batch:,} sequences fit; critical batch"
        f" {show(step.critical_batch, '', 4)}. {knee_sentence(step)}"
    )
    if not step.fits:
        return [Heading(f"{where}: does not fit"), Line(f"{step.reason}."), ledger(step), Line(numbers)]
    views = [
        ["roofline", ms(step.step_roofline_s), "attention + max(matmul, parameters)"],
        ["overlapped", ms(step.step_overlapped_s), "attention + max(matmul, parameters, network)"],
        ["serial", ms(step.step_serial_s), "attention + max(matmul, parameters) + network"],
    ]
    if step.step_expected_s is not None:
        views.append(["expected", ms(step.step_expected_s), "each term at the rate that is reached, and layers"])
    marked = [row[0] for row in views].index(step.view)
    return [
        Heading(f"{where}: {_headline(step)}"),
        Line(
            f"{_at(step)}{rate(step.tokens_per_s)} tokens/s, {rate(step.tokens_per_s_per_chip)} per chip;"
            f" {show(step.requests_per_s_per_chip, '', 4)} requests/s per chip;"
            f" {usd(step.usd_per_million_output_tokens)} per million output tokens."
            f" Bound by {BOUNDS[step.bound or '']}."
        ),
        *notes(step),
        Line(numbers),
        *experts_lines(step),
        terms(step),
        Table("Views", ["", "step", "terms"], views, left=(0, 2), marked=marked),
        *_expected(step),
        ledger(step),
        assumed(step.assumptions),
    ]


def _headline(step: Step) -> str:
    if step.step_expected_s is None:
        return f"{ms(step.step_s)} a step ({kind(step)})"
    bound_s = step.step_roofline_s if step.view == "roofline" else step.step_overlapped_s
    ends = f"{ms(step.step_low_s)} to {ms(step.step_high_s)}"
    told = f"{ms(step.step_expected_s)} a step expected ({ends}), {ms(bound_s)} at least (a bound)"
    return f"{told}, {ms(step.step_s)} without overlap" if step.view == "serial" else told


def _at(step: Step) -> str:
    """Which of the figures the rates follow from."""
    if step.step_expected_s is None:
        return ""
    return {"expected": "As expected: ", "serial": "Without overlap: "}.get(step.view, "At the bound: ")


def _expected(step: Step) -> list[Table]:
    """Three figures of every number, and the terms of the expected step."""
    if step.figures is None or step.expected_terms is None:
        return []
    whose = f"The expected step, of {step.expected_engine}"
    return [figures_table(step.figures), terms_table(step.expected_terms, whose)]
