"""The document of `frontier`: a few batches of each context; the figures and files hold all of them."""

from __future__ import annotations

from typing import Any

from slicewise.planner.assumptions import assumptions
from slicewise.planner.frontier import Frontier
from slicewise.report.charts import breakdown_spec, frontier_spec
from slicewise.report.document import Document, Heading, Items, Table
from slicewise.report.views.words import assumed, ms, rate
from slicewise.units import parse_positive


def frontier_document(frontier: Frontier) -> Document:
    """Batches at powers of two and the largest, by context."""
    columns = frontier.columns
    most = {float(context): batch for context, batch in frontier.max_batch.items()}
    rows = []
    for index, (context, batch) in enumerate(zip(columns["context_tokens"], columns["batch"], strict=True)):
        if int(batch) & (int(batch) - 1) and batch != most.get(float(int(context))):
            continue
        times = [ms(columns[name][index]) for name in ("param_load_s", "kv_load_s", "matmul_s", "ici_s")]
        cells = [f"{context:,.0f}", f"{batch:,.0f}", ms(columns["step_s"][index])]
        rows.append([*cells, rate(columns["tokens_per_s_per_chip"][index]), *times])
    if not frontier.fits:
        reasons = [f"{context:,} tokens: {reason}" for context, reason in frontier.reasons.items()]
        return [Heading(f"{frontier.model} on {frontier.slice}: does not fit"), Items("Why not", reasons)]
    header = ["context", "batch", "step", "tok/s per chip", "parameters", "KV cache", "FLOPs", "network"]
    largest = ", ".join(f"{most} at {context:,}" for context, most in frontier.max_batch.items())
    return [
        Heading(f"{frontier.model} on {frontier.slice}: latency against throughput; largest batch {largest} tokens"),
        Table("", header, rows, left=()),
        Items("Does not fit", [f"{context:,} tokens: {reason}" for context, reason in frontier.reasons.items()]),
        assumed(assumptions(frontier.deployment)[:3]),
    ]


def frontier_specs(frontier: Frontier, tpot: str | None = None) -> dict[str, dict[str, Any]]:
    """The two figures: latency against throughput, and the step of the first context broken down over the batch."""
    limit_s = None if tpot is None else parse_positive(tpot, "s", "--tpot")
    deployment = frontier.deployment
    subtitle = f"{deployment.precision}; {deployment.conventions.view} view, every time a bound"
    name = f"{frontier.model} on {frontier.slice}"
    return {
        "frontier": frontier_spec(
            _whole_rounds(frontier),
            title=f"Latency against throughput: {name}",
            subtitle=subtitle,
            critical_batch=frontier.critical_batch,
            limit_s=limit_s,
        ),
        "breakdown": breakdown_spec(
            frontier.columns,
            context_tokens=deployment.workload.context_tokens,
            title=f"Where a decode step's time goes: {name}",
            subtitle=f"{deployment.workload.context_tokens:,.0f} tokens of context; {subtitle}",
            critical_batch=frontier.critical_batch,
        ),
    }


def _whole_rounds(frontier: Frontier) -> dict[str, list[float]]:
    """The columns at batches that fill every batch shard, with one sequence and the most that fit.

    Batches in between leave chips idle: they are no slower than the next full round and do less.
    """
    shards = frontier.deployment.layout.batch_shards if frontier.deployment.conventions.split == "whole" else 1
    ends = {1.0, *map(float, frontier.max_batch.values())}
    kept = [i for i, batch in enumerate(frontier.columns["batch"]) if batch % shards == 0 or batch in ends]
    return {name: [column[i] for i in kept] for name, column in frontier.columns.items()}
