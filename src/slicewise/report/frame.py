"""The frame that every picture shares: its size, its type, its axes, and how it prints a time."""

from __future__ import annotations

import textwrap
from typing import Any, TypeAlias

from slicewise.report.placement import LogScale

Spec: TypeAlias = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""

WIDTH, HEIGHT = 600, 400  # of the plot; axes, title and end labels bring a figure to about 800 x 550 [px]
INK, QUIET = "#222222", "#595959"
_GRID = "#e4e4e4"
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
_CONFIG: Spec = {
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "ticks": False,
        "gridColor": _GRID,
        "labelColor": QUIET,
        "labelFontSize": 12,
        "labelPadding": 6,
        "titleColor": QUIET,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    },
    "title": {
        "anchor": "start",
        "frame": "group",
        "color": INK,
        "fontSize": 15,
        "offset": 24,
        "subtitleColor": QUIET,
        "subtitleFontSize": 12,
        "subtitleLineHeight": 16,
        "subtitlePadding": 6,
    },
}


def time_text(seconds: str, style: str) -> str:
    """A Vega expression that prints seconds (another expression) as people do: "5.36 ms", "10 µs"."""
    return f"replace(format({seconds}, '{style}'), regexp('[^0-9.]?$'), ' $&s')"


def log_axis(field: str, scale: LogScale, title: str, ticks: list[float], label: str) -> Spec:
    """The encoding of a field along a log axis, whose ticks the Vega expression `label` prints."""
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "domain": [scale.low, scale.high], "nice": False},
        "axis": {"title": f"{title} (log scale)", "values": ticks, "labelExpr": label, "labelFlush": False},
    }


def figure(title: str, subtitles: list[str], encoding: Spec, layers: list[Spec]) -> Spec:
    """The whole specification: layers that share x and y under a title."""
    small = [line for subtitle in subtitles for line in textwrap.wrap(subtitle, 110)]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "padding": 12,
        "width": WIDTH,
        "height": HEIGHT,
        "title": {"text": textwrap.wrap(title, 88), "subtitle": small},
        "encoding": encoding,
        "layer": layers,
        "config": _CONFIG,
    }
