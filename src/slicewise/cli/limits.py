"""`slicewise limits`."""

from __future__ import annotations

from typing import Any

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.show import show_result
from slicewise.planner.vocabulary import TAKES


@command()
@model
@options(*TAKES["limits"], *SHOWN, unused=("mfu", "view", "efficiency"))
def limits(model: str, *, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any) -> None:
    """Limits of a slice: critical batch, model parallelism, KV layout and the knee."""
    from slicewise.planner.limits import limits as answer
    from slicewise.report.views.limits import limits_document

    result = answer(model, **given(words))
    show_result(result, limits_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
