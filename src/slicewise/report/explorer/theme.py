"""The frame of the explorer's charts on a light and on a dark ground; what is drawn comes as data, by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slicewise.report.explorer.resources import RESOURCES
from slicewise.report.frame import FONT, Spec

WIDTH, HEIGHT = 520, 320  # of the plot [px]
_PADDING = {"left": 62, "top": 26, "right": 116, "bottom": 52}


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The neutral colours of a ground."""

    name: str
    ink: str
    quiet: str
    grid: str
    faint: str
    ground: str


LIGHT = Theme(name="light", ink="#1B1F24", quiet="#59636E", grid="#E4E7EB", faint="#98A2AD", ground="#FFFFFF")
DARK = Theme(name="dark", ink="#E8EBEF", quiet="#A3ACB8", grid="#2B313A", faint="#6B7683", ground="#14171C")
THEMES = (LIGHT, DARK)


def spec(theme: Theme, encoding: Spec, layers: list[Spec], names: list[str]) -> Spec:
    """A whole specification of fixed size. The data have names and no rows: the page puts them in, and changes them."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": None,
        "autosize": {"type": "none"},
        "padding": _PADDING,
        "width": WIDTH,
        "height": HEIGHT,
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
                "labelFontSize": 12,
                "labelPadding": 6,
                "titleColor": theme.quiet,
                "titleFontSize": 12,
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


def chart(specs: Mapping[str, Spec], data: Mapping[str, list[dict[str, Any]]], alt: str) -> dict[str, Any]:
    """A chart: its specifications, its data, and a key that changes when more than the data do."""
    key = hashlib.sha256(json.dumps(specs, sort_keys=True).encode()).hexdigest()[:12]
    width, height = WIDTH + _PADDING["left"] + _PADDING["right"], HEIGHT + _PADDING["top"] + _PADDING["bottom"]
    return {"key": key, "spec": dict(specs), "data": dict(data), "alt": alt, "width": width, "height": height}
