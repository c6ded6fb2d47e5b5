"""The document of `calibrate`."""

from __future__ import annotations

from slicewise.calibrate.own import Fitted
from slicewise.calibrate.run import Calibration
from slicewise.report.document import Block, Document, Heading, Items, Line, Table
from slicewise.report.views.words import ms
from slicewise.spec.efficiency import Efficiency, Error, Scale
from slicewise.units import US

_GROUPS = {
    "decode 1": "steps on one chip, batch below 64",
    "decode 1 large": "steps on one chip, batch 64 and more",
    "decode 2+": "steps on several chips, batch below 64",
    "decode 2+ large": "steps on several chips, batch 64 and more",
    "prefill 1": "prefill on one chip",
    "prefill 2+": "prefill on several chips",
}
_ROWS, _NEAR, _NOTHING = "the rows", "hardly any: as shipped, or near it", "none: as the compiler has it"
_HEAD = ["", "figure", "", "told by"]
_PASSES = "passes of its activations through HBM"


def calibrate_document(found: Calibration) -> Document:
    """How well each chip's figures hold, the figures themselves, and what to measure next."""
    rows = sum(each.n_rows for each in found.fits)
    chips = ", ".join(chip for each in found.fits for chip in each.efficiency.chips)
    blocks: list[Block] = [Heading(f"{_counted(rows, 'measurement')} of {chips}")]
    if found.out:
        blocks.append(Line(f"Wrote {found.out}: take it anywhere with --efficiency {found.out}."))
    for each in found.fits:
        blocks += _chip(each)
    left = [f"{count:,} × {reason}" for reason, count in found.left_out.items()]
    return [*blocks, Items("Left out", left)]


def _chip(each: Fitted) -> list[Block]:
    name = ", ".join(each.efficiency.chips)
    held = "-" if each.held_out_median is None else f"{each.held_out_median:.1%}"
    rows = [
        [f"these figures, each time told from the other {each.left}", held],
        ["the shipped figures", f"{each.shipped_median:.1%}"],
        ["the bound", f"{each.bound_median:.1%}"],
    ]
    farthest = [
        [where, ms(measured_s), ms(expected_s), f"{measured_s / expected_s - 1:+.0%}"]
        for where, measured_s, expected_s in each.farthest
    ]
    title = f"{name}: median error over {_counted(each.n_rows, 'measurement')}"
    return [
        Table(title, ["", "off by"], rows),
        Line(_verdict(each)),
        _figures(name, each.efficiency),
        _ranges(name, each),
        Table(f"{name}: farthest off", ["", "measured", "expected", "off by"], farthest),
        Items("To measure next", each.advice or ("Nothing is left open.",)),
    ]


def _verdict(each: Fitted) -> str:
    """Whether the figures are worth taking."""
    if each.is_better is None:
        return "Too few to leave any out: how well the figures tell what they did not see is not known."
    if each.is_better:
        return "On what they did not see the figures are better than the shipped ones."
    return "They are no better than the shipped figures: leave the file out, or measure more."


def _figures(name: str, fit: Efficiency | Scale) -> Table:
    if isinstance(fit, Scale):
        of_table = "times what the compiler's table has"
        ratios = [["a step takes", f"{fit.step_ratio:.3g}"], ["prefill takes", f"{fit.prefill_ratio:.3g}"]]
        counts = [sum(fit.errors[key].n_rows for key in _GROUPS if key.startswith(p)) for p in ("decode", "prefill")]
        scaled = [[*cells, of_table, _ROWS if count else _NOTHING] for cells, count in zip(ratios, counts, strict=True)]
        return Table(f"{name}: the figures", _HEAD, scaled, left=(0, 2, 3))
    rows = [
        ["weight_read_efficiency", "weights are read at", *_share(fit.weight_read_efficiency, "of the HBM bandwidth")],
        ["kv_read_efficiency", "the cache is read at", *_share(fit.kv_read_efficiency, "of the HBM bandwidth")],
        ["matmul_efficiency", "FLOPs of a step add at", *_share(fit.matmul_efficiency, "of the peak rate")],
        ["network_efficiency", "collectives run at", *_share(fit.network_efficiency, "of the rate of their formula")],
        ["layer_s", "a layer costs", f"{fit.layer_s / US:.3g} µs", ""],
        ["sync_s", "and among several chips", f"{fit.sync_s / US:.3g} µs", "more"],
        ["token_passes", "a sequence costs a layer", f"{fit.token_passes:.3g}", _PASSES],
        *[
            [f"prefill_efficiency_{bits}", f"prefill in {bits} bits runs at", *_share(share, "of the peak rate")]
            for bits, share in sorted(fit.prefill_efficiency.items(), reverse=True)
        ],
        ["prefill_token_passes", "a prompt token costs a layer", f"{fit.prefill_token_passes:.3g}", _PASSES],
    ]
    told = [[*cells, _NEAR if figure in fit.as_shipped else _ROWS] for figure, *cells in rows]
    return Table(f"{name}: the figures", _HEAD, told, left=(0, 2, 3))


def _share(share: float, of: str) -> tuple[str, str]:
    """A share; one that reached its end may be the work of another term."""
    return f"{share:.1%}", f"{of}, the most that can be" if share == 1 else of


def _ranges(name: str, each: Fitted) -> Table:
    """The ranges of what was measured; those of all else are the shipped ones."""
    rows = [_range(words, each.efficiency.errors[group]) for group, words in _GROUPS.items()]
    measured = [cells for cells in rows if cells[1] != "0"]
    title = f"{name}: 8 of 10 measurements lie between these multiples of what is expected"
    return Table(title, ["", "measured", "low", "high"], measured)


def _range(words: str, error: Error) -> list[str]:
    return [words, f"{error.n_rows:,}", f"{error.low:.2f}", f"{error.high:.2f}"]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
