"""`calibrate` as a user meets it: files in, an efficiency file out, and what it does to a plan."""

import csv
import tomllib
from functools import partial

import numpy as np
import pytest

from helpers.synthetic import KNOWN, measured, synthetic
from slicewise.calibrate.advice import advice
from slicewise.calibrate.fit import Fit, fit, measured_s
from slicewise.calibrate.read import Given
from slicewise.calibrate.run import HOLD, calibrate
from slicewise.calibrate.terms import point_of
from slicewise.calibrate.write import start_from
from slicewise.catalog.efficiency import read_efficiency, shipped
from slicewise.errors import InputError
from slicewise.planner.plan import plan
from slicewise.planner.step import step

COLUMNS = ("model", "slice", "weights", "kv", "phase", "batch", "isl", "osl", "seconds", "engine")


def written(path, points):
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for point in points:
            m = point.measurement
            words = (m.model, m.slice, m.weights, m.kv, m.phase, m.batch, m.prompt_tokens, m.output_tokens)
            rows.writerow([*words, m.seconds, "my engine 1"])
    return path


def test_a_synthetic_file_gives_its_efficiencies_back(tmp_path):
    made = written(tmp_path / "made.csv", synthetic())
    found = calibrate(made, out=tmp_path / "mine.toml")
    (own,) = read_efficiency(tmp_path / "mine.toml")
    assert own == found.efficiencies[0]
    assert own.weight_read_efficiency == pytest.approx(1 / KNOWN["weights"], rel=0.02)
    assert own.network_efficiency == pytest.approx(1 / KNOWN["network"], rel=0.05)
    assert own.layer_s == pytest.approx(KNOWN["layers"], rel=0.05)
    assert own.prefill_efficiency[16] == pytest.approx(1 / KNOWN["prefill16"], rel=0.02)
    assert found.fits[0].held_out.median < 0.02 < found.fits[0].shipped_median < found.fits[0].bound_median


def test_the_file_is_taken_anywhere(tmp_path):
    mine = tmp_path / "mine.toml"
    calibrate(written(tmp_path / "made.csv", synthetic()), out=mine)
    point = point_of(measured(batch=16))
    expected_s = float(Fit(groups={"h100": KNOWN}).expected_s([point], ["h100"])[0])
    found = step("llama-3-8b", slice="h100:1", batch=16, isl=1024, osl=256, efficiency=str(mine))
    assert found.step_expected_s == pytest.approx(expected_s, rel=0.02)
    assert found.expected_engine == "my engine 1"
    assert "my engine 1" in " ".join(found.assumptions)
    best = plan("llama-3-8b", chip="h100", efficiency=str(mine)).recommended
    assert best.step.expected_engine == "my engine 1"


def test_a_chip_that_was_not_measured_is_refused(tmp_path):
    mine = tmp_path / "mine.toml"
    calibrate(written(tmp_path / "made.csv", synthetic()), out=mine)
    with pytest.raises(InputError, match=r"is of h100, and a100 is asked about"):
        step("llama-3-8b", slice="a100:1", efficiency=str(mine))


def test_nothing_is_lost_of_a_file_that_is_there(tmp_path):
    made, out = written(tmp_path / "made.csv", synthetic()[:12]), tmp_path / "mine.toml"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="is there already"):
        calibrate(made, out=out)
    assert out.read_text(encoding="utf-8") == "mine"
    calibrate(made, out=out, force=True)
    assert tomllib.loads(out.read_text(encoding="utf-8"))["fit"]


def test_what_is_faster_than_the_bound_is_counted_and_left_out(tmp_path):
    points = synthetic()[:12]
    text = written(tmp_path / "made.csv", points).read_text(encoding="utf-8")
    fast = "llama-3-8b,h100:1,bf16,bf16,decode,8,1024,256,0.001,my engine 1\n"
    (tmp_path / "fast.csv").write_text(text + fast, encoding="utf-8")
    found = calibrate(tmp_path / "fast.csv")
    assert sum(found.left_out.values()) == 1
    assert found.fits[0].n_rows == 12


def test_nothing_usable_is_said_in_one_line(tmp_path):
    file = tmp_path / "serve.json"
    file.write_text(
        '{"model_id": "m", "max_concurrency": 8, "mean_tpot_ms": 9.0, "median_tpot_ms": 9.0, "median_ttft_ms": 50,'
        ' "completed": 10, "duration": 3.0, "num_prompts": 10, "request_rate": "inf", "total_input_tokens": 100,'
        ' "total_output_tokens": 100}',
        encoding="utf-8",
    )
    given = Given(model="llama-3-8b", slice="h100:1", weights="bf16", kv="bf16")
    with pytest.raises(InputError, match="no measurement in it can be used"):
        calibrate(file, given=given)


def test_half_of_another_engine_tells_the_other_half_better_than_the_shipped_figures(shared_points):
    """FasterTransformer on A100: rows that the shipped figures, of another engine, never saw."""
    own = [point for point in shared_points if point.measurement.where.startswith("ft-")]
    order = np.random.default_rng(5).permutation(len(own))
    half, other = ([own[i] for i in order[start::2]] for start in (0, 1))
    start = start_from(shipped("ampere")[0])
    fitted = partial(fit, start=start, shared=(), hold=HOLD)(half, ["a100"] * len(half))

    def off(found):
        return np.median(np.abs(found.expected_s(other, ["a100"] * len(other)) / measured_s(other) - 1))

    assert off(fitted) < 0.6 * off(Fit(groups={"a100": start}))


def test_advice_names_what_is_open():
    points = synthetic()
    alone = [p for p in points if p.model == "llama-3-8b" and p.n_chips == 1 and p.measurement.batch == 1]
    steps = [p for p in alone if p.phase == "decode"]
    words = " ".join(advice(steps))
    for said in ("No prefill was measured", "Batches are all 1", "a second model", "ran on 1 chip"):
        assert said in words
    assert advice(points) == ()
