"""`slicewise report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from slicewise.cli.options import command, given, model, options
from slicewise.cli.show import DOES_NOT_FIT
from slicewise.errors import InputError
from slicewise.planner.vocabulary import TAKES

_DEFAULT = "report.html"


@command()
@model
@options(*TAKES["plan"], "prefill_slice")
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), default=Path(_DEFAULT), show_default=True,
    help="The HTML file to write.",
)  # fmt: skip
def report(model: str, *, out: Path, **words: Any) -> None:
    """Write the answer of plan as one HTML file that needs no network: figures, tables, derivations, assumptions."""
    if not write_report(model, given(words), out):
        raise click.exceptions.Exit(DOES_NOT_FIT)


def write_report(model: str, words: dict[str, Any], out: Path) -> bool:
    """Write the page of a question, and say whether there is an answer.

    Raises:
        InputError: a word is off, or the file cannot be written.
    """
    from slicewise.catalog.load import load_model
    from slicewise.report.explorer.found import find
    from slicewise.report.explorer.html import report_of
    from slicewise.report.figures import write_file

    check_place(out)
    found = find(load_model(model), words, called=model)
    write_file(out, report_of(found).encode())
    click.echo(f"wrote {out}", err=True)
    return found.option is not None


def check_place(out: Path) -> None:
    """Refuse a place where no page can be written, before it is computed.

    Raises:
        InputError: it is of another kind, is a folder, or lies in none.
    """
    if out.suffix.lower() != ".html":
        raise InputError(f"cannot write '{out}': end it in .html")
    if out.is_dir():
        raise InputError(f"cannot write '{out}': it is a folder; name a file")
    if not out.parent.is_dir():
        raise InputError(f"cannot write '{out}': there is no folder {out.parent}; choose another path")
