"""The tables of `plan`: the plans beside the one to take, and what one change would give.

Of each, step, prefill, rate and price are told three times, in one cell each: times in one table, the rest in another.
Views of bounds tell first what they choose by: a prefill at a share of the peak is none of the three figures. The
book's conventions have bounds only.
"""

from __future__ import annotations

from collections.abc import Mapping

from slicewise.planner.figures import Figures
from slicewise.planner.option import Option
from slicewise.planner.plan import Plan
from slicewise.report.document import Block, Line, Table
from slicewise.report.views.expected import TOLD, told
from slicewise.report.views.words import BOUND_BY, ms, rate
from slicewise.units import show

_OTHERS = 5

Row = tuple[str, Option]


def plan_tables(plan: Plan, best: Option) -> list[Block]:
    """The plans, and what one change would give."""
    shown, left_out = _rows(plan, best)
    more = [Line(f"… and {left_out} more; --json has them all.")] if left_out else []
    chosen_by: list[Block] = [] if best.step.view == "expected" else [_bounds(plan, shown), *more, _what_ifs(plan)]
    if best.figures is None:
        return chosen_by
    return [*chosen_by, *_told(plan, best, shown), *([] if chosen_by else more)]


def _rows(plan: Plan, best: Option) -> tuple[list[Row], int]:
    """The plans that are named, some others, and how many are left out."""
    named = [
        ("recommended", best),
        ("runner-up", plan.runner_up),
        ("smallest", plan.smallest),
        ("lowest step", plan.fastest),
        ("top per chip", plan.highest_throughput),
    ]
    rows: dict[tuple[str, str, str, int], Row] = {}
    for label, option in [*named, *(("also", option) for option in plan.candidates)]:
        if option is None:
            continue
        place = (option.step.slice, option.step.layout, _dtypes(option), option.step.batch)
        if place not in rows:
            rows[place] = (label, option)
        elif label != "also":
            rows[place] = (f"{rows[place][0]}, {label}", option)
    shown = list(rows.values())[: len(named) + _OTHERS]
    return shown, len(rows) - len(shown)


def _told(plan: Plan, best: Option, shown: list[Row]) -> list[Table]:
    """Times, then rate and price, of the plans and of what one change would give."""
    # Columns say which slice; what is left is brief, as the cells are long.
    changed = [(what_if.change.partition(" (")[0], what_if.option) for what_if in plan.what_ifs]
    rows: list[tuple[str, Option | None]] = [*shown, *changed]
    options = [option for _, option in rows if option]
    places = _places(plan, options)
    price = _price(best)
    times = [[label, *_placed(places, option), *_cells(option, ("step_s", "ttft_s"))] for label, option in rows]
    rates = [
        [
            _short(label, option, with_dtypes="weights/cache" in places),
            *_cells(option, ("tokens_per_s_per_chip", price)),
            BOUND_BY.get(option.step.bound or "", "") if option else "beyond the limits",
        ]
        for label, option in rows
    ]
    left = tuple(range(len(places)))
    header = ["", "tok/s per chip", "$/M out" if best.request_usd is None else "a request", "bound by"]
    return [
        Table(f"{_title(best)}: {TOLD}", ["", *places, "step", "prefill"], times, left=left, marked=0),
        Table(f"Their tokens/s and prices: {TOLD}", header, rates, left=(0, len(header) - 1), marked=0),
    ]


def _title(best: Option) -> str:
    if best.step.view != "expected":
        return "The same plans and changes"
    return "Plans, chosen by expected times, and what one change would give"


def _price(best: Option) -> str:
    """The price that a plan is chosen by."""
    return "usd_per_million_output_tokens" if best.request_usd is None else "request_usd"


def _places(plan: Plan, options: list[Option]) -> list[str]:
    """Columns that say what a plan is."""
    layout = ["layout"] if any(option.step.layout for option in options) else []
    dtypes = ["weights/cache"] if len(plan.question.precisions) > 1 else []
    return ["slice", *layout, *dtypes, "batch"]


def _placed(places: list[str], option: Option | None) -> list[str]:
    if option is None:
        return ["-"] * len(places)
    words = {
        "slice": option.step.slice,
        "layout": option.step.layout or "even cut",
        "weights/cache": _dtypes(option),
        "batch": f"{option.step.batch:,}",
    }
    return [words[name] for name in places]


def _cells(option: Option | None, names: tuple[str, ...]) -> list[str]:
    found: Mapping[str, Figures] = {**(option.step.figures or {}), **(option.figures or {})} if option else {}
    return [told(name, found[name]) if name in found else "-" for name in names]


def _short(label: str, option: Option | None, *, with_dtypes: bool) -> str:
    """What a plan is called in the second table, which has no columns of what it is."""
    if label != "also" or option is None:
        return label
    step = option.step
    named = [step.slice, step.layout, _dtypes(option) if with_dtypes else "", f"batch {step.batch:,}"]
    return ", ".join(filter(None, named))


def _bounds(plan: Plan, shown: list[Row]) -> Table:
    priced = not plan.question.workload.context_is_set
    places = _places(plan, [option for _, option in shown])
    cells = [[label, *_placed(places, option), *_single(option, is_request_priced=priced)] for label, option in shown]
    header = ["", *places, *_header(is_request_priced=priced)]
    left = (*range(len(places)), len(header) - 1)
    return Table(f"Plans ({_kind(shown[0][1])})", header, cells, left=left, marked=0)


def _single(option: Option, *, is_request_priced: bool) -> list[str]:
    step = option.step
    price = step.usd_per_million_output_tokens
    cells = [
        ms(step.step_s),
        rate(step.tokens_per_s),
        rate(step.tokens_per_s_per_chip),
        ms(option.ttft_s),
        "-" if price is None else show(price, "USD"),
    ]
    if is_request_priced:
        cells.append("-" if option.request_usd is None else show(option.request_usd, "USD"))
    return [*cells, BOUND_BY.get(step.bound or "", "")]


def _header(*, is_request_priced: bool) -> list[str]:
    return [
        "step",
        "tok/s",
        "per chip",
        "prefill",
        "$/M out",
        *(["a request"] if is_request_priced else []),
        "bound by",
    ]


def _what_ifs(plan: Plan) -> Table:
    priced = not plan.question.workload.context_is_set
    header = ["", "batch", *_header(is_request_priced=priced)]
    rows = [
        [what_if.change, f"{what_if.option.step.batch:,}", *_single(what_if.option, is_request_priced=priced)]
        if what_if.option
        else [what_if.change, *["-"] * (len(header) - 2), "beyond the limits"]
        for what_if in plan.what_ifs
    ]
    return Table("What if, each with the best batch then", header, rows, left=(0, len(header) - 1))


def _kind(best: Option) -> str:
    """What the times of a table of bounds are."""
    steps = "nothing overlapped in steps" if best.step.view == "serial" else "steps are bounds"
    return f"{steps}, prefill at {best.step.deployment.mfu:.0%} of peak"


def _dtypes(option: Option) -> str:
    return f"{option.step.weight_dtype}/{option.step.kv_dtype}"
