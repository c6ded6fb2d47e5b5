"""The document of `memory`."""

from __future__ import annotations

import math

from slicewise.planner.assumptions import assumptions
from slicewise.planner.engine_memory import EngineMemory
from slicewise.planner.memory import Memory
from slicewise.planner.step import Step
from slicewise.report.document import Block, Document, Heading, Items, Line, Table
from slicewise.report.views.words import assumed, cache_words, notes
from slicewise.units import GB, GIB, show, show_gib


def memory_document(memory: Memory) -> Document:
    """Parameters, cache, the ledger of one slice and a row for each slice."""
    step = memory.ledger
    tried = [row.slice for row in memory.slices]
    if memory.slice_is_given:
        fits = f"fits {memory.smallest}" if memory.smallest else f"does not fit {', '.join(dict.fromkeys(tried))}"
    else:
        fits = f"smallest slice that fits: {memory.smallest}" if memory.smallest else "no slice fits"
    if memory.engine and step.fits and not memory.engine.log.starts:
        length = f"requests of {memory.engine.log.max_model_len:,} tokens"
        fits = f"{memory.engine.log.engine} refuses to start on {step.slice} for {length}"
    rows = [
        [
            row.slice,
            row.weight_dtype,
            row.kv_dtype,
            "yes" if row.fits else "no",
            f"{row.max_batch:,}",
            _context(row.max_context_tokens, step.deployment.model.max_context_tokens),
            show(row.total_bytes_per_chip, "B"),
            show(row.free_bytes / row.n_chips, "B"),
        ]
        for row in memory.slices
    ]
    batch = f"batch {step.batch:,}, {step.capacity_context_tokens:,.0f} tokens"
    blocks: list[Block] = [
        Heading(f"{step.model}, {batch}, {step.weight_dtype} weights, {step.kv_dtype} cache: {fits}"),
        Line(
            f"{step.n_params:,.0f} parameters{_active(memory)}, {show_gib(step.weight_bytes)};"
            f" KV cache {cache_words(step)}: {_a_sequence(step)}."
        ),
    ]
    blocks.append(Line(f"{step.reason}.") if step.reason else _used(step))
    blocks += _roles(memory)
    header = ["slice", "weights", "cache", "fits", "max batch", "max context", "used per chip", "free per chip"]
    marked = next((i for i, row in enumerate(memory.slices) if row.slice == memory.smallest), -1)
    slices = Table(f"Where it fits ({batch})", header, rows, left=(0, 1, 2, 3), marked=marked)
    kinds = ("context", "memory", "model", "params", "weights", "shards")
    kept = assumptions(step.deployment, batch=step.batch, kinds=kinds)
    laid_out = [Line(f"Layout: {step.layout}. {_legal(memory)}")] if memory.legal_layouts else []
    return [
        *blocks,
        *notes(step),
        *laid_out,
        *_engine(memory.engine, step.deployment.conventions.memory_fraction),
        slices,
        _lines(memory),
        assumed(kept),
    ]


_FEW = 8


def _legal(memory: Memory) -> str:
    """The plainest of the legal layouts."""
    more = len(memory.legal_layouts) - _FEW
    others = f" and {more} more (--json)" if more > 0 else ""
    return f"Legal layouts on {memory.ledger.slice}: {', '.join(memory.legal_layouts[:_FEW])}{others}."


def _active(memory: Memory) -> str:
    step = memory.ledger
    if step.n_active_params == step.n_params:
        return f" ({memory.matmul_params:,.0f} in matmuls)"
    return f" ({step.n_active_params:,.0f} active a token, {memory.matmul_params:,.0f} of them in matmuls)"


def _a_sequence(step: Step) -> str:
    """Bytes of one sequence, and how often the ranks keep it."""
    copies = float(step.deployment.value("kv_copies")) if step.deployment.ranks else 1.0
    one = f"{show_gib(step.kv_bytes_per_sequence / copies)} a sequence"
    return one if copies == 1 else f"{one}, kept {show(copies, '', 3)} times over {step.layout}"


def _roles(memory: Memory) -> list[Block]:
    """What the parameters are for; a count that was given has no parts."""
    if memory.ledger.deployment.params is not None:
        return []
    parts = (f"{role.replace('_', ' ')} {size:,}" for role, size in memory.params_by_role.items())
    return [Line(f"Parameters by role: {', '.join(parts)}.")]


def _context(tokens: int | None, stated: float) -> str:
    """The longest context that fits, and the model's own limit where that is shorter."""
    if tokens is None:
        return "unlimited" if stated == math.inf else f"unlimited (model limit {stated:,.0f})"
    return f"{tokens:,}" if tokens <= stated else f"{tokens:,} (model limit {stated:,.0f})"


def _lines(memory: Memory) -> Table:
    """Where the memory of the fullest chip goes."""
    rows = [
        [
            line.name,
            _gib(line.n_bytes, line.most_bytes, GIB),
            _gib(line.n_bytes, line.most_bytes, GB),
            line.certainty,
            line.why,
        ]
        for line in memory.lines
    ]
    title = f"Memory of the fullest chip of {memory.ledger.slice}"
    return Table(title, ["", "GiB", "GB", "", ""], rows, left=(0, 3, 4), wrapped=(4,))


def _used(step: Step) -> Line:
    """What a slice holds in all, of what it grants."""
    return Line(
        f"Weights, cache and activations take {show_gib(step.total_bytes)} of the {show_gib(step.hbm_bytes)} that"
        f" {step.slice} grants; {show_gib(step.total_bytes / step.n_chips)} on its fullest chip."
    )


def _gib(low: float, high: float, unit: float) -> str:
    if low == high:
        return f"{low / unit:,.3f}"
    return f"{low / unit:,.2f} to {high / unit:,.2f}"


def _engine(found: EngineMemory | None, memory_fraction: float) -> list[Block]:
    """What the engine will log, and what a figure that it logged implies."""
    if found is None:
        return []
    log = found.log
    if log.kv_bytes_per_chip <= 0:
        return [Line(f"{log.engine} will not start: weights and what it keeps leave nothing for the cache.")]
    title = f"Your engine will log ({log.engine}, each chip, at memory fraction {memory_fraction:g})"
    blocks: list[Block] = [Items(title, log.lines)]
    if found.least and found.most and found.least.tokens is not None and found.most.tokens is not None:
        least, most = found.least, found.most
        blocks.append(
            Line(
                f"The engine keeps more or less for itself: {least.kv_bytes_per_chip / GIB:.2f} to"
                f" {most.kv_bytes_per_chip / GIB:.2f} GiB of cache, {least.tokens:,} to {most.tokens:,} tokens; what is"
                " shown takes the middle. Give --reserve, or the figure that it logged (--logged-kv-gib)."
            )
        )
    blocks += [Items("What to know", log.notes)] if log.notes else []
    blocks += [Items("What the logged figure implies", found.implied.sentences)] if found.implied else []
    return blocks
