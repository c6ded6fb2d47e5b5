"""Pictures of a simulated run as Vega-Lite specs: latencies as shares of requests, and the run over time.

Pure functions from columns to plain dicts, which `figures.py` writes. Times stay in seconds; axes print them as people
do. Lines are named at their ends, so that nobody has to look for a legend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slicewise.report.frame import HEIGHT, INK, QUIET, WIDTH, Spec, figure, log_axis, time_text
from slicewise.report.placement import log_scale, spread

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""Of Okabe and Ito, which the colour-blind tell apart too."""
_POINTS = 200
_LABEL_GAP = 15.0
_SHARES = (0.5, 0.9, 0.99)
_NAMED_AT = (0.7, 0.5, 0.3, 0.6)
"""Heights at which lines are named, apart from each other where lines are not."""


def cdf_spec(
    latencies: Mapping[str, NDArray[np.float64]], *, title: str, subtitle: str, limits: Mapping[str, float]
) -> Spec:
    """The share of requests that stay within a time, one line a latency.

    Args:
        latencies: of each request by their names, above zero where they are known. [s] Shape (n,).
        title: the heading.
        subtitle: what holds for the whole picture.
        limits: vertical lines by their names. [s]
    """
    lines = {name: _cdf(values[np.isfinite(values) & (values > 0)]) for name, values in latencies.items()}
    lines = {name: rows for name, rows in lines.items() if rows}
    times = [row["time_s"] for rows in lines.values() for row in rows]
    # Where nothing was finished and nothing is limited, there is still an axis.
    x = log_scale([*times, *limits.values()] or [1.0], WIDTH, before=16, after=16)
    colour = _colour(list(lines))
    rows = [{"name": name, **row} for name, line in lines.items() for row in line]
    marks = [row for row in rows if row["share"] in _SHARES]
    y = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"title": "Share of requests within that time", "format": ".0%", "tickCount": 6},
    }
    encoding = {"x": log_axis("time_s", x, "Time", x.ticks(9), time_text("datum.value", "~s")), "y": y}
    names = [
        {**line[int(share * (len(line) - 1))], "name": name}
        for (name, line), share in zip(lines.items(), _NAMED_AT, strict=False)
    ]
    layers = [
        *_limits(limits),
        {"data": {"values": rows}, "mark": {"type": "line", "strokeWidth": 2}, "encoding": {"color": colour}},
        {
            "data": {"values": marks},
            "mark": {"type": "circle", "size": 40, "opacity": 1},
            "encoding": {"color": colour},
        },
        {
            "data": {"values": names},
            "mark": {"type": "text", "align": "right", "dx": -8, "dy": -6, "fontSize": 12, "fontWeight": "bold"},
            "encoding": {"text": {"field": "name"}, "color": colour},
        },
    ]
    return figure(title, [subtitle, "Dots: p50, p90 and p99."], encoding, layers)


def _cdf(values: NDArray[np.float64]) -> list[dict[str, float]]:
    """Points of the distribution, with those that have a dot among them."""
    if not len(values):
        return []
    shares = np.unique(np.concatenate([np.linspace(0, 1, _POINTS), np.array(_SHARES)]))
    times = np.quantile(values, shares)
    return [{"time_s": float(time), "share": float(share)} for time, share in zip(times, shares, strict=True)]


def over_time_spec(columns: Mapping[str, Sequence[float]], names: Mapping[str, str], *, title: str, unit: str) -> Spec:
    """Columns of a run over its time, one line each.

    Args:
        columns: as `series` gives them, with `time_s`.
        names: of the columns to draw, in words.
        title: the heading.
        unit: of all of them, in words.
    """
    time_s = columns["time_s"]
    rows = [
        {"time_s": at, "value": value, "name": words}
        for name, words in names.items()
        for at, value in zip(time_s, columns[name], strict=True)
    ]
    most = max(value for name in names for value in columns[name]) or 1.0
    x = {
        "field": "time_s",
        "type": "quantitative",
        "scale": {"nice": False},
        "axis": {
            "title": "Time since the first arrival",
            "labelExpr": "format(datum.value, ',~r') + ' s'",
            "tickCount": 6,
        },
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [0, most]},
        "axis": {"title": unit, "tickCount": 6},
    }
    colour = _colour(list(names.values()))
    layers = [
        {"data": {"values": rows}, "mark": {"type": "line", "strokeWidth": 1.5}, "encoding": {"color": colour}},
        *_end_labels({words: columns[name][-1] for name, words in names.items()}, time_s[-1], most, colour),
    ]
    return figure(title, [], {"x": x, "y": y}, layers)


def _end_labels(ends: Mapping[str, float], at_s: float, most: float, colour: Spec) -> list[Spec]:
    """Names beside the ends of lines, apart from each other."""
    order = sorted(ends, key=lambda name: -ends[name])
    pixels = spread([HEIGHT * (1 - ends[name] / most) for name in order], _LABEL_GAP)
    return [
        {
            "data": {"values": [{"time_s": at_s, "name": name, "value": ends[name]}]},
            "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": 12, "fontWeight": "bold"},
            "encoding": {"text": {"field": "name"}, "y": {"value": pixel}, "color": colour},
        }
        for name, pixel in zip(order, pixels, strict=True)
    ]


def _colour(names: list[str]) -> Spec:
    scale = {"domain": names, "range": list(COLOURS[: len(names)])}
    return {"field": "name", "type": "nominal", "scale": scale, "legend": None}


def _limits(limits: Mapping[str, float]) -> list[Spec]:
    return [
        layer
        for place, (name, seconds) in enumerate(limits.items())
        for layer in (
            {
                "data": {"values": [{"time_s": seconds}]},
                "mark": {"type": "rule", "color": INK, "strokeDash": [5, 4], "strokeWidth": 1.2},
                "encoding": {"y": {"value": 0}, "y2": {"value": HEIGHT}},
            },
            {
                "data": {"values": [{"time_s": seconds, "name": name}]},
                "mark": {"type": "text", "align": "center", "color": QUIET, "fontSize": 11},
                "encoding": {"text": {"field": "name"}, "y": {"value": -6 - _LABEL_GAP * (place % 2)}},
            },
        )
    ]
