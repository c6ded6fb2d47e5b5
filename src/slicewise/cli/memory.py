"""`slicewise memory`."""

from __future__ import annotations

from typing import Any

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.show import show_result
from slicewise.planner.vocabulary import TAKES


@command()
@model
@options(*TAKES["memory"], *SHOWN, unused=("mfu", "view", "efficiency", "ici"))
def memory(model: str, *, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any) -> None:
    """What MODEL needs and where it fits: parameters, KV bytes, largest batch and context."""
    from slicewise.planner.memory import memory as answer
    from slicewise.report.views.memory import memory_document

    result = answer(model, **given(words))
    show_result(result, memory_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
