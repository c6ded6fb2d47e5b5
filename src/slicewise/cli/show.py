"""Shows a result in the form that was asked for, and turns a refusal into its exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Protocol

import click

from slicewise.cli.options import HEADLINE
from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.report.document import Document

DOES_NOT_FIT, STOPPED = 1, 130


class Result(Protocol):
    """What the commands' results have in common."""

    @property
    def fits(self) -> bool:
        """Whether there is an answer."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number."""


def show_result(
    result: Result,
    document: Callable[[Any], Document],
    *,
    explain: str | None = None,
    as_json: bool = False,
    as_md: bool = False,
    as_csv: bool = False,
    is_whole: bool = True,
) -> None:
    """Print a result as text, JSON, Markdown, CSV or as a derivation; exit 1 where it does not fit, 130 if stopped.

    Raises:
        InputError: several forms were asked for at once.
    """
    one_form(as_json, as_md, as_csv)
    if explain is not None:
        show_derivation(result.explain("" if explain == HEADLINE else explain), as_json=as_json)
    else:
        show_data(result.to_dict(), lambda: document(result), as_json=as_json, as_md=as_md, as_csv=as_csv)
    if not is_whole:
        click.echo("slicewise: stopped", err=True)
        raise click.exceptions.Exit(STOPPED)
    if not result.fits:
        raise click.exceptions.Exit(DOES_NOT_FIT)


def show_data(
    data: Any, document: Callable[[], Document], *, as_json: bool = False, as_md: bool = False, as_csv: bool = False
) -> None:
    """Print JSON data as JSON or CSV, or the document made of it as text or Markdown.

    Raises:
        InputError: several forms were asked for at once.
    """
    one_form(as_json, as_md, as_csv)
    if as_json:
        show_json(data)
    elif as_csv:
        from slicewise.report.csv_rows import to_csv

        sys.stdout.write(to_csv(data))
    elif as_md:
        from slicewise.report.markdown import to_markdown

        sys.stdout.write(to_markdown(document()))
    else:
        from slicewise.report.text import print_document

        print_document(document())


def one_form(*asked: bool) -> None:
    """Refuse several forms at once: for those who want to know before the work is done.

    Raises:
        InputError: more than one was asked for.
    """
    if sum(asked) > 1:
        raise InputError("--json, --md and --csv exclude each other; give one of them")


def show_json(data: Any) -> None:
    """Print JSON."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def show_derivation(derivation: Derivation, *, as_json: bool) -> None:
    """Print a derivation as text or JSON."""
    from slicewise.report.explain import explain_lines

    if as_json:
        show_json(derivation.to_dict())
    else:
        sys.stdout.write("\n".join(explain_lines(derivation)) + "\n")
