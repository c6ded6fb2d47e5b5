"""Latency against throughput: a curve for each slice, the chosen point, the limit and the knee."""

from __future__ import annotations

from typing import Any

import numpy as np

from slicewise.report.explorer.curves import Curve, told
from slicewise.report.explorer.scales import log_frame
from slicewise.report.explorer.theme import HEIGHT, THEMES, WIDTH, Theme, chart, moving, spec
from slicewise.report.frame import Spec, log_axis, time_text
from slicewise.report.placement import AT_END, Label, LogScale, along, place
from slicewise.units import show

_FARTHEST = 13  # a label farther up or down than this names something else [px]
_LABELLED = (1, 4, 16, 64, 256, 1024)
_DATA = ("ghost", "limit", "curves", "points", "labels")
_X, _Y = "step_s", "tokens_per_s_per_chip"
Row = dict[str, Any]
Point = tuple[int, float, float]
"""Batch, step [s], tokens/s per chip."""


def frontier_chart(
    drawn: list[Curve], *, chosen: Point | None, knee: Point | None, limit_s: float | None, alt: str
) -> dict[str, Any]:
    """The chart of the curves.

    Args:
        drawn: the curves; there is at least one.
        chosen: the point that is shown; None where it does not fit.
        knee: the knee of the slice that is shown, where it lies on the curve.
        limit_s: the limit on the time per output token. [s]
        alt: what it shows, in a sentence.
    """
    times = [
        *(time for curve in drawn for time in (curve.step_s[0], curve.step_s[-1])),
        *([limit_s] if limit_s else []),
    ]
    rates = [rate for curve in drawn for rate in (curve.tokens_per_s_per_chip.min(), curve.tokens_per_s_per_chip.max())]
    x, y = log_frame(map(float, times), WIDTH), log_frame(map(float, rates), HEIGHT)
    points = _points(drawn, chosen, knee)
    data: dict[str, list[Row]] = {
        "ghost": [],
        "limit": [{_X: limit_s, "text": f"TPOT limit {show(limit_s, 's', 3)}"}] if limit_s else [],
        "curves": [row for curve in drawn for row in _rows(curve)],
        "points": points,
        "labels": _labels(drawn, points, x, y, limit_s),
    }
    return chart({theme.name: _spec(theme, x, y) for theme in THEMES}, data, alt)


def _rows(curve: Curve) -> list[Row]:
    return [
        {
            "slice": curve.slice,
            "chosen": curve.is_chosen,
            "batch": int(curve.batch[i]),
            _X: float(curve.step_s[i]),
            _Y: float(curve.tokens_per_s_per_chip[i]),
            **told(curve, i),
        }
        for i in range(len(curve.batch))
    ]


def _points(drawn: list[Curve], chosen: Point | None, knee: Point | None) -> list[Row]:
    """The chosen point and the knee, and small dots at round batches of the slice that is shown."""
    found: list[Row] = []
    for curve in drawn:
        if curve.is_chosen:
            for batch in _LABELLED:
                index = int(np.searchsorted(curve.batch, batch))
                if index < len(curve.batch) and curve.batch[index] == batch:
                    found.append(_point("batch", batch, curve.step_s[index], curve.tokens_per_s_per_chip[index]))
        found.append(_point("end", curve.max_batch, curve.step_s[-1], curve.tokens_per_s_per_chip[-1]))
    found += [_point(kind, *at) for kind, at in (("knee", knee), ("chosen", chosen)) if at is not None]
    return found


def _point(kind: str, batch: int, step_s: Any, rate: Any) -> Row:
    return {"kind": kind, "batch": int(batch), _X: float(step_s), _Y: float(rate)}


def _labels(drawn: list[Curve], points: list[Row], x: LogScale, y: LogScale, limit_s: float | None) -> list[Row]:
    """The chosen point, each curve's slice at its end, the knee and round batches, as far as there is room."""

    def pixel(step_s: float, rate: float) -> tuple[float, float]:
        return x.at(step_s), HEIGHT - y.at(rate)

    paths = [along(pixel(*at) for at in zip(c.step_s, c.tokens_per_s_per_chip, strict=True)) for c in drawn]
    if limit_s:
        paths.append(along([(x.at(limit_s), 0), (x.at(limit_s), HEIGHT)]))
    wanted: list[Label] = []
    for row in reversed(points):
        if row["kind"] in ("chosen", "knee", "batch"):
            words = {"chosen": f"{row['batch']:,} at a time", "knee": "knee", "batch": f"{row['batch']:,}"}
            wanted.append(
                Label(words[row["kind"]], pixel(row[_X], row[_Y]), {**row, "strong": row["kind"] == "chosen"})
            )
    ends = [
        Label(
            _name(curve),
            pixel(curve.step_s[-1], curve.tokens_per_s_per_chip[-1]),
            {
                _X: float(curve.step_s[-1]), _Y: float(curve.tokens_per_s_per_chip[-1]), "kind": "slice",
                "strong": curve.is_chosen,
            },
            AT_END,
            12,
        )
        for curve in sorted(drawn, key=lambda curve: not curve.is_chosen)
    ]  # fmt: skip
    first = [label for label in wanted if label.row["kind"] == "chosen"]
    rest = [label for label in wanted if label.row["kind"] != "chosen"]
    placed = place([*first, *ends, *rest], np.concatenate(paths), HEIGHT)
    return [
        {**label.row, "text": label.text, "align": align, "dx": dx, "dy": dy}
        for label, (align, dx, dy) in placed
        if abs(dy) < _FARTHEST or label.row["strong"]
    ]


def _name(curve: Curve) -> str:
    """A slice beside its curve: a topology, or how many GPUs, which must not read as a batch."""
    slice_ = curve.deployment.slice
    if not slice_.chip.is_gpu:
        return slice_.name.split(":")[-1]
    return f"{slice_.n_chips} GPU{'s' if slice_.n_chips > 1 else ''}"


def _spec(theme: Theme, x: LogScale, y: LogScale) -> Spec:
    encoding = {
        "x": log_axis(_X, x, "Time per output token", [], time_text("datum.value", "~s")),
        "y": log_axis(_Y, y, "Tokens/s per chip", [], "format(datum.value, ',~r')"),
    }
    signals = moving(encoding, "x", x.low, x.high, x.ticks(6)) | moving(encoding, "y", y.low, y.high, y.ticks(6))
    own = {"condition": {"test": "datum.chosen", "value": theme.accent}, "value": theme.faint}
    width = {"condition": {"test": "datum.chosen", "value": 2.6}, "value": 1.3}
    by_slice = {"detail": {"field": "slice", "type": "nominal"}, "order": {"field": "batch", "type": "quantitative"}}
    top, bottom = {"value": 0}, {"value": HEIGHT}
    layers: list[Spec] = [
        _layer(
            "ghost", {"type": "line", "strokeWidth": 2.6, "opacity": 0.35, "clip": True, "color": theme.faint}, by_slice
        ),
        _layer("limit", {"type": "rule", "strokeDash": [5, 4], "color": theme.ink}, {"y": top, "y2": bottom}),
        _layer(
            "limit",
            {"type": "text", "color": theme.ink, "baseline": "bottom", "fontSize": 12.5},
            {"y": {"value": -6}, "text": {"field": "text"}},
        ),
        _layer("curves", {"type": "line"}, {**by_slice, "color": own, "strokeWidth": width}),
        _layer("points", {"type": "circle", "opacity": 1}, _dots(theme)),
        _layer("labels", _text(), {"text": {"field": "text"}, "color": _strong(theme.accent, theme.quiet)}),
        _layer("curves", {"type": "circle", "size": 110, "opacity": 0}, {"tooltip": _TIP}),
    ]
    return spec(theme, encoding, layers, list(_DATA), signals)


_TIP = [
    {"field": "slice", "type": "nominal", "title": "slice"},
    {"field": "sequences", "type": "nominal", "title": "sequences"},
    {"field": "time", "type": "nominal", "title": "time per token"},
    {"field": "throughput", "type": "nominal", "title": "per chip"},
]


def _layer(name: str, mark: Spec, encoding: Spec) -> Spec:
    return {"data": {"name": name}, "mark": mark, "encoding": encoding}


def _dots(theme: Theme) -> Spec:
    """Points by kind: the chosen one is large, the knee is hollow."""
    chosen, knee = "datum.kind == 'chosen'", "datum.kind == 'knee'"
    return {
        "size": {"condition": [{"test": chosen, "value": 110}, {"test": knee, "value": 90}], "value": 26},
        "color": {
            "condition": [{"test": knee, "value": theme.ground}, {"test": "datum.kind == 'end'", "value": theme.faint}],
            "value": theme.accent,
        },
        "stroke": {"condition": {"test": knee, "value": theme.accent}, "value": None},
    }


def _strong(strong: str, quiet: str) -> Spec:
    return {"condition": {"test": "datum.strong", "value": strong}, "value": quiet}


def _text() -> Spec:
    placed = {name: {"expr": f"datum.{name}"} for name in ("align", "dx", "dy")}
    weight = {"expr": "datum.strong ? 'bold' : 'normal'"}
    return {"type": "text", "fontSize": 12.5, "baseline": "middle", "fontWeight": weight, **placed}
