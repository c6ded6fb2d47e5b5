"""`slicewise verify`."""

from __future__ import annotations

from typing import Any

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.show import one_form, show_result
from slicewise.planner.vocabulary import LENGTHS, PLACE

COUNTED = ("params", "hbm", "memory_fraction", "ici", "book")


@command()
@model
@options(
    *PLACE, *LENGTHS, "verify_prefill", "find_max_batch", "estimate", "clock", "compiler", "hlo", "fresh", *COUNTED
)
@options(*SHOWN)
def verify(model: str, *, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any) -> None:
    """Compile the plan with the TPU's compiler, without a TPU: what fits, what moves, what is computed."""
    from slicewise.report.views.verify import verify_document
    from slicewise.verify.run import planned
    from slicewise.verify.run import verify as answer

    one_form(as_json, as_md, as_csv)
    # A derivation is of the plan's numbers: for that, nothing has to be compiled.
    result = answer(model, **given(words)) if explain is None else planned(model, **given(words))
    show_result(result, verify_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
