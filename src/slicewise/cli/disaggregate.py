"""`slicewise disaggregate`."""

from __future__ import annotations

from typing import Any

from slicewise.cli.options import COUNTED, LENGTHS, PLACE, SHOWN, command, given, model, options
from slicewise.cli.show import show_result


@command()
@model
@options("slice", "prefill_slice", *PLACE[1:], *LENGTHS, "tpot", "ttft", "rate", "price", "network", *COUNTED, *SHOWN)
def disaggregate(model: str, *, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any) -> None:
    """Prefill and decode on servers of their own: ratio, hand-off, whether to split."""
    from slicewise.planner.disaggregate import disaggregate as answer
    from slicewise.report.views.disaggregate import disaggregate_document

    result = answer(model, **given(words))
    show_result(result, disaggregate_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
