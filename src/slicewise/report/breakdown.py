"""Where a decode step's time goes: the terms of a step and their total over the batch, as a Vega-Lite spec.

As in `charts.py`, a pure function from columns to a plain dict, which `figures.py` writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from slicewise.errors import InputError
from slicewise.report.chart_lines import FrontierColumns, Row, contexts_of, line_of
from slicewise.report.frame import HEIGHT, INK, WIDTH, Spec, figure, log_axis, time_text
from slicewise.report.placement import LogScale, log_scale, spread

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

_LINE_HEIGHT = 17  # between labels at the lines' ends [px]


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
    contexts = contexts_of(columns)
    if context_tokens not in contexts:
        raise InputError(f"no batch fits at {context_tokens:,.0f} tokens; draw one of {_listed(contexts)}")
    line = line_of(columns, context_tokens, critical_batch)
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


def _listed(contexts: Sequence[float]) -> str:
    return ", ".join(f"{context:,.0f}" for context in contexts)


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
