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


def test_figures_are_columns_named_by_their_path() -> None:
    for found in (
        slicewise.step("llama-3-70b", slice="h100:8").to_dict(),
        slicewise.disaggregate("llama-3-70b", slice="h100:8").to_dict(),
        slicewise.plan("llama-3-70b", slice="h100:8").to_dict(),
    ):
        (object_, *_), (row, *_) = found.get("candidates", [found]), read(to_csv(found))
        told = {
            f"figures.{name}.{end}": value for name, each in object_["figures"].items() for end, value in each.items()
        }
        assert len(told) >= 16
        assert {name: float(row[name]) for name in told} == told


def test_figures_of_a_frontier_lie_beside_its_columns() -> None:
    found = slicewise.frontier("llama-3-70b", slice="h100:8", context=[8192, 16384])
    rows = read(to_csv(found.to_dict()))
    for name, each in found.figures.items():
        for end, column in each.items():
            assert [float(row[f"figures.{name}.{end}"]) for row in rows] == column
    assert set(rows[0]) == set(found.table())


def test_plans_that_are_compared_are_columns() -> None:
    found = slicewise.compare(["v5e:4x4", "v5e:2x2"], model="llama-3-70b")
    first, second = read(to_csv(found.to_dict()))
    best = found.rows[0].plan.recommended
    assert float(first["recommended.step_s"]) == best.step.step_s
    assert float(first["recommended.figures.request_usd.high"]) == best.figures["request_usd"].high
    assert second["recommended.step_s"] == second["recommended"] == ""


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


def test_metrics_and_shares_are_columns_named_by_their_path() -> None:
    row = {
        "model": "m", "requests": {"n": 3}, "metrics": {"ttft_s": {"p99": 0.5, "mean": None}, "finished": 3},
        "shares": {"busy": 0.25}, "steady": None, "verdict": {"is_kept": True},
    }  # fmt: skip
    assert to_csv([row]) == (
        "model,steady,metrics.ttft_s.p99,metrics.ttft_s.mean,metrics.finished,shares.busy\nm,,0.5,,3,0.25\n"
    )


def test_lists_of_objects_are_left_out_as_objects_are() -> None:
    assert to_csv([{"a": 1, "checks": [{"at": "p99"}], "reasons": ["x", "y"], "none": []}]) == (
        "a,reasons,none\n1,x; y,\n"
    )


def test_runs_are_rows_and_their_headers_are_one() -> None:
    found = slicewise.simulate("llama-3-70b", slice="v5e:4x4", rate=1, requests=5, isl=100, osl=10, no_range=True)
    (row,) = read(to_csv(found.to_dict()))
    assert float(row["metrics.ttft_s.p99"]) == found.metrics.ttft_s.p99
    assert float(row["shares.busy"]) == found.shares.busy
    assert float(row["steady.load"]) == found.steady.load
    assert not {"requests", "metrics", "metrics.ttft_s"} & row.keys()


def test_fleets_of_a_size_are_the_rows() -> None:
    words = {"slice": "v5e:4x4", "rate": 1, "requests": 5, "isl": 100, "osl": 10}
    found = slicewise.size("llama-3-70b", **words, ttft="1s")
    rows = read(to_csv(found.to_dict()))
    assert [row["shape"] for row in rows] == [each.shape for each in found.sizing.tried]
    assert [float(row["metrics.ttft_s.p99"]) for row in rows] == [e.metrics.ttft_s.p99 for e in found.sizing.tried]
    assert all("{" not in value for row in rows for value in row.values())


def test_an_answer_without_rows_is_a_row_with_its_reason() -> None:
    words = {"slice": "v5e:4x4", "rate": 1, "requests": 5, "isl": 100, "osl": 10}
    found = slicewise.size("llama-3-70b", **words, ttft="1us")
    assert found.sizing.tried == ()
    (row,) = read(to_csv(found.to_dict()))
    assert (row["fits"], row["reason"]) == ("False", found.reason)
