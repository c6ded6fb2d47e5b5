"""Held-out errors as Markdown tables: by chip, chips, phase and batch, beside the roofline's on the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from _engines import OtherEngines

from slicewise.calibrate.fit import bounds_s, measured_s
from slicewise.calibrate.held_out import Floats, Told
from slicewise.calibrate.terms import Point
from slicewise.spec.efficiency import LARGE, Efficiency
from slicewise.units import US

_HEAD = "rows | median error | 90th percentile | bias"
_BOUND = "the bound's median error"


def figures(fits: Iterable[Efficiency]) -> str:
    """The fitted figures of every family."""
    head = [
        "chips",
        "e_w",
        "e_kv",
        "e_f",
        "e_n",
        "t_layer",
        "t_sync",
        "p",
        "e_p, 16 bits",
        "e_p, 8 bits",
        "p_p",
        "rows",
    ]
    lines = [f"| {' | '.join(head)} |", f"| :-- |{' --: |' * (len(head) - 1)}"]
    for fit in fits:
        shares = (fit.weight_read_efficiency, fit.kv_read_efficiency, fit.matmul_efficiency, fit.network_efficiency)
        prefill = [f"{share:.0%}" if share else "" for share in (fit.prefill_efficiency.get(b) for b in (16, 8))]
        cells = [
            ", ".join(fit.chips),
            *(f"{share:.0%}" for share in shares),
            *(f"{seconds / US:.3g} µs" for seconds in (fit.layer_s, fit.sync_s)),
            f"{fit.token_passes:g}",
            *prefill,
            f"{fit.prefill_token_passes:g}",
            str(fit.n_rows),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def by_model(found: Told) -> str:
    """Leave one model out, on each chip, number of chips and phase; then by batch; then all."""
    points = found.points
    each_way = (
        [f"{p.phase} | {p.chip} | {p.n_chips}" for p in points],
        [f"{p.phase} | {p.chip} | {_batch(p)}" for p in points],
        [f"{p.phase} | {p.chip} | all" for p in points],
        [f"{p.phase} | all | all" for p in points],
        ["both | all | all"] * len(points),
    )
    lines = [
        f"| phase | chip | chips or batch | {_HEAD} | in the range | {_BOUND} |",
        "| :-- | :-- | :-- | --: | --: | --: | --: | --: | --: |",
    ]
    for labels in each_way:
        for label, own in _groups(labels):
            covered = f"{np.mean(found.is_covered[own]):.0%}"
            lines.append(_line(label, points, found.expected_s, own, covered))
    return "\n".join(lines)


def by_source(found: OtherEngines) -> str:
    """Leave one source out: an engine that the fit never saw, on each number of chips; then by batch; then all."""
    points = found.points
    lead = [f"{p.chip} | {engine} | {p.phase}" for p, engine in zip(points, found.engines, strict=True)]
    each_way = (
        [f"{start} | {p.n_chips}" for start, p in zip(lead, points, strict=True)],
        [f"{start} | {_batch(p)}" for start, p in zip(lead, points, strict=True)],
        [f"{start} | all" for start in lead],
        [f"all | {engine} | all | all" for engine in found.engines],
        [f"{p.chip} | all | all | all" for p in points],
        ["all | all | all | all"] * len(points),
    )
    covered = "in the narrow range | in the engines' range"
    lines = [
        f"| chip | engine left out | phase | chips or batch | {_HEAD} | {covered} | {_BOUND} |",
        "| :-- | :-- | :-- | :-- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for labels in each_way:
        for label, own in _groups(labels):
            told = [i for i in own if np.isfinite(found.expected_s[i])]
            shares = [f"{np.mean(each[told]):.0%}" for each in (found.in_narrow, found.in_wide)] if told else [" "] * 2
            lines.append(_line(label, points, found.expected_s, own, " | ".join(shares)))
    narrow, wide = found.held(found.in_narrow), found.held(found.in_wide)
    lines.append(
        f"\nEach of the {len(found.told)} engines counted alike, the narrow range held {narrow:.0%} of their rows, and"
        f" the engines' range {wide:.0%}: {found.held(found.in_wide, 'decode'):.0%} of steps, and"
        f" {found.held(found.in_wide, 'prefill'):.0%} of prefills."
    )
    return "\n".join(lines)


def transfer(points: Sequence[Point], expected_s: Floats, families: Sequence[str]) -> str:
    """Leave one family of chips out: what an uncalibrated chip gets."""
    labels = [f"{p.chip} | {family} | {p.phase}" for p, family in zip(points, families, strict=True)]
    head = f"| chip | family left out | phase | {_HEAD} | {_BOUND} |"
    return _table(head, points, expected_s, labels, [])


def left_out_rows(left: Counter[str]) -> str:
    """Rows that were not used, by reason."""
    return "Rows of the same sources that were left out:\n\n" + "\n".join(
        f"- {count} × {reason}" for reason, count in left.most_common()
    )


def _table(head: str, points: Sequence[Point], expected_s: Floats, labels: Sequence[str], whole: Sequence[str]) -> str:
    lines = [head, "| :-- | :-- | :-- | --: | --: | --: | --: | --: |"]
    for names in (labels, whole):
        lines += [_line(label, points, expected_s, own) for label, own in _groups(names)]
    return "\n".join(lines)


def _groups(labels: Sequence[str]) -> list[tuple[str, list[int]]]:
    order = sorted(range(len(labels)), key=lambda i: _by_size(labels[i]))
    return [(label, list(rows)) for label, rows in groupby(order, key=lambda i: labels[i])]


def _by_size(label: str) -> list[tuple[int, str]]:
    """What orders a label: its words, whole numbers among them by their size."""
    return [(int(word), "") if word.isdigit() else (-1, word) for word in label.split()]


def _line(label: str, points: Sequence[Point], expected_s: Floats, own: Sequence[int], covered: str = "") -> str:
    rows = [points[i] for i in own]
    truth, off = measured_s(rows), expected_s[list(own)] / measured_s(rows) - 1
    bound = f"{np.median(np.abs(bounds_s(rows) / truth - 1)):.1%}"
    is_told = np.isfinite(off)
    if not is_told.any():
        numbers = f"{len(rows)} | nothing to fit | | "
    else:
        size = np.abs(off[is_told])
        count = f"{len(size)}" if is_told.all() else f"{len(size)} of {len(rows)}"
        numbers = f"{count} | {np.median(size):.1%} | {np.quantile(size, 0.9):.1%} | {np.nanmedian(off):+.1%}"
    return f"| {' | '.join(filter(None, (label, numbers, covered, bound)))} |"


def _batch(point: Point) -> str:
    return "batch 64 and more" if point.measurement.batch >= LARGE else "batch 1 to 32"
