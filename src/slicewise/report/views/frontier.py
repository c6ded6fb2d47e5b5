"""The document of `frontier`: a few batches of each context; the figures and files hold all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from slicewise.planner.assumptions import assumptions
from slicewise.planner.deployment import Deployment
from slicewise.planner.figures import Figures
from slicewise.planner.frontier import EXPECTED_COLUMNS, PRICE_COLUMN, Frontier
from slicewise.report.breakdown import breakdown_spec
from slicewise.report.charts import frontier_spec
from slicewise.report.document import Document, Heading, Items, Line, Table
from slicewise.report.views.expected import TOLD, told
from slicewise.report.views.words import assumed, ms, rate, usd
from slicewise.units import parse_positive, show


def frontier_document(frontier: Frontier, tpot: str | None = None) -> Document:
    """Batches at powers of two and the largest, by context; and the largest within a TPOT limit."""
    if not frontier.fits:
        reasons = [f"{context:,.0f} tokens: {reason}" for context, reason in frontier.reasons.items()]
        return [Heading(f"{frontier.model} on {frontier.slice}: does not fit"), Items("Why not", reasons)]
    largest = ", ".join(f"{most:,} at {context:,.0f}" for context, most in frontier.max_batch.items())
    held = frontier.deployment.workload
    full = held.capacity_context_tokens
    of = f" ({full:,.0f} when full)" if len(frontier.max_batch) == 1 and full != held.context_tokens else ""
    return [
        Heading(
            f"{frontier.model} on {frontier.slice}: latency against throughput; largest batch {largest} tokens{of}"
        ),
        *([] if tpot is None else [Line(_within(frontier, parse_positive(tpot, "s", "--tpot")))]),
        *_tables(frontier),
        Items("Does not fit", [f"{context:,.0f} tokens: {reason}" for context, reason in frontier.reasons.items()]),
        assumed(assumptions(frontier.deployment)),
    ]


_TERMS = {"param_load_s": "parameters", "kv_load_s": "KV cache", "matmul_s": "FLOPs", "ici_s": "network"}
_TOLD = {"step_s": "step", "tokens_per_s_per_chip": "tok/s per chip", PRICE_COLUMN: "$/M out"}


def _tables(frontier: Frontier) -> list[Table]:
    """Three figures of each row, and the terms of its bound; of the book's conventions one table of bounds."""
    columns, told_of, view = frontier.columns, frontier.figures, frontier.deployment.conventions.view
    rows = _shown(frontier)
    places = [[f"{columns['context_tokens'][row]:,.0f}", f"{columns['batch'][row]:,.0f}"] for row in rows]
    terms = [[ms(columns[name][row]) for name in _TERMS] for row in rows]
    names = [name for name in _TOLD if name in columns]
    if told_of is None:
        cells = [[_printed(name, columns[name][row]) for name in names] for row in rows]
        header = [*_PLACE, *(_TOLD[name] for name in names), *_TERMS.values()]
        return [Table(_KINDS.get(view, "Bounds"), header, _joined(places, cells, terms), left=())]
    # Without overlap a step is neither the bound nor what is expected.
    own = [[ms(columns["step_s"][row])] for row in rows] if view in _KINDS else [[] for _ in rows]
    cells = [[told(name, _figures_at(told_of[name], row)) for name in names] for row in rows]
    header = [*_PLACE, *([_KINDS[view]] if view in _KINDS else []), *(_TOLD[name] for name in names)]
    return [
        Table(f"Each number: {TOLD}", header, _joined(places, own, cells), left=()),
        Table("Terms of the bound", [*_PLACE, *_TERMS.values()], _joined(places, terms), left=()),
    ]


_PLACE = ("context", "batch")


def _joined(*parts: list[list[str]]) -> list[list[str]]:
    return [[cell for part in row for cell in part] for row in zip(*parts, strict=True)]


def _shown(frontier: Frontier) -> list[int]:
    """The rows that are printed."""
    most = {float(context): batch for context, batch in frontier.max_batch.items()}
    places = zip(frontier.columns["context_tokens"], frontier.columns["batch"], strict=True)
    return [
        row
        for row, (context, batch) in enumerate(places)
        if not int(batch) & (int(batch) - 1) or batch == most.get(float(context))
    ]


def _figures_at(columns: Mapping[str, Sequence[float]], row: int) -> Figures:
    return Figures(**{end: column[row] for end, column in columns.items()})


def _printed(name: str, value: float) -> str:
    return usd(value) if name == PRICE_COLUMN else ms(value) if name == "step_s" else rate(value)


_KINDS = {"serial": "nothing overlapped"}


def frontier_specs(frontier: Frontier, tpot: str | None = None) -> dict[str, dict[str, Any]]:
    """The two figures: latency against throughput, and the step of the first context broken down over the batch."""
    limit_s = None if tpot is None else parse_positive(tpot, "s", "--tpot")
    deployment = frontier.deployment
    view = deployment.conventions.view
    is_expected = view == "expected"
    kind = "expected times" if is_expected else f"{view} view, {_KINDS.get(view, 'a bound')}"
    # Where the step itself is what is expected, it is drawn once.
    left_out = EXPECTED_COLUMNS if is_expected else ()
    subtitle = f"{deployment.precision}; {kind}{_counted(deployment)}"
    name = f"{frontier.model} on {frontier.slice}"
    return {
        "frontier": frontier_spec(
            _without(frontier.whole_rounds(), left_out),
            title=f"Latency against throughput: {name}",
            subtitle=subtitle,
            critical_batch=frontier.critical_batch,
            limit_s=limit_s,
        ),
        "breakdown": breakdown_spec(
            _without(frontier.columns, left_out),
            context_tokens=deployment.workload.context_tokens,
            title=f"Where a decode step's time goes: {name}",
            subtitle=f"{deployment.workload.context_tokens:,.0f} tokens of context; {subtitle}",
            critical_batch=frontier.critical_batch,
        ),
    }


def _without(columns: Mapping[str, list[float]], left_out: Collection[str]) -> dict[str, list[float]]:
    return {name: column for name, column in columns.items() if name not in left_out}


def _counted(deployment: Deployment) -> str:
    """What a reader of the picture alone would not know."""
    book = "; the book's conventions" if deployment.conventions.book else ""
    params = "" if deployment.params is None else f"; {show(deployment.params, '', 3)} parameters"
    return book + params


_BY = {"expected": "as expected", "serial": "with nothing overlapped"}


def _within(frontier: Frontier, limit_s: float) -> str:
    """The largest batch of each context within the TPOT limit, by the view's step."""
    largest = ", ".join(
        f"{f'{batch:,}' if batch else 'none'} at {context:,.0f}" for context, batch in frontier.within(limit_s).items()
    )
    by = _BY.get(frontier.deployment.conventions.view, "at the bound")
    return f"Largest batch within TPOT {show(limit_s, 's')}, {by}: {largest} tokens."
