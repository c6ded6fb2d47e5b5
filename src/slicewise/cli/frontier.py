"""`slicewise frontier`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.show import show_result
from slicewise.planner.vocabulary import TAKES

if TYPE_CHECKING:
    from slicewise.planner.frontier import Frontier

_WORDS = ("contexts" if word == "context" else word for word in TAKES["frontier"])


@command()
@model
@options(*_WORDS, "out", *SHOWN, unused=("mfu",))
def frontier(
    model: str, *, out: Path | None, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any
) -> None:
    """Latency against throughput per chip over the batch, and the step broken down; --out draws both."""
    from slicewise.planner.frontier import frontier as answer
    from slicewise.report.views.frontier import frontier_document

    result = answer(model, **given(words))
    if out is not None and result.fits and explain is None:
        for path in _draw(result, out, words["tpot"]):
            click.echo(f"wrote {path}", err=True)
    tpot = words["tpot"]
    show_result(
        result,
        lambda found: frontier_document(found, tpot),
        explain=explain,
        as_json=as_json,
        as_md=as_md,
        as_csv=as_csv,
    )


def _draw(result: Frontier, out: Path, tpot: str | None) -> list[Path]:
    from slicewise.report.figures import write_figures
    from slicewise.report.views.frontier import frontier_specs

    return write_figures(out, result.table(), frontier_specs(result, tpot))
