"""The frame of the explorer's charts on a light and on a dark ground; what is drawn comes as data, by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slicewise.report.explorer.resources import RESOURCES
from slicewise.report.frame import FONT, Spec

WIDTH, HEIGHT = 296, 236  # of the plot [px]; 440 x 320 with what stands around it: two lie side by side on a page
_PADDING = {"left": 56, "top": 30, "right": 88, "bottom": 54}


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The neutral colours of a ground."""

    name: str
    ink: str
    quiet: str
    grid: str
    faint: str
    ground: str
    accent: str


LIGHT = Theme(
    name="light", ink="#1C1B1F", quiet="#5B5A63", grid="#E6E4DF", faint="#96949E", ground="#FFFFFF", accent="#5B3FC4"
)
DARK = Theme(
    name="dark", ink="#ECEAF1", quiet="#A9A6B3", grid="#2D2B34", faint="#7A7786", ground="#141318", accent="#B3A1FF"
)
THEMES = (LIGHT, DARK)


Signals = dict[str, Any]
"""What axes span and where their ticks are: names that a specification refers to, and their values."""


def moving(encoding: Spec, channel: str, low: float, high: float, ticks: list[float]) -> Signals:
    """Let signals set the span and the ticks of an axis, so that it may change without drawing the chart anew.

    Args:
        encoding: the encoding of both axes; that of the channel is changed.
        channel: x or y.
        low: where the axis begins.
        high: where it ends.
        ticks: values with a label.

    Returns:
        The signals with their values.
    """
    names = [f"{channel}_{what}" for what in ("low", "high", "ticks")]
    encoding[channel]["scale"]["domain"] = [{"expr": names[0]}, {"expr": names[1]}]
    encoding[channel]["axis"]["values"] = {"expr": names[2]}
    return dict(zip(names, (low, high, ticks), strict=True))


def spec(theme: Theme, encoding: Spec, layers: list[Spec], names: list[str], signals: Signals) -> Spec:
    """A whole specification of fixed size. The data have names and no rows: the page puts them in, and changes them."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": None,
        "autosize": {"type": "none"},
        "padding": _PADDING,
        "width": WIDTH,
        "height": HEIGHT,
        "params": [{"name": name, "value": value} for name, value in signals.items()],
        "datasets": {name: [] for name in names},
        "encoding": encoding,
        "layer": layers,
        "config": {
            "font": FONT,
            "view": {"stroke": None},
            "axis": {
                "domain": False,
                "ticks": False,
                "gridColor": theme.grid,
                "labelColor": theme.quiet,
                "labelFontSize": 12.5,
                "labelPadding": 6,
                "titleColor": theme.quiet,
                "titleFontSize": 12.5,
                "titleFontWeight": "normal",
                "titlePadding": 10,
            },
        },
    }


def fills(theme: Theme) -> dict[str, str]:
    """The colour of each resource's areas on a ground."""
    return {each.key: (each.light if theme is LIGHT else each.dark).fill for each in RESOURCES}


def inks(theme: Theme) -> dict[str, str]:
    """The colour of each resource's texts on a ground."""
    return {each.key: (each.light if theme is LIGHT else each.dark).ink for each in RESOURCES}


def by_resource(colours: Mapping[str, str]) -> Spec:
    """The colour of a datum by the resource that it names."""
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": "resource", "type": "nominal", "scale": scale, "legend": None}


def text_by_resource(theme: Theme) -> Spec:
    """The colour of a text by the resource that it names: not a scale, which the areas have already."""
    tests = [{"test": f"datum.resource === '{key}'", "value": ink} for key, ink in inks(theme).items()]
    return {"condition": tests, "value": theme.quiet}


def chart(specs: Mapping[str, Spec], data: Mapping[str, list[dict[str, Any]]], alt: str) -> dict[str, Any]:
    """A chart: its specifications, its data and signals, and a key that changes when more than these do."""
    signals = {param["name"]: param["value"] for param in next(iter(specs.values()))["params"]}
    frames = {name: {**found, "params": [*signals]} for name, found in specs.items()}
    key = hashlib.sha256(json.dumps(frames, sort_keys=True).encode()).hexdigest()[:12]
    width, height = WIDTH + _PADDING["left"] + _PADDING["right"], HEIGHT + _PADDING["top"] + _PADDING["bottom"]
    return {
        "key": key,
        "spec": dict(specs),
        "data": dict(data),
        "signals": signals,
        "alt": alt,
        "width": width,
        "height": height,
    }
