"""`slicewise step`."""

from __future__ import annotations

from typing import Any

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.show import show_result
from slicewise.planner.vocabulary import TAKES


@command()
@model
@options(*TAKES["step"], *SHOWN, unused=("mfu",))
def step(model: str, *, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any) -> None:
    """One decode step of MODEL: memory, terms, what binds, throughput and cost."""
    from slicewise.planner.step import step as answer
    from slicewise.report.views.step import step_document

    result = answer(model, **given(words))
    show_result(result, step_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
