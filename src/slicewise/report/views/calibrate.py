"""The document of `calibrate`."""

from __future__ import annotations

from slicewise.calibrate.run import Calibration, Fitted
from slicewise.report.document import Block, Document, Heading, Items, Line, Table
from slicewise.units import US


def calibrate_document(found: Calibration) -> Document:
    """How well each chip's figures hold, the figures themselves, and what to measure next."""
    rows = sum(each.n_rows for each in found.fits)
    chips = ", ".join(chip for each in found.fits for chip in each.efficiency.chips)
    blocks: list[Block] = [Heading(f"{rows:,} measurements of {chips}")]
    if found.out:
        blocks.append(Line(f"Wrote {found.out}: take it anywhere with --efficiency {found.out}."))
    for each in found.fits:
        blocks += _chip(each)
    left = [f"{count:,} × {reason}" for reason, count in found.left_out.items()]
    return [*blocks, Items("Left out", left)]


def _chip(each: Fitted) -> list[Block]:
    fit, held = each.efficiency, each.held_out
    rows = [
        ["these figures, each time told from the other " + each.left, f"{held.median:.1%}"],
        ["the shipped figures", f"{each.shipped_median:.1%}"],
        ["the bound", f"{each.bound_median:.1%}"],
    ]
    shares = [
        ["weights are read at", f"{fit.weight_read_efficiency:.1%}", "of the HBM bandwidth"],
        ["the cache is read at", f"{fit.kv_read_efficiency:.1%}", "of the HBM bandwidth"],
        ["FLOPs of a step add at", f"{fit.matmul_efficiency:.1%}", "of the peak rate"],
        ["collectives run at", f"{fit.network_efficiency:.1%}", "of the rate of their formula"],
        ["a layer costs", f"{fit.layer_s / US:.3g} µs", ""],
        ["and among several chips", f"{fit.sync_s / US:.3g} µs", "more"],
        *[
            [f"prefill in {bits} bits runs at", f"{share:.1%}", "of the peak rate"]
            for bits, share in sorted(fit.prefill_efficiency.items(), reverse=True)
        ],
    ]
    name = ", ".join(fit.chips)
    spread = f"8 of 10 measurements took between {held.low:.2f} and {held.high:.2f} times what was expected."
    return [
        Table(f"{name}: median error over {each.n_rows:,} measurements", ["", "off by"], rows),
        Line(spread),
        Table(f"{name}: the figures", ["", "", ""], shares, left=(0, 2)),
        Items("To measure next", each.advice or ("Nothing is left open.",)),
    ]
