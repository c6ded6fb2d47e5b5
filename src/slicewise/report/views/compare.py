"""The document of `compare`."""

from __future__ import annotations

from slicewise.planner.compare import Compared, Comparison
from slicewise.planner.option import Option
from slicewise.report.document import Block, Document, Heading, Line, Table
from slicewise.report.views.expected import whose
from slicewise.report.views.words import ms, rate, usd
from slicewise.units import show

_ENDS = ("expected", "bound", "low", "high")
_FIGURES = (
    "step_s",
    "tokens_per_s",
    "tokens_per_s_per_chip",
    "ttft_s",
    "usd_per_million_output_tokens",
    "request_usd",
)


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
    return [*blocks, *_plans(planned)] if planned else blocks


def _plans(planned: list[Compared]) -> list[Block]:
    """The plan on each, a line a figure, after what it was chosen by where that is none of them."""
    best = [(row.name, row.plan.recommended) for row in planned if row.plan and row.plan.recommended]
    is_told = any(option.figures is not None for _, option in best)
    header = [
        "", "slice", "batch", *([""] if is_told else []),
        "step", "tok/s", "per chip", "prefill", "$/M out", "a request",
    ]  # fmt: skip
    rows = [cells for row in planned for cells in _rows(row, is_told=is_told)]
    table = Table(f"The model on each{_kind(best)}", header, rows, left=(0, 1, *([3] if is_told else [])))
    return [table, whose((name, option.step) for name, option in best)]


def _kind(best: list[tuple[str, Option]]) -> str:
    """What the plans are chosen by."""
    if not best:
        return ""
    step = best[0][1].step
    if step.figures is None:
        return " (times are bounds)"
    if step.view == "expected":
        return " (chosen by expected times)"
    return f" (chosen by the view {step.view}, prefill at {step.deployment.mfu:.0%} of peak)"


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


def _rows(row: Compared, *, is_told: bool) -> list[list[str]]:
    best = row.plan.recommended if row.plan else None
    if best is None:
        reasons = row.plan.rejected if row.plan else ()
        return [[row.name, reasons[-1].reason if reasons else "no plan", *["-"] * (7 + is_told)]]
    step = best.step
    head = [row.name, step.slice, f"{step.batch:,}"]
    rates, prices = [step.tokens_per_s, step.tokens_per_s_per_chip], [step.usd_per_million_output_tokens]
    own = [step.step_s, *rates, best.ttft_s, *prices, best.request_usd]
    if not is_told:
        return [[*head, *_cells(own)]]
    found = {**(step.figures or {}), **(best.figures or {})}
    named: dict[str, list[float | None]] = {
        end: [getattr(found[name], end) if name in found else None for name in _FIGURES] for end in _ENDS
    }
    # In views of bounds, what the plan was chosen by is none of these: prefill is at a share of the peak.
    lines = named if step.view == "expected" else {step.view: own, **named}
    return [[*([""] * 3 if place else head), end, *_cells(values)] for place, (end, values) in enumerate(lines.items())]


def _cells(values: list[float | None]) -> list[str]:
    step_s, per_s, per_chip, ttft_s, per_million, request = values
    return [ms(step_s), rate(per_s), rate(per_chip), ms(ttft_s), usd(per_million), usd(request)]
