"""Files of a run: the outcome's own numbers, AIPerf's shape, pictures, and a timeline."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.plans import simulated
from helpers.traffic import made_requests
from slicewise.calibrate.aiperf import is_export
from slicewise.calibrate.aiperf import read as read_aiperf
from slicewise.calibrate.row import Row
from slicewise.errors import InputError
from slicewise.report.runs import check_out, check_timeline, run_specs, write_run, write_timeline
from slicewise.traffic.simulation import Simulation

# One request is too long for any server.
TRACE = made_requests([(0.0, 1000, 60), (0.2, 10**8, 5), (0.4, 2000, 1), (3.0, 500, 90)])
WORDS = {"trace": TRACE, "rate": None, "isl": None, "osl": None, "requests": None, "ttft": "p95:1s"}
FOUND = simulated(**WORDS)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_csv_has_a_row_for_each_request(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    assert write_run(path, FOUND) == [path]
    rows, outcome = rows_of(path), FOUND.outcome
    assert outcome is not None
    assert len(rows) == len(TRACE)
    assert [float(row["arrival_s"]) for row in rows] == TRACE.arrival_s.tolist()
    for name in ("start_s", "first_token_s", "finish_s"):
        told = [float(row[name]) if row[name] else np.nan for row in rows]
        np.testing.assert_array_equal(told, getattr(outcome, name), err_msg=name)
    ttfts = [float(row["ttft_s"]) for row in rows if row["ttft_s"]]
    assert np.mean(ttfts) == pytest.approx(FOUND.metrics.ttft_s.mean)
    assert rows[1]["server"] == rows[1]["finish_s"] == ""
    assert rows[2]["tpot_s"] == ""


def test_json_is_what_calibrate_takes_for_aiperf(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_run(path, FOUND)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert is_export(data)
    assert data["time_to_first_token"]["p99"] == pytest.approx(1000 * FOUND.metrics.ttft_s.p99)
    assert data["time_to_first_token"]["unit"] == "ms"
    # It is read without complaint, and not taken for a measurement: how many came at a time is not said.
    sifted = read_aiperf(Row(where="run.json", values=data))
    assert sifted.stated == ()
    assert len(sifted.left_out) == 1


@pytest.mark.parametrize(
    ("suffix", "magic"),
    [pytest.param(".html", b"<!doctype html>", marks=pytest.mark.slow), (".svg", b"<svg"), (".png", b"\x89PNG")],
)
def test_pictures_are_drawn(tmp_path: Path, suffix: str, magic: bytes) -> None:
    pytest.importorskip("vl_convert")
    written = write_run(tmp_path / f"run{suffix}", FOUND)
    assert len(written) == (1 if suffix == ".html" else 3)
    assert all(path.read_bytes().startswith(magic) for path in written)


def test_an_svg_holds_its_names(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    texts = [path.read_text(encoding="utf-8") for path in write_run(tmp_path / "run.svg", FOUND)]
    for name in ("TTFT", "TPOT", "end to end", "TTFT p95 within 1 s"):
        assert any(f">{name}<" in text for text in texts), name
    for name in ("waiting", "in work", "arriving", "finishing"):
        assert any(f">{name}<" in text for text in texts), name


def test_latencies_of_the_warm_up_are_not_drawn() -> None:
    found = simulated(warm_up="20s")

    def drawn(run: Simulation) -> float:
        line = next(each for each in run_specs(run)["latency"]["layer"] if each["mark"]["type"] == "line")
        return max(row["time_s"] for row in line["data"]["values"] if row["name"] == "TTFT")

    assert drawn(found) == pytest.approx(found.metrics.ttft_s.most)
    assert drawn(simulated()) == pytest.approx(simulated().metrics.ttft_s.most)
    assert found.metrics.ttft_s.most != simulated().metrics.ttft_s.most


def test_a_timeline_is_in_the_trace_event_format(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    assert write_timeline(path, FOUND) == path
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "b", "e"}
    whole = {(event["id"], event["ph"]): event["ts"] for event in events if event["name"] == "request"}
    assert {number for number, _ in whole} == {0, 2, 3}
    for number in (0, 2, 3):
        assert whole[number, "b"] == pytest.approx(TRACE.arrival_s[number] * 1e6)
        assert whole[number, "e"] == pytest.approx(FOUND.outcome.finish_s[number] * 1e6)


@pytest.mark.parametrize("words", [{}, {"requests": 1}, {"osl": 1}, {"prefill_servers": 1, "decode_servers": 1}])
def test_each_run_has_specs_that_compile(words: dict[str, Any]) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    for spec in run_specs(simulated(**words)).values():
        json.dumps(spec, allow_nan=False)
        vl_convert.vegalite_to_vega(spec)


def test_a_stopped_run_is_written_as_far_as_it_is_known(tmp_path: Path) -> None:
    def stop(done: int, of: int) -> None:
        if 2 * done > of:
            raise KeyboardInterrupt

    found = simulated(progress=stop)
    assert not found.is_whole
    write_run(tmp_path / "run.csv", found)
    assert len(rows_of(tmp_path / "run.csv")) == len(found.outcome) < 60
    write_timeline(tmp_path / "run.json", found)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x.pdf", "end it in .html, .svg, .png, .csv or .json"),
        ("none/x.csv", "cannot write to the folder"),
        ("", "it is a folder"),
    ],
)
def test_places_that_cannot_be_written_are_refused(tmp_path: Path, name: str, said: str) -> None:
    for write in (
        check_out,
        check_timeline,
        lambda path: write_run(path, FOUND),
        lambda path: write_timeline(path, FOUND),
    ):
        with pytest.raises(InputError) as error:
            write(tmp_path / name)
        assert said in str(error.value) or "end it in .json or .trace" in str(error.value)


def test_a_timeline_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"end it in \.json or \.trace"):
        check_timeline(tmp_path / "x.csv")


def test_without_vl_convert_pictures_are_refused_at_once_and_tables_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for suffix in (".html", ".svg", ".PNG"):
        with pytest.raises(InputError, match="drawing needs vl-convert"):
            check_out(tmp_path / f"x{suffix}")
    assert (check_out(tmp_path / "x.csv"), check_out(tmp_path / "x.JSON")) == (".csv", ".json")
