"""`slicewise cost`."""

from __future__ import annotations

from typing import Any

import click

from slicewise.cli.options import SHOWN, given, options
from slicewise.cli.show import show_result


@click.command()
@click.option("--slice", "slice", metavar="SLICE", help="Count every chip of it, at the catalog's price: h100:8.")
@click.option("--price", metavar="USD", help="Price of a chip-hour.  [default: the catalog's]")
@click.option("--usd-per-month", metavar="USD", help="What all chips cost a month, instead of --price.")
@click.option("--tokens-per-s", metavar="RATE", help="Generated tokens a second while busy, of all chips together.")
@click.option(
    "--utilisation",
    "--utilization",
    "utilisation",
    metavar="SHARE",
    help="Share of the time that the chips are busy: 0.4 or 40%.  [default: 1]",
)
@click.option("--api-price", metavar="USD", help="Price of a million tokens elsewhere, to break even with.")
@options(*SHOWN)
def cost(*, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any) -> None:
    """What a rate of tokens costs, and from how many tokens a month owning beats paying for each."""
    from slicewise.planner.cost import cost as answer
    from slicewise.report.views.cost import cost_document

    result = answer(**given(words))
    show_result(result, cost_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv)
