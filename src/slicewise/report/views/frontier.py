"""The document of `frontier`: a few batches of each context; the figures and files hold all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from slicewise.planner.assumptions import assumptions
from slicewise.planner.deployment import Deployment
from slicewise.planner.frontier import EXPECTED_COLUMNS, Frontier
from slicewise.report.breakdown import breakdown_spec
from slicewise.report.charts import frontier_spec
from slicewise.report.document import Document, Heading, Items, Line, Table
from slicewise.report.views.words import assumed, ms, rate
from slicewise.units import parse_positive, show


def frontier_document(frontier: Frontier, tpot: str | None = None) -> Document:
    """Batches at powers of two and the largest, by context; and the largest within a TPOT limit."""
    columns = frontier.columns
    most = {float(context): batch for context, batch in frontier.max_batch.items()}
    is_expected = frontier.deployment.conventions.view == "expected"
    beside = [name for name in EXPECTED_COLUMNS[is_expected:] if name in columns]
    rows = []
    for index, (context, batch) in enumerate(zip(columns["context_tokens"], columns["batch"], strict=True)):
        if int(batch) & (int(batch) - 1) and batch != most.get(float(context)):
            continue
        times = [ms(columns[name][index]) for name in ("param_load_s", "kv_load_s", "matmul_s", "ici_s")]
        cells = [f"{context:,.0f}", f"{batch:,.0f}", ms(columns["step_s"][index])]
        rows.append(
            [
                *cells,
                *(ms(columns[name][index]) for name in beside),
                rate(columns["tokens_per_s_per_chip"][index]),
                *times,
            ]
        )
    if not frontier.fits:
        reasons = [f"{context:,.0f} tokens: {reason}" for context, reason in frontier.reasons.items()]
        return [Heading(f"{frontier.model} on {frontier.slice}: does not fit"), Items("Why not", reasons)]
    told = [_ENDS[name] for name in beside]
    header = ["context", "batch", "step", *told, "tok/s per chip", "parameters", "KV cache", "FLOPs", "network"]
    largest = ", ".join(f"{most:,} at {context:,.0f}" for context, most in frontier.max_batch.items())
    return [
        Heading(f"{frontier.model} on {frontier.slice}: latency against throughput; largest batch {largest} tokens"),
        *([] if tpot is None else [Line(_within(frontier, parse_positive(tpot, "s", "--tpot")))]),
        Table(_kind(frontier.deployment.conventions.view), header, rows, left=()),
        Items("Does not fit", [f"{context:,.0f} tokens: {reason}" for context, reason in frontier.reasons.items()]),
        assumed(assumptions(frontier.deployment)),
    ]


_ENDS = dict(zip(EXPECTED_COLUMNS, ("expected", "low", "high"), strict=True))


_KINDS = {"serial": "nothing overlapped"}


def _kind(view: str) -> str:
    """What the numbers of the table are."""
    if view == "expected":
        return "Expected steps and tokens/s; the other terms are those of the bound"
    return "Steps and tokens/s with nothing overlapped" if view in _KINDS else "Steps and tokens/s are bounds"


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


def _within(frontier: Frontier, limit_s: float) -> str:
    """The largest batch of each context within the TPOT limit."""
    largest = ", ".join(
        f"{f'{batch:,}' if batch else 'none'} at {context:,.0f}" for context, batch in frontier.within(limit_s).items()
    )
    return f"Largest batch within TPOT {show(limit_s, 's')}: {largest} tokens."
