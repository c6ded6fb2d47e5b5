"""`slicewise prefill`."""

from __future__ import annotations

from typing import Any

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.show import show_result
from slicewise.planner.vocabulary import TAKES


@command()
@model
@options(*TAKES["prefill"], *SHOWN)
def prefill(model: str, *, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any) -> None:
    """Prefill of one prompt: its time and what binds."""
    from slicewise.planner.prefill import prefill as answer
    from slicewise.report.views.prefill import prefill_document

    result = answer(model, **given(words))
    show_result(result, prefill_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
