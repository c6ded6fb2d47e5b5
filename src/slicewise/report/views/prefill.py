"""The document of `prefill`."""

from __future__ import annotations

from slicewise.planner.prefill import Prefill
from slicewise.report.document import Document, Heading, Line, Table
from slicewise.report.views.expected import figures_table, terms_table
from slicewise.report.views.words import BOUNDS, assumed, ms, rate, usd
from slicewise.units import show

_WORDS = {
    "prefill_flops_s": "FLOPs",
    "param_load_s": "load parameters",
    "prefill_ici_s": "network (collectives)",
}


def prefill_document(prefill: Prefill) -> Document:
    """Time, terms and cost of one prompt."""
    where = f"Prefill of {prefill.prompt_tokens:,} tokens, {prefill.model} on {prefill.slice}"
    if not prefill.fits:
        return [Heading(f"{where}: does not fit"), Line(f"{prefill.reason}.")]
    rows = [
        [words, ms(getattr(prefill, name)), "← binds" if name == f"{prefill.bound}_s" else ""]
        for name, words in _WORDS.items()
    ]
    return [
        Heading(f"{where}: {_headline(prefill)}"),
        Line(
            f"{show(prefill.prefill_flops, 'FLOP')}; {rate(prefill.tokens_per_s_per_chip)} tokens/s per chip;"
            f" {usd(prefill.usd_per_million_input_tokens)} per million input tokens."
            f" Bound by {BOUNDS[prefill.bound or '']}."
        ),
        Table("Terms", ["", "time", ""], rows, left=(0, 2)),
        *_expected(prefill),
        assumed(prefill.assumptions),
    ]


def _headline(prefill: Prefill) -> str:
    assumed_s = f"{ms(prefill.prefill_s)} at {prefill.mfu:.0%} of peak FLOPs"
    if prefill.prefill_expected_s is None:
        return f"{assumed_s} (a bound at that share)"
    ends = f"{ms(prefill.prefill_low_s)} to {ms(prefill.prefill_high_s)}"
    bound = f"{ms(prefill.prefill_bound_s)} at least (a bound)"
    told = "" if prefill.view == "expected" else f"; {assumed_s}"
    return f"{ms(prefill.prefill_expected_s)} expected ({ends}), {bound}{told}"


def _expected(prefill: Prefill) -> list[Table]:
    """Three figures of every number, and the terms of the expected time."""
    if prefill.figures is None or prefill.expected_terms is None:
        return []
    whose = f"The expected prefill, of {prefill.expected_engine}"
    return [figures_table(prefill.figures), terms_table(prefill.expected_terms, whose)]
