"""Where a decode step's time goes over the batch: areas that add up to the step, and the compute-bound region."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.report.explorer.curves import Column, Part
from slicewise.report.explorer.resources import BY_KEY
from slicewise.report.explorer.scales import above, powers_of_two, steps_to
from slicewise.report.explorer.theme import (
    HEIGHT,
    THEMES,
    WIDTH,
    Theme,
    by_resource,
    chart,
    fills,
    moving,
    spec,
    text_by_resource,
)
from slicewise.report.frame import Spec, log_axis, time_text
from slicewise.report.placement import LogScale, spread
from slicewise.units import show

_DATA = ("region", "parts", "ghost", "total", "now", "labels", "names")
_LINE_HEIGHT = 17
_LEAST_LABELLED = 0.012
"""Of the axis: a part that is thinner at its end has no label."""
_NAMED_UP_TO = 0.7
"""Of the width: a name inside its area starts no farther right."""
_MOST_TICKS = 7
Row = dict[str, Any]


def breakdown_chart(batch: Column, found: list[Part], *, now: int, critical_batch: float, alt: str) -> dict[str, Any]:
    """The chart of the parts.

    Args:
        batch: sequences, from one to the most that fit. Shape (n,), n at least 1.
        found: the parts of the step, which add up to it.
        now: the batch that is shown.
        critical_batch: the batch above which matmuls are bound by FLOPs.
        alt: what it shows, in a sentence.
    """
    edges = np.vstack([np.zeros(len(batch)), np.cumsum([part.seconds for part in found], axis=0)])
    x, top = powers_of_two(float(batch[-1]), WIDTH), above(float(edges[-1].max()))
    data: dict[str, list[Row]] = {
        "region": _region(critical_batch, x),
        "parts": [row for k, part in enumerate(found) for row in _area(part, batch, edges[k], edges[k + 1])],
        "ghost": [],
        "total": [{"batch": float(b), "time_s": float(t)} for b, t in zip(batch, edges[-1], strict=True)],
        "now": [{"batch": float(now), "text": f"{now:,}"}] if 1 <= now <= x.high else [],
        "labels": _labels(found, edges[:, -1], float(batch[-1]), top),
        "names": _names(found, edges, batch, x, top),
    }
    return chart({theme.name: _spec(theme, x, top) for theme in THEMES}, data, alt)


def _region(critical_batch: float, x: LogScale) -> list[Row]:
    if critical_batch >= x.high:
        return []
    return [{"batch": max(critical_batch, x.low), "to": x.high, "text": f"compute-bound, B > {critical_batch:,.0f}"}]


def _area(part: Part, batch: Column, low: Column, high: Column) -> list[Row]:
    return [
        {
            "batch": float(b),
            "key": part.key,
            "resource": part.resource,
            "low_s": float(a),
            "high_s": float(z),
            "part": part.label,
            "sequences": f"{b:,.0f}",
            "time": show(float(z - a), "s", 3),
        }
        for b, a, z in zip(batch, low, high, strict=True)
    ]


def _labels(found: list[Part], edges: Column, last: float, top: float) -> list[Row]:
    """The name of each part beside its end, the lowest first, kept apart."""
    thick = [k for k in range(len(found)) if edges[k + 1] - edges[k] > _LEAST_LABELLED * top]
    middles = [float(edges[k] + edges[k + 1]) / 2 / top * HEIGHT for k in thick]
    places = [min(max(at, 6.0), HEIGHT - 6.0) for at in spread(middles, _LINE_HEIGHT)]
    return [
        {
            "batch": last,
            "label_s": at / HEIGHT * top,
            "resource": found[k].resource,
            "text": _name(found[k]),
        }
        for k, at in zip(thick, places, strict=True)
    ]


def _name(part: Part) -> str:
    """Of its resource; of what is spent on none, the part's own."""
    return part.label.partition(":")[0] if part.resource == "other" else BY_KEY[part.resource].label


def _names(found: list[Part], edges: NDArray[np.float64], batch: Column, x: LogScale, top: float) -> list[Row]:
    """The name of a part inside it, at its thickest, where its end is too thin for one."""
    rows = []
    for k, part in enumerate(found):
        thick = part.seconds / top * HEIGHT
        middle = int(np.argmax(np.where(batch <= x.value(WIDTH * _NAMED_UP_TO), thick, 0.0)))
        is_thin_at_end = thick[-1] <= _LEAST_LABELLED * HEIGHT
        if is_thin_at_end and thick[middle] > _LINE_HEIGHT:
            at = float(edges[k, middle] + edges[k + 1, middle]) / 2
            label = BY_KEY[part.resource].label
            rows.append({"batch": float(batch[middle]), "label_s": at, "text": label, "resource": part.resource})
    return rows


def _spec(theme: Theme, x: LogScale, top: float) -> Spec:
    powers = [float(2**k) for k in range(64) if 2**k <= x.high]
    shown = powers[:: max(1, -(-len(powers) // _MOST_TICKS))]
    encoding: Spec = {
        "x": log_axis("batch", x, "Batch, sequences per decode step", [], "format(datum.value, ',')"),
        "y": {
            "field": "time_s",
            "type": "quantitative",
            "scale": {"nice": False, "zero": True},
            "axis": {"title": "Time per step", "labelExpr": time_text("datum.value", "~s")},
        },
    }
    signals = moving(encoding, "x", x.low, x.high, shown) | moving(encoding, "y", 0.0, top, steps_to(top))
    fill, ink = by_resource(fills(theme)), text_by_resource(theme)
    ends: Spec = {"y": {"field": "low_s"}, "y2": {"field": "high_s"}}
    by_part = {"detail": {"field": "key", "type": "nominal"}}
    whole: Spec = {"y": {"value": 0}, "y2": {"value": HEIGHT}}
    small: Spec = {"type": "text", "fontSize": 12.5, "color": theme.quiet, "baseline": "bottom"}
    layers: list[Spec] = [
        _layer(
            "region",
            {"type": "rect", "color": fills(theme)["flops"], "opacity": 0.13},
            {**whole, "x2": {"field": "to"}},
        ),
        _layer(
            "region",
            {**small, "align": "right"},
            {"x": {"value": WIDTH}, "y": {"value": -6}, "text": {"field": "text"}},
        ),
        _layer("parts", {"type": "area", "opacity": 0.85}, {**ends, **by_part, "color": fill}),
        _layer("ghost", {"type": "line", "strokeWidth": 2, "opacity": 0.5, "clip": True, "color": theme.faint}, {}),
        _layer("total", {"type": "line", "strokeWidth": 2.4, "color": theme.ink}, {}),
        _layer("now", {"type": "rule", "strokeDash": [3, 3], "color": theme.ink}, whole),
        _layer(
            "labels",
            {"type": "text", "align": "left", "baseline": "middle", "fontSize": 12.5, "fontWeight": "bold"},
            {"x": {"value": WIDTH + 8}, "y": {"field": "label_s"}, "color": ink, "text": {"field": "text"}},
        ),
        _layer(
            "names",
            {"type": "text", "align": "left", "dx": 8, "fontSize": 12.5, "fontWeight": "bold", "color": theme.ground},
            {"y": {"field": "label_s"}, "text": {"field": "text"}},
        ),
        _layer("parts", {"type": "circle", "size": 120, "opacity": 0}, {"y": {"field": "high_s"}, "tooltip": _TIP}),
    ]
    return spec(theme, encoding, layers, list(_DATA), signals)


_TIP = [
    {"field": "sequences", "type": "nominal", "title": "sequences"},
    {"field": "part", "type": "nominal", "title": "part"},
    {"field": "time", "type": "nominal", "title": "time"},
]


def _layer(name: str, mark: Spec, encoding: Spec) -> Spec:
    return {"data": {"name": name}, "mark": mark, "encoding": encoding}
