"""The document of `size`."""

from __future__ import annotations

from slicewise.report.document import Block, Document, Heading, Items, Line, Table
from slicewise.report.views.simulate import latency_table, load_words, run_by
from slicewise.report.views.words import assumed, rate, usd
from slicewise.traffic.cheapest import Size
from slicewise.traffic.sizing import Sizing, Tried
from slicewise.units import show


def size_document(found: Size) -> Document:
    """The cheapest fleet, the others beside it, and whether splitting the phases pays."""
    sizing = found.sizing
    best = sizing.best if sizing else None
    limits = ", ".join(limit.text for limit in sizing.limits) if sizing else ""
    left = Items("Left out", [f"{each.slice}: {each.why}." for each in found.left_out])
    if sizing is None or best is None:
        title = f"{found.model}: no fleet meets {limits}" if limits else f"{found.model}: no server to size with"
        if sizing and not sizing.is_whole:
            title = f"{found.model}: stopped before a fleet met {limits}"
        by = [run_by(design.deployment) for design in list(found.designs.values())[:1]]
        return [Heading(title), Line(load_words(found.requests)), *by, Line(f"{found.reason}."), left]
    blocks: list[Block] = [
        Heading(f"{found.model}: {_fleet(best)} meets {limits}, {_cost(best)}"),
        Line(load_words(found.requests)),
        run_by(found.designs[best.shape].deployment),
    ]
    if not sizing.is_whole:
        blocks.append(Line("Stopped: a fleet that was not tried may be cheaper."))
    blocks += [
        Line(f"Split prefill from decode? {found.why}."),
        _shapes(sizing, best),
        latency_table(best.metrics),
        *_closed(found, best),
        Items("Refused", [f"{each.shape}: {each.refused}." for each in sizing.answers if each.refused]),
        left,
        assumed(found.assumptions),
    ]
    return blocks


def _fleet(row: Tried) -> str:
    if row.n_prefill:
        return f"{row.n_prefill:,} prefill and {row.n_servers:,} decode server{_s(row.n_servers)} of {row.shape}"
    return f"{row.n_servers:,} replica{_s(row.n_servers)} of {row.shape}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _cost(row: Tried) -> str:
    chips = f"{row.total_chips:,} chips"
    return chips if row.usd_per_hour is None else f"{show(row.usd_per_hour, 'USD')} an hour ({chips})"


def _shapes(sizing: Sizing, best: Tried) -> Table:
    """The cheapest of each shape, and below it what is rejected with one server less."""
    rows: list[list[str]] = []
    marked = -1
    for answer in sizing.answers:
        if answer.best is None:
            continue
        marked = len(rows) if answer.best is best else marked
        rows.append([answer.shape, *_cells(answer.best), "meets the limits"])
        rows += [["  rejected", *_cells(row), row.reason] for row in answer.rejected]
    header = ["fleet", "servers", "prefill", "chips", "$ an hour", "output tokens/s", "$ per million output", ""]
    return Table("Cheapest of each kind", header, rows, left=(0, 7), marked=marked, wrapped=(7,))


def _cells(row: Tried) -> list[str]:
    return [
        f"{row.n_servers:,}",
        f"{row.n_prefill:,}" if row.n_prefill else "–",
        f"{row.total_chips:,}",
        usd(row.usd_per_hour),
        rate(row.metrics.output_tokens_per_s),
        usd(row.metrics.usd_per_million_output_tokens),
    ]


def _closed(found: Size, best: Tried) -> list[Block]:
    """What the closed form says, and why it takes fewer or more."""
    formula = found.steady
    if formula is None:
        return []
    counted = f"{formula.servers:,} server{_s(formula.servers)}"
    if formula.prefill_servers is not None:
        counted = f"{formula.prefill_servers:,} prefill and {formula.servers:,} decode server{_s(formula.servers)}"
    loads = f"{formula.load:.0%}"
    if formula.prefill_load is not None:
        loads = f"{formula.prefill_load:.0%} on prefill and {loads} on decode"
    ratio = found.requests.busiest_minute_ratio
    bursts = f"; the busiest minute brings {ratio:.2g} times the mean" if ratio else ""
    more = (best.n_servers - formula.servers, best.n_prefill - (formula.prefill_servers or 0))
    at_best = f"at the fleet that meets the limits the load is {loads}{bursts}"
    if not any(more):
        why = "the same as simulated"
    elif min(more) >= 0:
        why = f"the others keep queues short: {at_best}"
    else:
        why = f"not fewer than meet the limits when simulated: {at_best}, by the same formulas"
    return [Line(f"By the closed form (means, no queues) the rate alone takes {counted}: {why}.")]
