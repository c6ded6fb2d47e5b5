"""Draws a mesh: chips as squares, wires between them, wrapped axes as loops; a switched domain as boxes of chips."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from slicewise.report.frame import FONT

_WIDTH, _MOST_HEIGHT, _MARGIN, _PLANE_GAP = 440, 250, 32, 30
_LARGEST_STEP, _LEAST_STEP = 62, 9
_NUMBERED_FROM = 30
"""The least distance of chips that leaves room for a number in each. [px]"""
_MOST_DRAWN = 512
_LABEL_HEIGHT = 18
_STRENGTHS = (0.2, 0.62, 0.36, 0.85)
"""How strongly the parts of the batch are coloured, in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Where chips lie: distance from one to the next, and size of one. [px]"""

    step: int
    cell: int

    @classmethod
    def of(cls, columns: int, rows: int, planes: int = 1) -> _Grid:
        """As large as there is room for so many chips."""
        a_row = _planes_a_row(planes)
        wide = (_WIDTH - 2 * _MARGIN - (a_row - 1) * _PLANE_GAP) // (columns * a_row)
        high = _MOST_HEIGHT // (rows * -(-planes // a_row))
        step = max(_LEAST_STEP, min(_LARGEST_STEP, wide, high))
        return cls(step=step, cell=round(step * 0.68))

    @property
    def gap(self) -> int:
        """Between two chips. [px]"""
        return self.step - self.cell

    def length(self, count: int) -> int:
        """Of so many chips side by side. [px]"""
        return count * self.step - self.gap


def _planes_a_row(planes: int) -> int:
    """As near to a square as planes side by side come."""
    return min(planes, 2) if planes <= 4 else 4  # noqa: PLR2004  two rows of two, then rows of four


def mesh_svg(mesh: Mapping[str, Any]) -> str:
    """The picture as SVG. Colours are those of classes, and of the text where there are none."""
    body, height = _torus(mesh) if mesh["kind"] == "torus" else _domain(mesh)
    label = escape(f"{mesh['slice']}: {mesh['sentence']}", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mesh" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"'
        f' height="{height}" role="img" aria-label="{label}" fill="none" font-size="12.5"'
        f' font-family="{escape(FONT, quote=True)}">{"".join(body)}</svg>'
    )


def _torus(mesh: Mapping[str, Any]) -> tuple[list[str], int]:
    """Columns along the longer of x and y, rows along the other, and a plane for each step along z."""
    shape, axes = [*mesh["shape"], 1, 1][:3], [*mesh["axes"], None, None][:3]
    is_turned = shape[1] > shape[0]
    if is_turned:
        shape, axes = [shape[1], shape[0], shape[2]], [axes[1], axes[0], axes[2]]
    columns, rows, planes = shape
    drawn = max(1, min(planes, _MOST_DRAWN // (columns * rows)))
    grid = _Grid.of(columns, rows, drawn)
    a_row = _planes_a_row(drawn)
    body: list[str] = []
    for z in range(drawn):
        left = _MARGIN + (z % a_row) * (grid.length(columns) + _PLANE_GAP)
        top = _MARGIN + (z // a_row) * (grid.length(rows) + _PLANE_GAP)
        body += _plane(grid, left, top, z, columns, rows, axes, is_turned=is_turned)
        if planes > 1:
            body.append(_text(left, top - 12, f"z = {z}"))
    height = 2 * _MARGIN + -(-drawn // a_row) * (grid.length(rows) + _PLANE_GAP) - _PLANE_GAP + 4
    if planes == 1:
        across, down = "yx" if is_turned else "xy"
        body += [_text(_MARGIN, 12, f"{across} →")] if columns > 1 else []
        body += [_text(0, _MARGIN + grid.cell / 2 + 4, f"{down}↓")] if rows > 1 else []
    words = [_axis_words(axis) for axis in mesh["axes"] if axis["length"] > 1]
    words += [f"{drawn} of {planes} planes are drawn"] if drawn < planes else []
    lines, height = _lines([*words, *_key(axes, grid)], height)
    return [*body, *lines], height


def _key(axes: list[Any], grid: _Grid) -> list[str]:
    """What numbers and tones of the chips mean."""
    heads = any(axis and axis["head_ways"] > 1 for axis in axes)
    batch = any(axis and axis["batch_ways"] > 1 for axis in axes)
    told = [
        "number: its part of the KV heads" if heads and grid.step >= _NUMBERED_FROM else "",
        "tone: its part of the batch" if batch else "",
    ]
    return ["; ".join(filter(None, told))] if any(told) else []


def _lines(words: list[str], height: int) -> tuple[list[str], int]:
    """Lines of text below a picture of that height."""
    lines = [_text(0, height + i * _LABEL_HEIGHT, line) for i, line in enumerate(words)]
    return lines, height + len(words) * _LABEL_HEIGHT - (12 if words else 0)


def _axis_words(axis: Mapping[str, Any]) -> str:
    shards = f": {axis['shards']}" if axis["shards"] else ""
    return f"{axis['name']}, {axis['text']}{shards}"


def _plane(
    grid: _Grid, left: int, top: int, z: int, columns: int, rows: int, axes: list[Any], *, is_turned: bool
) -> Iterator[str]:
    step, cell, half = grid.step, grid.cell, grid.cell / 2
    right, bottom = left + grid.length(columns), top + grid.length(rows)
    for y in range(rows):
        middle = top + y * step + half
        yield _wires((left + x * step + cell, middle, grid.gap, 0) for x in range(columns - 1))
        if axes[0] and axes[0]["wraps"]:
            yield _loop(f"M{right} {middle}c14 0 14 {half + 3} 0 {half + 3}H{left}c-14 0 -14 {-half - 3} 0 {-half - 3}")
    for x in range(columns):
        middle = left + x * step + half
        yield _wires((middle, top + y * step + cell, 0, grid.gap) for y in range(rows - 1))
        if axes[1] and axes[1]["wraps"]:
            yield _loop(f"M{middle} {bottom}c0 14 {half + 3} 14 {half + 3} 0V{top}c0 -14 {-half - 3} -14 {-half - 3} 0")
    for y in range(rows):
        for x in range(columns):
            head, batch = _parts((x, y, z), axes, is_turned=is_turned)
            parts = math.prod(axis["batch_ways"] for axis in axes if axis)
            number = head if any(axis and axis["head_ways"] > 1 for axis in axes) else None
            yield _chip(grid, left + x * step, top + y * step, number, _strength(batch, parts))


def _parts(place: tuple[int, ...], axes: list[Any], *, is_turned: bool) -> tuple[int, int]:
    """Which part of the heads (or tensor ranks) and which part of the batch a chip has: x counts before y."""
    head = batch = 0
    pairs = list(zip(place, axes, strict=True))
    for at, axis in [pairs[1], pairs[0], pairs[2]] if is_turned else pairs:
        if axis is not None:
            head = head * axis["head_ways"] + at // axis["batch_ways"]
            batch = batch * axis["batch_ways"] + at % axis["batch_ways"]
    return head, batch


def _domain(mesh: Mapping[str, Any]) -> tuple[list[str], int]:
    """Boxes of GPUs behind one switch each."""
    in_one, total = mesh["domain_chips"], mesh["n_chips"]
    nodes = -(-total // in_one)
    drawn = max(1, min(nodes, _MOST_DRAWN // in_one))
    columns = min(in_one, 8)
    rows = -(-in_one // columns)
    a_row = min(drawn, 2)
    grid = _Grid.of(columns * a_row + 1, rows * -(-drawn // a_row))
    box_width, box_height = grid.length(columns) + 2 * grid.gap, grid.length(rows) + 2 * grid.gap
    body = []
    for node in range(drawn):
        left = 1 + (node % a_row) * (box_width + _PLANE_GAP // 2)
        top = _MARGIN + (node // a_row) * (box_height + _PLANE_GAP)
        body.append(
            f'<rect class="mesh-domain" x="{left}" y="{top}" width="{box_width}" height="{box_height}" rx="6"'
            ' stroke="currentColor" stroke-opacity="0.5"/>'
        )
        for chip in range(min(in_one, total - node * in_one)):
            x, y = left + grid.gap + chip % columns * grid.step, top + grid.gap + chip // columns * grid.step
            shards = max(1, mesh["head_shards"])
            rank = node * in_one + chip
            number = rank % shards if shards > 1 else None
            body.append(_chip(grid, x, y, number, _strength(rank // shards, max(1, mesh["batch_shards"]))))
        body.append(_text(left, top - 8, f"node {node + 1}" if nodes > 1 else "one scale-up domain"))
    height = _MARGIN + -(-drawn // a_row) * (box_height + _PLANE_GAP)
    ways = {"head_ways": mesh["head_shards"], "batch_ways": mesh["batch_shards"]}
    words = [f"{drawn} of {nodes} nodes are drawn"] if drawn < nodes else []
    lines, height = _lines([*words, *_key([ways], grid)], height)
    return [*body, *lines], height


def _strength(batch: int, parts: int) -> float:
    """How strongly a part of the batch is coloured: a few in turn, many from light to dark."""
    if parts <= len(_STRENGTHS):
        return _STRENGTHS[batch % len(_STRENGTHS)]
    low, high = min(_STRENGTHS), max(_STRENGTHS)
    return round(low + (high - low) * batch / (parts - 1), 3)


def _chip(grid: _Grid, x: float, y: float, head: int | None, strength: float) -> str:
    """A chip: the number of its part of the heads where they have several, in the tone of its part of the batch."""
    square = (
        f'<rect class="mesh-chip fill-kv" x="{x:g}" y="{y:g}" width="{grid.cell}" height="{grid.cell}" rx="3"'
        f' fill="#D55E00" fill-opacity="{strength}" stroke="#D55E00" stroke-width="1"/>'
    )
    if head is None or grid.step < _NUMBERED_FROM:
        return square
    middle = grid.cell / 2
    return (
        f'{square}<text class="mesh-number" x="{x + middle:g}" y="{y + middle + 4.5:g}" text-anchor="middle"'
        f' fill="currentColor">{head}</text>'
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
