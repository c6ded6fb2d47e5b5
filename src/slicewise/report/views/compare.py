"""The document of `compare`."""

from __future__ import annotations

from slicewise.planner.compare import Compared, Comparison
from slicewise.report.document import Block, Document, Heading, Line, Table
from slicewise.report.views.words import ms, rate, usd
from slicewise.units import show


def compare_document(comparison: Comparison) -> Document:
    """What a dollar buys on each chip, and the model's plan on each."""
    header = ["", "FLOP/s", "HBM B/s", "HBM", "USD/chip-h", "FLOPs/$", "bytes/$", "HBM-hours/$"]
    rows = [_chip(row) for row in comparison.rows]
    blocks: list[Block] = [Heading("What a dollar buys"), Table("", header, rows)]
    if any(row.price is None for row in comparison.rows):
        missing = ", ".join(dict.fromkeys(row.chip for row in comparison.rows if row.price is None))
        blocks.append(Line(f"No price is known for {missing}: give --price CHIP=USD."))
    blocks += [Line(f"{row.name}: {row.price}.") for row in comparison.rows if row.price]
    planned = [row for row in comparison.rows if row.plan is not None]
    if planned:
        names = ["", "slice", "batch", "step", "tok/s", "per chip", "prefill", "$/M out", "a request"]
        blocks.append(
            Table(f"The model on each ({_kind(planned)})", names, [_plan(row) for row in planned], left=(0, 1))
        )
        blocks += _engines(planned)
    return blocks


def _engines(planned: list[Compared]) -> list[Line]:
    """Whose times are expected, and on which chips nobody measured them."""
    found: dict[str, list[str]] = {}
    for row in planned:
        step = row.plan.recommended.step if row.plan and row.plan.recommended else None
        if step and step.expected_engine:
            words = step.expected_engine if step.is_calibrated else f"{step.expected_engine}, not calibrated"
            found.setdefault(words, []).append(row.name)
    told = "; ".join(f"{', '.join(names)}: {words}" for words, names in found.items())
    return [Line(f"Expected times are those of: {told}.")] if told else []


def _kind(planned: list[Compared]) -> str:
    """What the times are."""
    best = next((row.plan.recommended for row in planned if row.plan and row.plan.recommended), None)
    return "expected times" if best and best.step.view == "expected" else "times are bounds"


def _chip(row: Compared) -> list[str]:
    return [
        row.name,
        show(row.flops_per_s, "FLOP/s"),
        show(row.hbm_bytes_per_s, "B/s"),
        show(row.hbm_bytes, "B"),
        "-" if row.usd_per_chip_hour is None else f"{row.usd_per_chip_hour:g}",
        _per_usd(row.flops_per_usd),
        _per_usd(row.bytes_moved_per_usd),
        "-" if row.hbm_byte_hours_per_usd is None else show(row.hbm_byte_hours_per_usd, "B", 4),
    ]


def _per_usd(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _plan(row: Compared) -> list[str]:
    best = row.plan.recommended if row.plan else None
    if best is None:
        reasons = row.plan.rejected if row.plan else ()
        return [row.name, reasons[-1].reason if reasons else "no plan", *["-"] * 7]
    step = best.step
    cells = [row.name, step.slice, f"{step.batch:,}", ms(step.step_s), rate(step.tokens_per_s)]
    price = usd(step.usd_per_million_output_tokens)
    return [*cells, rate(step.tokens_per_s_per_chip), ms(best.ttft_s), price, usd(best.request_usd)]
