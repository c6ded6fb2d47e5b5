"""The two pictures of chapter 8 as Vega-Lite specs: latency against throughput, and where a decode step's time goes.

Pure functions from columns (base units, one row per context and batch) to plain dicts, which `figures.py` writes.
A spec fixes the size of its plot, because labels are placed here so that none lies on another or on a line.
Times stay in seconds; the axes print them as µs or ms. Does not compute any time: the columns hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from slicewise.errors import InputError
from slicewise.report.frame import HEIGHT, INK, QUIET, WIDTH, Spec, figure, log_axis, time_text
from slicewise.report.placement import AT_END, Label, LogScale, along, log_scale, place, spread

FrontierColumns: TypeAlias = Mapping[str, Sequence[float]]
"""context_tokens, batch, step_s, tokens_per_s_per_chip, param_load_s, kv_load_s, matmul_s, ici_s; equal lengths.

With step_expected_s, where what is expected is drawn too.
"""
Row: TypeAlias = dict[str, float]

# Okabe-Ito, which the colour-blind tell apart too. One colour per resource in every picture.
RESOURCE_COLOURS = {
    "step": "#000000",
    "step_expected": "#767676",
    "param_load": "#0072B2",
    "kv_load": "#D55E00",
    "matmul": "#009E73",
    "ici": "#CC79A7",
}
RESOURCE_NAMES = {
    "step": "whole step",
    "step_expected": "expected step",
    "param_load": "parameter load",
    "kv_load": "KV load",
    "matmul": "FLOPs",
    "ici": "network (ICI)",
}
LABELLED_BATCHES = (1, 4, 16, 64, 256)

_SPACED_POINTS = 64  # log-spaced batches that a line keeps, besides its first, last, labelled and critical ones
_TOKENS_PER_K, _TOKENS_PER_DECIMAL_K = 1024, 1000
_LINE_HEIGHT = 17  # between labels at the lines' ends [px]
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
    lines = [_line(shown, context, critical_batch) for context in _contexts(columns)]
    rows = [row for line in lines for row in line]
    dashed = _expected_rows(columns, critical_batch)
    times = [*(row["step_s"] for row in [*rows, *dashed]), *([limit_s] if limit_s else [])]
    x = log_scale(times, WIDTH, before=56, after=16)
    y = log_scale([row["tokens_per_s_per_chip"] for row in [*rows, *dashed]], HEIGHT, before=20, after=28)
    crossings = [row for line in lines for row in _crossing(line, critical_batch)]
    layers = [
        *_limit_layers(limit_s),
        *_frontier_marks(lines, crossings),
        *_frontier_labels(lines, x, y, limit_s),
        *_expected_layers(dashed, lines),
    ]
    note = f"Dots: batch {', '.join(map(str, LABELLED_BATCHES))} and the largest that fits."
    if dashed:
        note += " Dashed: what is expected."
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


def breakdown_spec(
    columns: FrontierColumns,
    *,
    context_tokens: float,
    title: str,
    subtitle: str = "",
    critical_batch: float | None = None,
) -> Spec:
    """The terms of a decode step and their total over the batch, for one context, both axes logarithmic.

    Args:
        columns: one row per (context, batch), batches from 1 to the largest that fits.
        context_tokens: which context of the columns.
        title: the heading.
        subtitle: what holds for the whole picture.
        critical_batch: the batch above which matmuls are bound by FLOPs; the region beyond it is shaded.

    Raises:
        InputError: the columns hold no row of that context.
    """
    contexts = _contexts(columns)
    if context_tokens not in contexts:
        raise InputError(f"no batch fits at {context_tokens:,.0f} tokens; draw one of {_listed(contexts)}")
    line = _line(columns, context_tokens, critical_batch)
    terms = [term for term in RESOURCE_COLOURS if any(row.get(f"{term}_s", 0.0) > 0 for row in line)]
    x = log_scale([row["batch"] for row in line], WIDTH)
    times = [row[f"{term}_s"] for term in terms for row in line if row[f"{term}_s"] > 0]
    y = log_scale(times, HEIGHT, before=14, after=14)
    powers = [float(2**k) for k in range(64) if x.low <= 2**k <= x.high]
    encoding = {
        "x": log_axis("batch", x, "Batch, sequences per decode step", powers, "format(datum.value, ',')"),
        "y": log_axis("time_s", y, "Time", y.ticks(12), time_text("datum.value", "~s")),
    }
    region = _region_layers(critical_batch, x)
    layers = [*region, *_term_lines(line, terms), *_term_ends(line, terms, y), _term_hover(line, terms)]
    return figure(title, [subtitle], encoding, layers)


def context_name(context_tokens: float) -> str:
    """Tokens of context as people say them; "128k" may mean 131,072 or 128,000, so that a k is always the former.

    >>> context_name(32768), context_name(128000), context_name(8448)
    ('32k', '128,000', '8,448')
    """
    binary = context_tokens % _TOKENS_PER_K == 0 and context_tokens % _TOKENS_PER_DECIMAL_K != 0
    return f"{context_tokens // _TOKENS_PER_K:.0f}k" if binary else f"{context_tokens:,.0f}"


def _listed(contexts: Sequence[float]) -> str:
    return ", ".join(f"{context:,.0f}" for context in contexts)


def _contexts(columns: FrontierColumns) -> list[float]:
    contexts = sorted({float(context) for context in columns["context_tokens"]})
    if not contexts:
        raise InputError("no batch fits, so there is nothing to draw; take a larger --slice or a shorter --context")
    return contexts


def _line(columns: FrontierColumns, context_tokens: float, critical_batch: float | None) -> list[Row]:
    """Rows of one context by batch, thinned to log-spaced ones, the first, last, labelled and critical."""
    rows = [i for i, context in enumerate(columns["context_tokens"]) if context == context_tokens]
    rows.sort(key=lambda i: columns["batch"][i])
    batches = np.array([columns["batch"][i] for i in rows], dtype=float)
    wanted = [*np.geomspace(batches[0], batches[-1], _SPACED_POINTS), batches[-1]]
    keep = {0, *np.searchsorted(batches, wanted).clip(max=len(rows) - 1).tolist()}
    keep |= set(np.flatnonzero(np.isin(batches, LABELLED_BATCHES)).tolist())
    if critical_batch is not None and critical_batch < batches[-1]:
        keep.add(int(np.searchsorted(batches, critical_batch, side="right")))
    return [{key: float(column[rows[k]]) for key, column in columns.items()} for k in sorted(keep)]


def _crossing(line: list[Row], critical_batch: float | None) -> list[Row]:
    """The first row above the critical batch, where the line crosses it."""
    if critical_batch is None:
        return []
    return [after for before, after in pairwise(line) if before["batch"] <= critical_batch < after["batch"]]


def _frontier_marks(lines: list[list[Row]], crossings: list[Row]) -> list[Spec]:
    rows = [row for line in lines for row in line]
    dots = [row for line in lines for row in line if row["batch"] in LABELLED_BATCHES or row is line[-1]]
    colour = {"color": _context_colour(lines)}
    line_of = {**colour, "order": {"field": "batch", "type": "quantitative"}}
    diamond = {"type": "point", "shape": "diamond", "size": 90, "fill": "white", "opacity": 1}
    tooltip = [
        {"field": "context_tokens", "format": ",", "title": "context (tokens)"},
        {"field": "batch", "format": ",", "title": "batch"},
        {"field": "time", "title": "time per step"},
        {"field": "tokens_per_s_per_chip", "format": ",.4~r", "title": "tokens/s per chip"},
    ]
    return [
        {"data": {"values": rows}, "mark": {"type": "line", "strokeWidth": 2}, "encoding": line_of},
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
    rows = [row for context in _contexts(columns) for row in _line(shown, context, critical_batch)]
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
    mark = {"type": "line", "strokeWidth": 1.5, "strokeDash": [5, 3]}
    return [{"data": {"values": dashed}, "mark": mark, "encoding": {"color": _context_colour(lines), "order": order}}]


def _context_colour(lines: list[list[Row]]) -> Spec:
    """A violet ramp from short to long contexts: no resource is violet."""
    steps = np.linspace(0, 1, max(2, len(lines)))[: len(lines)]
    mixed = [[round(a + (b - a) * t) for a, b in zip(*_RAMP, strict=True)] for t in steps]
    scale = {
        "domain": [line[0]["context_tokens"] for line in lines],
        "range": [f"rgb({r},{g},{b})" for r, g, b in mixed],
    }
    return {"field": "context_tokens", "type": "nominal", "scale": scale, "legend": None}


def _frontier_labels(lines: list[list[Row]], x: LogScale, y: LogScale, limit_s: float | None) -> list[Spec]:
    """Each line's context and largest batch at its end, then further batches where there is room."""

    def pixel(row: Row) -> tuple[float, float]:
        return x.at(row["step_s"]), HEIGHT - y.at(row["tokens_per_s_per_chip"])

    paths = [along(pixel(row) for row in line) for line in lines]
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


def _region_layers(critical_batch: float | None, x: LogScale) -> list[Spec]:
    """The compute-bound batches, shaded, with their name above the right end of the plot."""
    if critical_batch is None or critical_batch >= x.high:
        return []
    data = {"values": [{"batch": max(critical_batch, x.low), "to": x.high}]}
    text = {"type": "text", "align": "right", "baseline": "bottom", "fontSize": 12, "color": INK}
    return [
        {
            "data": data,
            "mark": {"type": "rect", "color": RESOURCE_COLOURS["matmul"], "opacity": 0.12},
            "encoding": {"x2": {"field": "to"}, "y": {"value": 0}, "y2": {"value": HEIGHT}},
        },
        {
            "data": data,
            "mark": text,
            "encoding": {
                "x": {"value": WIDTH},
                "y": {"value": -5},
                "text": {"value": f"compute-bound matmuls, B > {critical_batch:,.0f}"},
            },
        },
    ]


def _term_colour(terms: list[str]) -> Spec:
    scale = {"domain": [f"{term}_s" for term in terms], "range": [RESOURCE_COLOURS[term] for term in terms]}
    return {"field": "term", "type": "nominal", "scale": scale, "legend": None}


def _term_lines(line: list[Row], terms: list[str]) -> list[Spec]:
    """One line per term; the total is thicker and lies beneath."""
    fold = [{"fold": [f"{term}_s" for term in terms], "as": ["term", "time_s"]}, {"filter": "datum.time_s > 0"}]
    width = {"condition": {"test": "datum.term == 'step_s'", "value": 4}, "value": 2}
    return [
        {
            "data": {"values": line},
            "transform": fold,
            "mark": {"type": "line"},
            "encoding": {"color": _term_colour(terms), "strokeWidth": width},
        }
    ]


def _term_ends(line: list[Row], terms: list[str], y: LogScale) -> list[Spec]:
    """Name of each term to the right of its line's end, spread so that names stay apart, with a leader between."""
    ends = sorted((line[-1][f"{term}_s"], term) for term in terms if line[-1][f"{term}_s"] > 0)
    middles = spread([y.at(time_s) for time_s, _ in ends], _LINE_HEIGHT)
    rows = [
        {
            "batch": line[-1]["batch"],
            "time_s": time_s,
            "term": f"{term}_s",
            "text": RESOURCE_NAMES[term],
            "label_y": y.value(middle),
        }
        for (time_s, term), middle in zip(ends, middles, strict=True)
    ]
    colour, data = {"color": _term_colour(terms)}, {"values": rows}
    at_label = {"field": "label_y", "type": "quantitative"}
    text = {"type": "text", "align": "left", "baseline": "middle", "fontSize": 12, "fontWeight": "bold"}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "strokeWidth": 1},
            "encoding": {**colour, "x2": {"value": WIDTH + 18}, "y2": {"field": "label_y"}},
        },
        {"data": data, "mark": {"type": "circle", "size": 40, "opacity": 1}, "encoding": colour},
        {
            "data": data,
            "mark": text,
            "encoding": {**colour, "x": {"value": WIDTH + 22}, "y": at_label, "text": {"field": "text"}},
        },
    ]


def _term_hover(line: list[Row], terms: list[str]) -> Spec:
    """Bands that are seen only by the mouse: each batch with all its terms."""
    texts = [{"calculate": time_text(f"datum.{term}_s", ".4~s"), "as": term} for term in terms]
    named = [{"field": term, "title": RESOURCE_NAMES[term]} for term in terms]
    return {
        "data": {"values": line},
        "transform": texts,
        "mark": {"type": "rule", "strokeWidth": 9, "opacity": 0, "aria": False},
        "encoding": {
            "y": {"value": 0},
            "y2": {"value": HEIGHT},
            "tooltip": [{"field": "batch", "format": ",", "title": "batch"}, *named],
        },
    }
