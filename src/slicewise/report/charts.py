"""Latency against throughput, a picture of chapter 8, as a Vega-Lite spec.

Pure functions from columns (base units, one row per context and batch) to plain dicts, which `figures.py` writes.
A spec fixes the size of its plot, because labels are placed here so that none lies on another or on a line.
Times stay in seconds; the axes print them as µs or ms. Does not compute any time: the columns hold them.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from slicewise.report.chart_lines import LABELLED_BATCHES, FrontierColumns, Row, context_name, contexts_of, line_of
from slicewise.report.frame import HEIGHT, INK, QUIET, WIDTH, Spec, figure, log_axis, time_text
from slicewise.report.placement import AT_END, Label, LogScale, along, log_scale, place

_RAMP = ((142, 98, 210), (45, 10, 90))


def frontier_spec(
    columns: FrontierColumns,
    *,
    title: str,
    subtitle: str = "",
    critical_batch: float | None = None,
    limit_s: float | None = None,
) -> Spec:
    """Time per step against tokens per second and chip, one line per context, both axes logarithmic.

    Args:
        columns: one row per (context, batch), batches from 1 to the largest that fits.
        title: the heading.
        subtitle: what holds for the whole picture, such as which bound it is.
        critical_batch: the batch above which matmuls are bound by FLOPs; a diamond marks it on each line.
        limit_s: the limit on the time per output token, a vertical line. [s]

    Raises:
        InputError: the columns hold no row.
    """
    shown = {key: columns[key] for key in ("context_tokens", "batch", "step_s", "tokens_per_s_per_chip")}
    lines = [line_of(shown, context, critical_batch) for context in contexts_of(columns)]
    rows = [row for line in lines for row in line]
    dashed = _expected_rows(columns, critical_batch)
    times = [*(row["step_s"] for row in [*rows, *dashed]), *([limit_s] if limit_s else [])]
    x = log_scale(times, WIDTH, before=56, after=16)
    y = log_scale([row["tokens_per_s_per_chip"] for row in [*rows, *dashed]], HEIGHT, before=20, after=28)
    crossings = [row for line in lines for row in _crossing(line, critical_batch)]
    layers = [
        *_limit_layers(limit_s),
        *_frontier_marks(lines, crossings),
        *_frontier_labels(lines, x, y, limit_s, dashed),
        *_expected_layers(dashed, lines),
    ]
    note = f"Dots: batch {', '.join(map(str, LABELLED_BATCHES))} and the largest that fits."
    if dashed:
        note += " Dashed, rings: what is expected at the same batches."
    if crossings:
        note += f" Diamonds: matmuls are compute-bound beyond, B > {critical_batch:,.0f}."
    encoding = {
        "x": log_axis("step_s", x, "Time per decode step", x.ticks(9), time_text("datum.value", "~s")),
        "y": log_axis(
            "tokens_per_s_per_chip",
            y,
            "Throughput per chip, tokens/s",
            y.ticks(9),
            "format(datum.value, ',~r')",
        ),
    }
    return figure(title, [subtitle, note], encoding, layers)


def _crossing(line: list[Row], critical_batch: float | None) -> list[Row]:
    """The first row above the critical batch, where the line crosses it."""
    if critical_batch is None:
        return []
    return [after for before, after in pairwise(line) if before["batch"] <= critical_batch < after["batch"]]


def _frontier_marks(lines: list[list[Row]], crossings: list[Row]) -> list[Spec]:
    rows = [row for line in lines for row in line]
    dots = [row for line in lines for row in line if row["batch"] in LABELLED_BATCHES or row is line[-1]]
    colour = {"color": _context_colour(lines)}
    line = {**colour, "order": {"field": "batch", "type": "quantitative"}}
    diamond = {"type": "point", "shape": "diamond", "size": 90, "fill": "white", "opacity": 1}
    tooltip = [
        {"field": "context_tokens", "format": ",", "title": "context (tokens)"},
        {"field": "batch", "format": ",", "title": "batch"},
        {"field": "time", "title": "time per step"},
        {"field": "tokens_per_s_per_chip", "format": ",.4~r", "title": "tokens/s per chip"},
    ]
    return [
        {"data": {"values": rows}, "mark": {"type": "line", "strokeWidth": 2}, "encoding": line},
        {"data": {"values": crossings}, "mark": diamond, "encoding": colour},
        {"data": {"values": dots}, "mark": {"type": "circle", "size": 40, "opacity": 1}, "encoding": colour},
        {
            "data": {"values": rows},
            "transform": [{"calculate": time_text("datum.step_s", ".4~s"), "as": "time"}],
            "mark": {"type": "circle", "size": 90, "opacity": 0, "aria": False},
            "encoding": {"tooltip": tooltip},
        },
    ]


def _expected_rows(columns: FrontierColumns, critical_batch: float | None) -> list[Row]:
    """The same batches at the time that is expected, and the throughput that goes with it."""
    if "step_expected_s" not in columns:
        return []
    wanted = ("context_tokens", "batch", "step_s", "tokens_per_s_per_chip", "step_expected_s")
    shown = {key: columns[key] for key in wanted}
    rows = [row for context in contexts_of(columns) for row in line_of(shown, context, critical_batch)]
    return [
        {
            "context_tokens": row["context_tokens"],
            "batch": row["batch"],
            "step_s": row["step_expected_s"],
            "tokens_per_s_per_chip": row["tokens_per_s_per_chip"] * row["step_s"] / row["step_expected_s"],
        }
        for row in rows
    ]


def _expected_layers(dashed: list[Row], lines: list[list[Row]]) -> list[Spec]:
    if not dashed:
        return []
    order = {"field": "batch", "type": "quantitative"}
    line = {"type": "line", "strokeWidth": 1.5, "strokeDash": [5, 3]}
    dots = [row for row in dashed if row["batch"] in LABELLED_BATCHES]
    colour = {"color": _context_colour(lines)}
    return [
        {"data": {"values": dashed}, "mark": line, "encoding": {**colour, "order": order}},
        {"data": {"values": dots}, "mark": {"type": "point", "size": 30, "opacity": 1}, "encoding": colour},
    ]


def _context_colour(lines: list[list[Row]]) -> Spec:
    """A violet ramp from short to long contexts: no resource is violet."""
    steps = np.linspace(0, 1, max(2, len(lines)))[: len(lines)]
    mixed = [[round(a + (b - a) * t) for a, b in zip(*_RAMP, strict=True)] for t in steps]
    scale = {
        "domain": [line[0]["context_tokens"] for line in lines],
        "range": [f"rgb({r},{g},{b})" for r, g, b in mixed],
    }
    return {"field": "context_tokens", "type": "nominal", "scale": scale, "legend": None}


def _frontier_labels(
    lines: list[list[Row]], x: LogScale, y: LogScale, limit_s: float | None, dashed: list[Row]
) -> list[Spec]:
    """Each line's context and largest batch at its end, then further batches where there is room."""

    def pixel(row: Row) -> tuple[float, float]:
        return x.at(row["step_s"]), HEIGHT - y.at(row["tokens_per_s_per_chip"])

    paths = [along(pixel(row) for row in line) for line in lines]
    contexts = sorted({row["context_tokens"] for row in dashed})
    paths += [along(pixel(row) for row in dashed if row["context_tokens"] == context) for context in contexts]
    if limit_s:
        paths.append(along([(x.at(limit_s), 0), (x.at(limit_s), HEIGHT)]))
    ends = [Label(_end_text(line[-1], first=line is lines[0]), pixel(line[-1]), line[-1], AT_END, 12) for line in lines]
    named = [row for line in lines for row in line[:-1] if row["batch"] in LABELLED_BATCHES]
    batches = [Label(f"{'B = ' * (row['batch'] == 1)}{row['batch']:.0f}", pixel(row), row) for row in named]
    placed = place([*ends, *batches], np.concatenate(paths), HEIGHT)
    rows = [{**label.row, "text": label.text, "align": align, "dx": dx, "dy": dy} for label, (align, dx, dy) in placed]
    n_ends = sum(label in ends for label, _ in placed)
    leaders = [
        {**label.row, "to_x": x.value(label.point[0] + dx - 3), "to_y": y.value(HEIGHT - label.point[1] - dy)}
        for label, (_, dx, dy) in placed[:n_ends]
        if dy
    ]
    colour = {"color": _context_colour(lines)}
    to = {"x2": {"field": "to_x"}, "y2": {"field": "to_y"}}
    return [
        {"data": {"values": leaders}, "mark": {"type": "rule"}, "encoding": {**colour, **to}},
        _text_layer(rows[n_ends:], {"color": {"value": QUIET}}),
        _text_layer(rows[:n_ends], colour, bold=True),
    ]


def _end_text(row: Row, *, first: bool) -> str:
    return f"{context_name(row['context_tokens'])}{' context' if first else ''}, B = {row['batch']:,.0f}"


def _text_layer(rows: list[Spec], encoding: Spec, *, bold: bool = False) -> Spec:
    mark = {
        "type": "text",
        "fontSize": 12 if bold else 11,
        "fontWeight": "bold" if bold else "normal",
        "baseline": "middle",
        **{name: {"expr": f"datum.{name}"} for name in ("align", "dx", "dy")},
    }
    return {"data": {"values": rows}, "mark": mark, "encoding": {"text": {"field": "text"}, **encoding}}


def _limit_layers(limit_s: float | None) -> list[Spec]:
    if not limit_s:
        return []
    data = {"values": [{"step_s": limit_s}]}
    top, bottom = {"value": 0}, {"value": HEIGHT}
    rule = {"type": "rule", "color": INK, "strokeDash": [5, 4], "strokeWidth": 1.2}
    text = {"type": "text", "color": INK, "baseline": "bottom", "fontSize": 12}
    label = [{"calculate": f"'TPOT limit ' + {time_text('datum.step_s', '.4~s')}", "as": "text"}]
    return [
        {"data": data, "mark": rule, "encoding": {"y": top, "y2": bottom}},
        {
            "data": data,
            "transform": label,
            "mark": text,
            "encoding": {"y": {"value": -5}, "text": {"field": "text"}},
        },
    ]
