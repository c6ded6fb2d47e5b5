"""CSV holds the JSON's numbers under the JSON's names."""

import csv
import io

import pytest

import slicewise
from slicewise.report.csv_rows import to_csv, to_rows


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_candidates_of_a_plan_are_the_rows() -> None:
    found = slicewise.plan("llama-3-70b").to_dict()
    rows = read(to_csv(found))
    assert [row["slice"] for row in rows] == [option["slice"] for option in found["candidates"]]
    assert [float(row["step_s"]) for row in rows] == [option["step_s"] for option in found["candidates"]]


def test_columns_of_a_frontier_lie_side_by_side() -> None:
    found = slicewise.frontier("llama-3-70b", slice="v5e:4x4", context=[8192, 16384]).to_dict()
    rows = read(to_csv(found))
    assert [int(row["batch"]) for row in rows] == found["batch"]
    assert [float(row["step_s"]) for row in rows] == found["step_s"]


def test_an_object_is_one_row_and_unknown_values_are_empty() -> None:
    found = slicewise.step("llama-3-70b", slice="v5e:2x2").to_dict()
    (row,) = read(to_csv(found))
    assert row["step_s"] == ""
    assert float(row["weight_bytes"]) == found["weight_bytes"]
    assert row["assumptions"].startswith("Times are bounds")


def test_a_single_list_is_a_value() -> None:
    assert to_rows({"sizes": [1, 2], "assumptions": ["so"], "batch": 4}) == [
        {"sizes": [1, 2], "assumptions": ["so"], "batch": 4}
    ]


@pytest.mark.parametrize("data", [[{"a": 1}, {"b": 2.5}], [{"a": 1, "b": None}]])
def test_lists_are_rows_with_every_key(data: list[dict]) -> None:
    assert to_rows(data) == data
    assert to_csv(data).splitlines()[0] == "a,b"
