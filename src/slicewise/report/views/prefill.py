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
    at = f"at {prefill.mfu:.0%} of peak" if prefill.mfu < 1 else "at peak"
    binds = f"bound by {BOUNDS[prefill.bound or '']} {at}"
    return [
        Heading(f"{where}: {_headline(prefill)}"),
        Line(
            f"{show(prefill.prefill_flops, 'FLOP')}, {binds}."
            f" {_AS.get(prefill.view, at.capitalize())}: {rate(prefill.tokens_per_s_per_chip)} tokens/s per chip,"
            f" {usd(prefill.usd_per_million_input_tokens)} per million input tokens."
        ),
        *_side_by_side(prefill),
        Table("Terms", ["", "time", ""], rows, left=(0, 2)),
        *_expected(prefill),
        assumed(prefill.assumptions),
    ]


_AS = {"expected": "As expected"}


def _headline(prefill: Prefill) -> str:
    assumed_s = f"{ms(prefill.ttft_s)} at {prefill.mfu:.0%} of peak FLOPs"
    if prefill.figures is None:
        return f"{assumed_s} (a bound at that share)"
    each = prefill.figures["ttft_s"]
    told = "" if prefill.view == "expected" else f"; {assumed_s}"
    return (
        f"{ms(each.expected)} expected ({ms(each.low)} to {ms(each.high)}), {ms(each.bound)} at least (a bound){told}"
    )


def _side_by_side(prefill: Prefill) -> list[Line]:
    """Of groups that serve prompts side by side, what of the slice's time each takes."""
    if prefill.prompts_in_flight == 1:
        return []
    return [
        Line(
            f"The slice works on {prefill.prompts_in_flight} prompts at once: each takes {ms(prefill.prefill_s)} of its"
            " time, as which the terms are told."
        )
    ]


def _expected(prefill: Prefill) -> list[Table]:
    """Three figures of every number, and the terms of the expected time."""
    if prefill.figures is None or prefill.expected_terms is None:
        return []
    whose = f"The expected prefill, of {prefill.expected_engine}"
    # With one prompt at a time the slice's time is the time to the first token.
    found = {
        name: each for name, each in prefill.figures.items() if name != "prefill_s" or prefill.prompts_in_flight > 1
    }
    return [figures_table(found), terms_table(prefill.expected_terms, whose)]
