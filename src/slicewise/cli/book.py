"""`slicewise book`."""

from __future__ import annotations

import click

from slicewise.cli.options import options
from slicewise.cli.show import show_data, show_derivation
from slicewise.errors import InputError


@click.command()
@click.option("--question", help="One question, such as 0.7.  [default: all]")
@click.option(
    "--explain", metavar="QUANTITY", help="With --question: the derivation of our number for one of its quantities."
)
@options("json", "md", "csv")
def book(question: str | None, *, explain: str | None, as_json: bool, as_md: bool, as_csv: bool) -> None:
    """Chapter 8 as a conformance suite: what the book prints, what a reader found, what we compute, why they differ."""
    from slicewise.book import explain as book_explain
    from slicewise.book.run import run
    from slicewise.report.views.book import book_document

    if explain is not None:
        if question is None:
            raise InputError("--explain takes a quantity of one question; give --question too, such as 0.7")
        show_derivation(book_explain.explain(question, explain), as_json=as_json)
        return
    answers = [answer.to_dict() for answer in run(question)]
    show_data(answers, lambda: book_document(answers), as_json=as_json, as_md=as_md, as_csv=as_csv)
