"""`slicewise plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.show import show_result
from slicewise.planner.vocabulary import TAKES


@command()
@model
@options(*TAKES["plan"], "page", *SHOWN)
def plan(
    model: str, *, out: Path | None, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any
) -> None:
    """Choose slice, dtypes and batch for MODEL and a workload: the main job."""
    from slicewise.planner.plan import plan as answer
    from slicewise.report.views.plan import plan_document

    if out is not None:
        from slicewise.cli.report import check_place, write_report

        check_place(out)
    result = answer(model, **given(words))
    if out is not None:
        write_report(model, given(words), out)
    show_result(result, plan_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
