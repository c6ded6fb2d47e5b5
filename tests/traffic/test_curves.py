"""Load curves: each point is `simulate` at its rate and seed, wherever it runs."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from helpers.plans import LOAD, MODEL, PLACE, simulated
from helpers.traffic import made_requests
from slicewise.errors import InputError, UnknownNameError
from slicewise.traffic import curves
from slicewise.traffic.curves import LoadCurve, is_curve, load_curve

RATES, SEEDS = ["1", "8", "30"], ["0", "5"]


def curve(**words: Any) -> LoadCurve:
    return load_curve(MODEL, **{**PLACE, **LOAD, "rate": RATES, "seed": SEEDS, **words})


FOUND = curve()


def test_a_point_is_simulate_at_its_rate_and_seed() -> None:
    assert len(FOUND.points) == 6
    asked = [(rate, seed) for rate in RATES for seed in SEEDS]
    for (rate, seed), point in zip(asked, FOUND.points, strict=True):
        alone = simulated(rate=rate, seed=seed)
        assert point.run.metrics == alone.metrics
        assert point.run.to_dict() == alone.to_dict()
        assert (point.seed, point.rate) == (int(seed), alone.requests.requests_per_s)


def test_rows_of_the_json_are_the_runs() -> None:
    data = FOUND.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert set(data) == {"fits", "is_whole", "rows"}
    assert [row["seed"] for row in data["rows"]] == [0, 5, 0, 5, 0, 5]
    assert data["rows"][2]["metrics"] == simulated(rate=8, seed=0).to_dict()["metrics"]


@pytest.mark.slow
def test_two_processes_give_what_one_does() -> None:
    pytest.importorskip("joblib")
    assert curve(jobs="2").to_dict() == FOUND.to_dict()


def test_a_trace_is_read_once_and_stretched_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.csv"
    rows = "".join(f"{0.3 * at},{500 + at},{20 + at}\n" for at in range(30))
    path.write_text(f"arrival_s,prompt_tokens,output_tokens\n{rows}", encoding="utf-8")
    read = []
    monkeypatch.setattr(
        curves, "read_trace", lambda given, read_trace=curves.read_trace: (read.append(given), read_trace(given))[1]
    )
    words = dict.fromkeys(("isl", "osl", "requests"))
    found = curve(trace=path, seed=None, **words)
    assert read == [path]
    for rate, point in zip(RATES, found.points, strict=True):
        assert point.rate == pytest.approx(float(rate))
        assert point.run.metrics == simulated(trace=path, rate=rate, **words).metrics


def test_seeds_alone_draw_from_a_trace_at_its_own_rate() -> None:
    trace = made_requests([(float(at), 500, 20 + at) for at in range(10)])
    words = dict.fromkeys(("isl", "osl"))
    found = curve(trace=trace, rate=None, seed=[1, 2], requests=40, **words)
    assert [point.seed for point in found.points] == [1, 2]
    assert found.points[0].run.metrics != found.points[1].run.metrics


def test_a_curve_fits_where_every_run_does() -> None:
    assert curve(ttft="p50:100s").fits
    missed = curve(ttft="p50:200ms", seed=None)
    assert not missed.fits
    assert [point.run.fits for point in missed.points] == [True, False, False]


def test_what_does_not_fit_is_said_at_each_point() -> None:
    found = curve(slice="v5e:1x1", seed=None)
    assert not found.fits
    assert all("weights do not fit" in point.run.reason for point in found.points)
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        ({"rate": ["1", "2"]}, True), ({"seed": ["1", "2"]}, True), ({"rate": ["1"], "seed": ["2"]}, False),
        ({"rate": "12"}, False), ({}, False),
    ],
)  # fmt: skip
def test_several_rates_or_seeds_are_a_curve(words: dict[str, Any], is_one: bool) -> None:
    assert is_curve(words) == is_one


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"rate": ["1", "1"]}, "--rate: none is given, or one twice"),
        ({"rate": ["1", "1.0"]}, "--rate: none is given, or one twice"),
        ({"seed": ["1", "01"]}, "--seed: none is given, or one twice"),
        ({"seed": []}, "--seed: none is given, or one twice"),
        ({"rate": ["1", "0"]}, "--rate: 0 must be greater than 0"),
        ({"seed": ["1", "x"]}, "--seed: 'x'"),
        ({"jobs": "0"}, "--jobs: 0"),
        ({"backend": "fun"}, "--backend 'fun'"),
        ({"policy": "fun"}, "--policy 'fun'"),
        ({"trace": "none.csv"}, "none.csv: cannot be read"),
        ({"trace": made_requests([(0.0, 1, 1)])}, "--isl: the trace has lengths"),
    ],
)
def test_words_that_are_off_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        curve(**words)
    assert said in str(error.value)


@pytest.mark.slow
def test_an_error_of_another_process_is_the_same_line() -> None:
    pytest.importorskip("joblib")
    with pytest.raises(UnknownNameError, match="unknown model 'no-such-model'"):
        load_curve("no-such-model", rate=RATES, jobs=2)


def test_a_curve_explains_nothing() -> None:
    with pytest.raises(InputError, match="a load curve has many runs; ask with one --rate and one --seed"):
        FOUND.explain("ttft_s")


def test_a_stopped_curve_tells_the_runs_that_are_done() -> None:
    def stop(done: int, of: int) -> None:
        assert of == 6
        if done == 2:
            signal.raise_signal(signal.SIGINT)

    found = curve(progress=stop)
    assert not found.is_whole
    assert found.to_dict()["rows"] == FOUND.to_dict()["rows"][:2]


def test_seeds_of_a_plain_trace_are_refused_as_nothing_is_random() -> None:
    trace = made_requests([(0.0, 100, 6), (0.1, 200, 3), (7.0, 500, 9)])
    words = {**dict.fromkeys(("requests", "isl", "osl")), "rate": ["1", "2"], "trace": trace}
    with pytest.raises(InputError, match="nothing is random in a plain trace; add --requests, or give one seed"):
        curve(**words)
    assert len(curve(**words, seed=["3"]).points) == 2
    assert len(curve(**{**words, "requests": "5"}, seed=["0", "1"]).points) == 4


def test_a_stopped_curve_does_not_claim_that_limits_are_kept() -> None:
    def stop(done: int, of: int) -> None:
        del of
        if done == 2:
            signal.raise_signal(signal.SIGINT)

    stopped = curve(ttft="100s", progress=stop)
    assert all(point.run.fits for point in stopped.points)
    assert (len(stopped.points), stopped.is_whole, stopped.fits) == (2, False, False)
    assert curve(ttft="100s").fits
