"""`slicewise disaggregate`."""

from __future__ import annotations

from typing import Any

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.show import show_result
from slicewise.planner.vocabulary import TAKES


@command()
@model
@options(*TAKES["disaggregate"], *SHOWN)
def disaggregate(model: str, *, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any) -> None:
    """Prefill and decode on servers of their own: ratio, hand-off, whether to split."""
    from slicewise.planner.disaggregate import disaggregate as answer
    from slicewise.report.views.disaggregate import disaggregate_document

    result = answer(model, **given(words))
    show_result(result, disaggregate_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
