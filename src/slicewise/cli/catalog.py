"""`slicewise catalog`."""

from __future__ import annotations

import click

from slicewise.cli.options import options
from slicewise.cli.show import show_data
from slicewise.errors import UnknownNameError


@click.command()
@click.argument("what", metavar="models|chips|slices|prices")
@options("json", "md", "csv")
def catalog(what: str, *, as_json: bool, as_md: bool, as_csv: bool) -> None:
    """What is known, with sources: models, chips, slices or prices."""
    from slicewise.report.views.catalog import ROWS, catalog_document

    if what not in ROWS:
        raise UnknownNameError("list", what, ROWS, "(slicewise catalog models|chips|slices|prices)")
    show_data(ROWS[what](), lambda: catalog_document(what), as_json=as_json, as_md=as_md, as_csv=as_csv)
