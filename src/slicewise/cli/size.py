"""`slicewise size`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slicewise.cli.options import SHOWN, command, given, model, options
from slicewise.cli.traffic_options import LIMITS, LOAD, RULES, SWEPT, TRAFFIC
from slicewise.planner.vocabulary import COUNTED, PLACE

if TYPE_CHECKING:
    from slicewise.traffic.sizing import Tried


@command()
@model
@options(*PLACE, *LOAD, "load_rate", "seed", *LIMITS, "price", "network", "servers", more=TRAFFIC)
@options("prefill_slice", "policies", *RULES, *COUNTED, *SWEPT, *SHOWN, more=TRAFFIC)
def size(model: str, *, explain: str | None, as_json: bool, as_md: bool, as_csv: bool, **words: Any) -> None:
    """The cheapest fleet that meets latency limits under a load, and whether to split prefill from decode.

    At least one of --ttft, --tpot, --itl and --e2e has to be given, such as --ttft p95:2s.
    """
    from slicewise.cli.progress import bar
    from slicewise.cli.show import one_form, show_result
    from slicewise.report.views.size import size_document
    from slicewise.traffic.cheapest import size as answer

    one_form(as_json, as_md, as_csv)
    with bar("fleets tried") as told:
        n_tried = 0

        def count(row: Tried) -> None:
            nonlocal n_tried
            del row
            n_tried += 1
            told(n_tried, 0)

        result = answer(model, progress=count, **given(words))
    is_whole = result.sizing is None or result.sizing.is_whole
    show_result(result, size_document, explain=explain, as_json=as_json, as_md=as_md, as_csv=as_csv, is_whole=is_whole)
