"""Tables that tell every number three times: what their cells hold, and what a table of bounds keeps."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

import slicewise
from slicewise.planner.figures import Figures
from slicewise.report.document import Document, Items, Table
from slicewise.report.views.compare import compare_document
from slicewise.report.views.expected import told
from slicewise.report.views.frontier import frontier_document
from slicewise.report.views.plan import plan_document
from slicewise.report.views.words import ms
from slicewise.units import brief_alike

CELL = re.compile(r"\$?[\d,.]+( [mµn]?s)? \([\d,.]+; [\d,.]+–[\d,.]+\)")


def tables(document: Document) -> list[Table]:
    return [block for block in document if isinstance(block, Table)]


def column(table: Table, name: str) -> list[str]:
    return [row[list(table.header).index(name)] for row in table.rows]


def cell(name: str, each: Figures) -> str:
    unit = "USD" if "usd" in name else "s" if name in ("step_s", "ttft_s") else ""
    expected, bound, low, high = brief_alike([each.expected, each.bound, each.low, each.high], unit)
    return f"{expected} ({bound}; {low}–{high})"


def test_a_cell_has_one_unit() -> None:
    each = Figures(bound=0.00429, expected=0.01422, low=0.0127, high=0.0161)
    assert told("step_s", each) == "14.2 ms (4.29; 12.7–16.1)"
    rate = Figures(bound=2024.0, expected=1962.0, low=98.5, high=1999.0)
    assert told("tokens_per_s_per_chip", rate) == "1,962 (2,024; 98.5–1,999)"
    price = Figures(bound=0.00389, expected=0.0073, low=0.00503, high=0.01126)
    assert told("request_usd", price) == "$0.00730 (0.00389; 0.00503–0.0113)"


@pytest.mark.parametrize("view", ["overlapped", "expected", "serial"])
def test_each_row_of_a_frontier_is_told_three_times(view: str) -> None:
    found = slicewise.frontier("llama-3-70b", slice="h100:8", view=view)
    first, terms = tables(frontier_document(found))
    for name, words in (
        ("step_s", "step"),
        ("tokens_per_s_per_chip", "tok/s per chip"),
        ("usd_per_million_output_tokens", "$/M out"),
    ):
        ends = found.figures[name]
        rows = [found.columns["batch"].index(int(batch)) for batch in column(first, "batch")]
        assert column(first, words) == [
            cell(name, Figures(**{end: values[row] for end, values in ends.items()})) for row in rows
        ]
    assert ("nothing overlapped" in first.header) == (view == "serial")
    assert list(terms.header) == ["context", "batch", "parameters", "KV cache", "FLOPs", "network"]


def test_a_frontier_without_a_price_has_none() -> None:
    (first, _) = tables(frontier_document(slicewise.frontier("llama-3-8b", slice="v6e:2x2")))
    assert list(first.header) == ["context", "batch", "step", "tok/s per chip"]


def test_the_books_frontier_is_one_table_of_bounds() -> None:
    (only,) = tables(frontier_document(slicewise.frontier("llama-3-70b", slice="v5e:4x4", book=True)))
    assert only.title == "Bounds"
    assert not any("–" in cell for row in only.rows for cell in row)


@pytest.mark.parametrize(("view", "by"), [("expected", "as expected"), ("overlapped", "at the bound")])
def test_a_limit_says_by_which_figure_it_is_kept(view: str, by: str) -> None:
    found = slicewise.frontier("llama-3-70b", slice="h100:8", view=view)
    assert f"within TPOT 20 ms, {by}: {found.within(0.02)[8448.0]:,} at" in frontier_document(found, "20ms")[1].text


def test_compared_plans_have_a_line_for_each_figure() -> None:
    found = slicewise.compare(["v5e:4x4", "h100:8"], model="llama-3-70b")
    table = tables(compare_document(found))[-1]
    assert [row[3] for row in table.rows] == ["expected", "bound", "low", "high"] * 2
    for first, row in zip((0, 4), found.rows, strict=True):
        ends = {**row.plan.recommended.step.figures, **row.plan.recommended.figures}
        for place, end in enumerate(("expected", "bound", "low", "high")):
            assert table.rows[first + place][4] == ms(getattr(ends["step_s"], end))
    (whose,) = (block for block in compare_document(found) if isinstance(block, Items))
    assert "v5e:4x4: " in whose.items[0]
    assert "24 measured steps" in whose.items[0]
    assert re.match(r"h100:8: .*103 measured steps of 2 models and 69 prefills", whose.items[1])


def test_plans_chosen_by_a_bound_tell_what_they_were_chosen_by() -> None:
    found = slicewise.compare(["h100:8", "v5e:2x2"], model="llama-3-70b", view="overlapped")
    table = tables(compare_document(found))[-1]
    assert [row[3] for row in table.rows] == ["overlapped", "expected", "bound", "low", "high", "-"]
    assert {len(row) for row in table.rows} == {len(table.header)}
    assert "prefill at 40% of peak" in table.title


def test_compared_plans_of_the_book_have_one_line_each() -> None:
    table = tables(compare_document(slicewise.compare(["v5e:4x4", "v5e:2x2"], model="llama-3-70b", book=True)))[-1]
    assert table.title == "The model on each (times are bounds)"
    assert [len(row) for row in table.rows] == [len(table.header)] * 2 == [9, 9]


def plan_tables(**words: str | Sequence[str]) -> list[Table]:
    return [table for table in tables(plan_document(slicewise.plan("llama-3-70b", **words))) if len(table.header) > 3]


def test_every_plan_and_change_is_told_three_times() -> None:
    figures, times, rates = plan_tables(slice=["v5e:4x4", "v5e:4x8"])
    assert "$ per million input tokens" in column(figures, "")
    assert len(times.rows) == len(rates.rows) > 8
    for table, names in ((times, ("step", "prefill")), (rates, ("tok/s per chip", "a request"))):
        for name in names:
            assert all(CELL.fullmatch(words) for words in column(table, name)), name
    found = slicewise.plan("llama-3-70b", slice=["v5e:4x4", "v5e:4x8"])
    option = found.what_ifs[0].option
    row = column(times, "").index("int8 weights")
    assert found.what_ifs[0].change == "int8 weights"
    assert column(times, "step")[row] == cell("step_s", option.step.figures["step_s"])
    assert column(rates, "a request")[row] == cell("request_usd", option.figures["request_usd"])


def test_with_a_context_the_price_is_of_tokens() -> None:
    *_, rates = plan_tables(slice="v5e:4x4", context="8192")
    assert list(rates.header) == ["", "tok/s per chip", "$/M out", "bound by"]


def test_a_change_beyond_the_limits_has_no_figures() -> None:
    found = slicewise.plan("llama-3-70b", slice="v5e:4x4")
    first, *others = found.what_ifs
    refused = replace(found, what_ifs=(replace(first, option=None, reason="too slow"), *others))
    *_, times, rates = (table for table in tables(plan_document(refused)) if len(table.header) > 3)
    assert [row for row in times.rows if row[0] == first.change] == [[first.change, "-", "-", "-", "-"]]
    assert [row for row in rates.rows if row[0] == first.change] == [[first.change, "-", "-", "beyond the limits"]]


def test_views_of_bounds_keep_what_they_choose_by() -> None:
    _, plans, changes, times, rates = plan_tables(slice="v5e:4x4", view="overlapped")
    assert plans.title == "Plans (steps are bounds, prefill at 40% of peak)"
    assert len(times.rows) == len(rates.rows) == len(plans.rows) + len(changes.rows)


def test_the_books_plan_has_no_figures() -> None:
    plans, changes = plan_tables(slice="v5e:4x4", book=True)
    assert not any("–" in words for table in (plans, changes) for row in table.rows for words in row)


def test_what_would_meet_a_limit_is_told_three_times() -> None:
    found = slicewise.plan("llama-3-70b", slice="v5e:4x4", tpot="11ms")
    assert not found.fits
    (offers,) = (block for block in plan_document(found) if isinstance(block, Items) and block.title.startswith("What"))
    assert offers.title == "What would, expected (bound; low–high)"
    assert any(CELL.search(item) for item in offers.items)
