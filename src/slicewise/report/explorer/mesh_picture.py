"""Draws a mesh: chips as squares, wires between them, wrapped axes as loops; a switched domain as boxes of chips."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from slicewise.report.frame import FONT

_CELL, _GAP, _PLANE_GAP, _MARGIN = 22, 12, 34, 30
_MOST_DRAWN = 512
_LABEL_HEIGHT = 18
_PLANES_A_ROW = 4


def mesh_svg(mesh: Mapping[str, Any]) -> str:
    """The picture as SVG. Colours are those of classes, and of the text where there are none."""
    body, width, height = _torus(mesh) if mesh["kind"] == "torus" else _domain(mesh)
    label = escape(f"{mesh['slice']}: {mesh['sentence']}", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mesh" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img" aria-label="{label}" fill="none" font-size="12"'
        f' font-family="{escape(FONT, quote=True)}">{"".join(body)}</svg>'
    )


def _torus(mesh: Mapping[str, Any]) -> tuple[list[str], int, int]:
    """Columns along x, rows along y, and a plane for each step along z."""
    lengths = [*mesh["shape"], 1, 1][:3]
    axes = [*mesh["axes"], None, None][:3]
    columns, rows, planes = lengths
    drawn = max(1, min(planes, _MOST_DRAWN // (columns * rows)))
    step = _CELL + _GAP
    plane_width = columns * step - _GAP + _MARGIN
    plane_height = rows * step - _GAP + _MARGIN
    a_row = min(drawn, _PLANES_A_ROW)
    body: list[str] = []
    for z in range(drawn):
        left = _MARGIN + (z % a_row) * (plane_width + _PLANE_GAP)
        top = _MARGIN + (z // a_row) * (plane_height + _PLANE_GAP)
        body += _plane(left, top, columns, rows, axes, _part(z, axes[2]))
        if planes > 1:
            body.append(_text(left, top - 14, f"z = {z}"))
    rounds = -(-drawn // a_row)
    width = _MARGIN + a_row * (plane_width + _PLANE_GAP)
    height = _MARGIN + rounds * (plane_height + _PLANE_GAP)
    for axis in filter(None, axes):
        if axis["length"] > 1:
            body.append(_text(_MARGIN, height, _axis_words(axis)))
            height += _LABEL_HEIGHT
    if drawn < planes:
        body.append(_text(_MARGIN, height, f"{drawn} of {planes} planes are drawn"))
        height += _LABEL_HEIGHT
    longest = max((len(_axis_words(axis)) for axis in filter(None, axes)), default=0)
    return body, max(width, _MARGIN + 7 * longest), height


def _axis_words(axis: Mapping[str, Any]) -> str:
    shards = f": {axis['shards']}" if axis["shards"] else ""
    return f"{axis['name']}, {axis['text']}{shards}"


def _plane(left: int, top: int, columns: int, rows: int, axes: list[Any], first: int) -> Iterator[str]:
    step, half = _CELL + _GAP, _CELL / 2
    right, bottom = left + (columns - 1) * step + _CELL, top + (rows - 1) * step + _CELL
    for y in range(rows):
        middle = top + y * step + half
        yield _wires((left + x * step + _CELL, middle, _GAP, 0) for x in range(columns - 1))
        if axes[0] and axes[0]["wraps"]:
            yield _loop(f"M{right} {middle}c14 0 14 {half + 3} 0 {half + 3}H{left}c-14 0 -14 {-half - 3} 0 {-half - 3}")
    for x in range(columns):
        middle = left + x * step + half
        yield _wires((middle, top + y * step + _CELL, 0, _GAP) for y in range(rows - 1))
        if axes[1] and axes[1]["wraps"]:
            yield _loop(f"M{middle} {bottom}c0 14 {half + 3} 14 {half + 3} 0V{top}c0 -14 {-half - 3} -14 {-half - 3} 0")
    for y in range(rows):
        for x in range(columns):
            yield _chip(left + x * step, top + y * step, first + _part(x, axes[0]) + _part(y, axes[1]))


def _part(at: int, axis: Mapping[str, Any] | None) -> int:
    """Which part of the heads (or tensor ranks) a place along an axis has."""
    return 0 if axis is None else at // axis["batch_ways"] if axis["head_ways"] > 1 else 0


def _domain(mesh: Mapping[str, Any]) -> tuple[list[str], int, int]:
    """Boxes of GPUs behind one switch each."""
    in_one, total = mesh["domain_chips"], mesh["n_chips"]
    nodes = -(-total // in_one)
    drawn = max(1, min(nodes, _MOST_DRAWN // in_one))
    columns = min(in_one, 8)
    rows = -(-in_one // columns)
    step = _CELL + _GAP
    box_width, box_height = columns * step + _GAP, rows * step + _GAP
    a_row = min(drawn, 2)
    body = []
    for node in range(drawn):
        left = _MARGIN + (node % a_row) * (box_width + _PLANE_GAP)
        top = _MARGIN + (node // a_row) * (box_height + _PLANE_GAP)
        body.append(
            f'<rect class="mesh-domain" x="{left}" y="{top}" width="{box_width}" height="{box_height}" rx="6"'
            ' stroke="currentColor" stroke-opacity="0.5"/>'
        )
        for chip in range(min(in_one, total - node * in_one)):
            x, y = left + _GAP + chip % columns * step, top + _GAP + chip // columns * step
            body.append(_chip(x, y, chip % max(1, mesh["head_shards"])))
        body.append(_text(left, top - 8, f"node {node + 1}" if nodes > 1 else "one scale-up domain"))
    width = _MARGIN + a_row * (box_width + _PLANE_GAP)
    height = _MARGIN + -(-drawn // a_row) * (box_height + _PLANE_GAP)
    if drawn < nodes:
        body.append(_text(_MARGIN, height, f"{drawn} of {nodes} nodes are drawn"))
        height += _LABEL_HEIGHT
    return body, width, height


def _chip(x: float, y: float, part: int) -> str:
    """A chip; neighbouring parts of the heads differ in strength, so that the cut is seen."""
    strength = (0.9, 0.45)[part % 2]
    return (
        f'<rect class="mesh-chip fill-kv" x="{x:g}" y="{y:g}" width="{_CELL}" height="{_CELL}" rx="3"'
        f' fill="#D55E00" fill-opacity="{strength}"/>'
    )


def _wires(pieces: Iterable[tuple[float, float, float, float]]) -> str:
    """Wires between neighbours: where each starts, and how far it goes."""
    path = "".join(f"M{x:g} {y:g}l{dx:g} {dy:g}" for x, y, dx, dy in pieces)
    if not path:
        return ""
    return f'<path class="mesh-wire" d="{path}" stroke="currentColor" stroke-opacity="0.6" stroke-width="2"/>'


def _loop(path: str) -> str:
    return f'<path class="mesh-loop" d="{path}" stroke="currentColor" stroke-opacity="0.45" stroke-width="1.2"/>'


def _text(x: float, y: float, words: str) -> str:
    return f'<text class="mesh-label" x="{x:g}" y="{y:g}" fill="currentColor">{escape(words)}</text>'
