"""The document of `memory`."""

from __future__ import annotations

from slicewise.planner.assumptions import assumptions
from slicewise.planner.memory import Memory
from slicewise.report.document import Block, Document, Heading, Line, Table
from slicewise.report.views.words import assumed, ledger, notes
from slicewise.units import show, show_gib


def memory_document(memory: Memory) -> Document:
    """Parameters, cache, the ledger of one slice and a row for each slice."""
    step = memory.ledger
    tried = [row.slice for row in memory.slices]
    if memory.slice_is_given:
        fits = f"fits {memory.smallest}" if memory.smallest else f"does not fit {', '.join(dict.fromkeys(tried))}"
    else:
        fits = f"smallest slice that fits: {memory.smallest}" if memory.smallest else "no slice fits"
    rows = [
        [
            row.slice,
            row.weight_dtype,
            row.kv_dtype,
            "yes" if row.fits else "no",
            f"{row.max_batch:,}",
            "unlimited" if row.max_context_tokens is None else f"{row.max_context_tokens:,}",
            show(row.total_bytes_per_chip, "B"),
            show(row.free_bytes / row.n_chips, "B"),
        ]
        for row in memory.slices
    ]
    batch = f"batch {step.batch:,}, {step.capacity_context_tokens:,.0f} tokens"
    blocks: list[Block] = [
        Heading(f"{step.model}, {batch}, {step.weight_dtype} weights, {step.kv_dtype} cache: {fits}"),
        Line(
            f"{step.n_params:,.0f} parameters ({memory.matmul_params:,.0f} in matmuls), {show_gib(step.weight_bytes)};"
            f" KV cache {show(step.kv_bytes_per_token, 'B')} a token,"
            f" {show(memory.kv_bytes_per_sequence, 'B')} a sequence."
        ),
    ]
    if step.reason:
        blocks.append(Line(f"{step.reason}."))
    header = ["slice", "weights", "cache", "fits", "max batch", "max context", "used per chip", "free per chip"]
    marked = next((i for i, row in enumerate(memory.slices) if row.slice == memory.smallest), -1)
    slices = Table(f"Where it fits ({batch})", header, rows, left=(0, 1, 2, 3), marked=marked)
    kinds = ("context", "memory", "model", "params", "weights", "shards")
    kept = assumptions(step.deployment, batch=step.batch, kinds=kinds)
    return [*blocks, *notes(step), slices, _named_ledger(memory), assumed(kept)]


def _named_ledger(memory: Memory) -> Table:
    table = ledger(memory.ledger)
    return Table(f"Memory of {memory.ledger.slice}", table.header, table.rows, left=table.left)
