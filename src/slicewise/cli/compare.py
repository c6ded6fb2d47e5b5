"""`slicewise compare`."""

from __future__ import annotations

from typing import Any

import click

from slicewise.cli.options import SHOWN, given, options
from slicewise.cli.sections import Sectioned
from slicewise.cli.show import show_result
from slicewise.planner.vocabulary import TAKES


@click.command(cls=Sectioned)
@click.argument("names", metavar="CHIP_OR_SLICE...", nargs=-1)
@click.option("--model", metavar="MODEL", help="Also plan this model on each.")
@options(*TAKES["compare"], *SHOWN)
def compare(
    names: tuple[str, ...],
    *,
    model: str | None,
    explain: str | None,
    as_json: bool,
    as_md: bool,
    as_csv: bool,
    **words: Any,
) -> None:
    """Chips or slices side by side: what a dollar buys, and with --model a plan on each."""
    from slicewise.planner.compare import compare as answer
    from slicewise.report.views.compare import compare_document

    result = answer(names, model=model, **given(words))
    show_result(result, compare_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
