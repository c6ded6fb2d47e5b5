"""The document of `verify`."""

from __future__ import annotations

from collections.abc import Sequence

from slicewise.report.document import Block, Document, Heading, Line, Table
from slicewise.report.views.words import assumed, ms
from slicewise.units import show, show_gib
from slicewise.verify.estimate import Estimate
from slicewise.verify.rows import Row
from slicewise.verify.verification import MaxBatch, Verification

TITLES = {
    "memory": "Memory of a chip",
    "collectives": "Collectives of a chip in bytes (an AllReduce counts twice: it scatters and gathers)",
    "flops": "FLOPs of a chip",
}
CYCLES = "The compiler's cycles by scope, transfers that overlap with others included"
N_LARGEST = 6


def verify_document(result: Verification) -> Document:
    """The verdict, the plan's figures beside the compiler's, and the estimate where it was asked for."""
    blocks: list[Block] = [Heading(f"{_what(result)}: {_verdict(result)}"), *_needs(result)]
    if result.max_batch:
        blocks += _most(result.max_batch)
    for part, title in TITLES.items():
        rows = [row for row in result.rows if row.part == part]
        if rows:
            blocks.append(_table(title, rows))
    if result.estimate:
        blocks += _estimated(result.estimate)
    return [*blocks, assumed((*result.assumptions, *_asked(result)))]


def _what(result: Verification) -> str:
    dtypes = f"{result.weight_dtype} weights, {result.kv_dtype} cache"
    if result.program == "prefill":
        return f"{result.model} on {result.slice}, prefill of {result.context_tokens:,} tokens, {dtypes}"
    return f"{result.model} on {result.slice}, batch {result.batch:,}, {result.context_tokens:,} tokens, {dtypes}"


def _verdict(result: Verification) -> str:
    if not result.judged:
        return f"not judged by the TPU's compiler; the plan says that it {'fits' if result.fits else 'does not fit'}"
    return "fits" if result.fits else "does not fit"


def _needs(result: Verification) -> list[Line]:
    available = show_gib(result.available_bytes_per_chip)
    heads, batch = result.kv_head_shards, result.kv_batch_shards
    layout = f"Mesh: y = {heads} (KV heads), z = {batch} (batch); matrices are cut over both."
    if not result.judged:
        return [Line(layout)]
    needed = _size(result.needed_bytes_per_chip)
    of_decode = " of the decode step" if result.program == "prefill" else ""
    plan = "fits" if result.plan_fits else "does not fit"
    said = f" The compiler's words: {result.reason}" if result.reason else ""
    return [
        Line(
            f"So says the TPU's compiler: it needs {needed} of {available} a chip. The plan{of_decode}, which grants"
            f" itself {show_gib(result.granted_bytes_per_chip)}, {plan}.{said}"
        ),
        Line(layout),
    ]


def _size(n_bytes: float | None) -> str:
    return "more" if n_bytes is None else show_gib(n_bytes)


def _most(found: MaxBatch) -> list[Block]:
    rows = [
        [f"{each.batch:,}", "yes" if each.fits else "no", _size(each.needed_bytes_per_chip), each.form]
        for each in found.tried
    ]
    return [
        Line(
            f"The largest batch that compiles is {found.batch:,}; the plan's own, at full usable HBM, is"
            f" {found.plan_batch:,}."
        ),
        Table("Compiled", ["batch", "fits", "needs, a chip", "layers"], rows, left=(0, 3)),
    ]


def _table(title: str, rows: Sequence[Row]) -> Table:
    cells = [
        [row.name, _amount(row.plan, row.unit), _amount(row.compiler, row.unit), _ratio(row), row.why] for row in rows
    ]
    return Table(title, ["", "plan", "compiler", "ratio", "why they differ"], cells, left=(0, 4), wrapped=(0, 4))


def _amount(value: float | None, unit: str) -> str:
    return "–" if value is None else show(value, unit, 5)


def _ratio(row: Row) -> str:
    return "" if row.ratio is None else f"{row.ratio:.4f}"


def _estimated(found: Estimate) -> list[Block]:
    side_by_side = [
        ["roofline", ms(found.roofline_s), "a bound: weights and cache at peak bandwidth, no network"],
        ["overlapped", ms(found.overlapped_s), "a bound: collectives hide as far as they can"],
        [
            "estimate",
            ms(found.estimate_s),
            f"of the compiler, {found.estimate_s / found.roofline_s:.2f} times the roofline",
        ],
    ]
    if found.measured_s:
        off = found.estimate_s / found.measured_s - 1
        side_by_side.append(["measured", ms(found.measured_s), f"published; the estimate is {off:+.0%} off"])
    parts = [
        [
            part.name,
            ms(part.streamed_s),
            ms(part.core_s),
            ms(part.ici_s),
            ms(part.fetch_s),
            ms(part.estimate_s),
            part.binds,
        ]
        for part in found.parts
    ]
    header = ["", "streamed", "core", "network", "fetched", "estimate", "what it waits for"]
    scopes = [[name, ms(seconds)] for name, seconds in found.scopes.items()]
    largest = [
        [operation.scope, operation.what, f"{operation.count:,} × {operation.cycles:,.0f}", ms(seconds)]
        for operation, seconds in found.largest[:N_LARGEST]
    ]
    return [
        Table("The step", ["", "time", ""], side_by_side, left=(0, 2)),
        *([Line(f"Measured: {found.measured_where}")] if found.measured_s else []),
        Table("Estimate = streamed + max(core + network, fetched)", header, parts, left=(0, 6)),
        Table(f"{CYCLES}, at {show(found.clock_hz, 'Hz')}", ["scope", "time"], scopes),
        Table("The costliest operations", ["scope", "operation", "runs × cycles", "time"], largest, left=(0, 1)),
    ]


def _asked(result: Verification) -> tuple[str, ...]:
    when = "earlier, and kept (--fresh compiles again)" if result.was_kept else "now"
    return (f"Compiled {when} by {result.compiler}.",)
