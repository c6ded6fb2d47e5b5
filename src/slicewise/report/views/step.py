"""The document of `step`."""

from __future__ import annotations

from slicewise.planner.step import Step
from slicewise.report.document import Document, Heading, Line, Table
from slicewise.report.views.words import (
    BOUNDS,
    assumed,
    cache_words,
    experts_lines,
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
    marked = [row[0] for row in views].index(step.view)
    return [
        Heading(f"{where}: {ms(step.step_s)} a step (a bound)"),
        Line(
            f"{rate(step.tokens_per_s)} tokens/s, {rate(step.tokens_per_s_per_chip)} per chip;"
            f" {show(step.requests_per_s_per_chip, '', 4)} requests/s per chip;"
            f" {usd(step.usd_per_million_output_tokens)} per million output tokens."
            f" Bound by {BOUNDS[step.bound or '']}."
        ),
        *notes(step),
        Line(numbers),
        *experts_lines(step),
        terms(step),
        Table("Views", ["", "step", "terms"], views, left=(0, 2), marked=marked),
        ledger(step),
        assumed(step.assumptions),
    ]
