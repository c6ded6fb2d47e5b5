"""`calibrate` as a user meets it: files in, an efficiency file out, and what it does to a plan."""

import csv
import tomllib
from functools import partial
from importlib import import_module

import numpy as np
import pytest

from helpers.rows import file_of, row, tpu_rows
from helpers.synthetic import KNOWN, measured, synthetic
from slicewise.calibrate.advice import advice
from slicewise.calibrate.fit import Fit, fit, measured_s
from slicewise.calibrate.own import HOLD, fitted
from slicewise.calibrate.read import Given
from slicewise.calibrate.run import calibrate
from slicewise.calibrate.terms import UnusableError, point_of
from slicewise.calibrate.write import FIGURES, start_from
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
    told = start_from(own)
    near = {term for term, figure in FIGURES.items() if figure in own.as_shipped}
    # No 8-bit prefill is in the rows, and a prompt token's passes hide behind its FLOPs: both say so.
    assert near == {"prefill8", "prefill_tokens"}
    for term in KNOWN.keys() - near:
        assert told[term] == pytest.approx(KNOWN[term], rel=0.1 if term == "tokens" else 0.05), term
    assert found.fits[0].held_out_median < 0.02 < found.fits[0].shipped_median < found.fits[0].bound_median
    assert found.fits[0].is_better


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


def test_half_of_a_tpus_rows_tells_the_other_half_better_than_the_shipped_table(published, published_path):
    """jax-llm-examples on v5e-16: the compiler's table leans low, and half of the rows tell by how much."""
    fixed = [row for row in published.rows(published_path) if row["note"].startswith("ctrl:fixed_batch")]
    script = import_module("compiled_times")
    dense = [row for row in fixed if row["model"] in script.DENSE and row["chip"] == "tpu-v5e"]
    rows = [each for each in dense if each["metric"] == "tok_s_per_seq"]
    own = []
    for each in rows:
        words = script.words_of(each)
        layout = {name: words.pop(name) for name in ("tp", "dp") if name in words}
        seconds, context, batch = 1 / float(each["value"]), float(each["input_len"]), int(each["batch"])
        given = {"model": "llama-3-70b", "batch": batch, "context_tokens": context, "seconds": seconds}
        own.append(point_of(measured(**words, **given, layout=layout, prompt_tokens=0, output_tokens=0)))
    assert len(own) == 24
    half, other = own[::2], own[1::2]
    scale = fitted("v5e", half).efficiency
    assert scale.step_ratio > 1
    truth, shipped_s = measured_s(other), np.array([sum(point.compiled_s) for point in other])

    def off(expected_s):
        return np.median(np.abs(expected_s / truth - 1))

    assert off(shipped_s * scale.step_ratio) < off(shipped_s)


def test_a_tpus_file_is_a_scale_and_is_taken(tmp_path):
    words = {"slice": "v5e:4x4", "isl": 8192, "osl": 512, "batch": 32, "weights": "int8", "kv": "int8"}
    plain = step("llama-3-8b", **words)
    made = [row(**{**words, "batch": b}, ms=1500 * step("llama-3-8b", **{**words, "batch": b}).step_expected_s)
            for b in (1, 4, 8, 16, 32, 64)]  # fmt: skip
    found = calibrate(file_of(tmp_path / "m.csv", made), out=tmp_path / "mine.toml")
    assert found.fits[0].held_out_median == pytest.approx(0, abs=1e-6)
    (own,) = read_efficiency(tmp_path / "mine.toml")
    assert own == found.efficiencies[0]
    assert own.step_ratio == pytest.approx(1.5)
    told = step("llama-3-8b", **words, efficiency=str(tmp_path / "mine.toml"))
    assert told.step_expected_s == pytest.approx(1.5 * plain.step_expected_s)
    assert sum(told.expected_terms.values()) == pytest.approx(told.step_expected_s)
    assert "6 measurements of your own" in " ".join(told.assumptions)


def test_one_model_has_no_narrower_range_than_the_shipped_one(tmp_path):
    rows = [row(batch=b, isl=isl) for b in (1, 2, 4, 8, 16) for isl in (128, 1024, 4096)]
    rows = [{**each, "ms": 1000 * step("llama-3-8b", slice="h100:1", batch=each["batch"], isl=each["isl"], osl=256)
             .step_expected_s} for each in rows]  # fmt: skip
    own = calibrate(file_of(tmp_path / "m.csv", rows)).efficiencies[0].errors["decode 1"]
    shipped_one = shipped("hopper")[0].errors["decode 1"]
    assert own.low <= shipped_one.low
    assert own.high >= shipped_one.high


def test_rows_of_one_configuration_are_left_out_together(tmp_path):
    # Three configurations measured twenty times each tell no more of another one than measured once.
    rows = [row(batch=b, ms=ms) for b, ms in ((1, 8.1), (8, 8.6), (32, 10.9)) for _ in range(20)]
    found = calibrate(file_of(tmp_path / "m.csv", rows)).fits[0]
    assert found.n_rows == 60
    assert found.held_out_median is None
    assert found.is_better is None


def test_a_slip_of_the_unit_is_left_out_and_counted(tmp_path):
    with pytest.raises(InputError, match=r"more than 20 times what is expected: .* \(m\.csv:line 2\)"):
        calibrate(file_of(tmp_path / "m.csv", [row(ms=8500)]))
    found = calibrate(file_of(tmp_path / "n.csv", [row(), *[row(batch=b, ms=8500) for b in range(1, 41)]]))
    assert found.fits[0].n_rows == 1
    ((reason, count),) = found.left_out.items()
    assert count == 40
    assert "line 3, " in reason
    assert "and 37 more" in reason


@pytest.mark.parametrize("phases", [("decode", "prefill", "end_to_end"), ("decode", "end_to_end"),
                                    ("prefill", "end_to_end"), ("decode", "prefill")])  # fmt: skip
def test_a_scale_is_told_from_each_phase_alone_or_from_what_is_left_of_the_whole(tmp_path, phases):
    rows = [each for each in tpu_rows(1.1, 1.6) if each["phase"] in phases]
    found = calibrate(file_of(tmp_path / "m.csv", rows)).fits[0]
    assert (found.efficiency.step_ratio, found.efficiency.prefill_ratio) == pytest.approx((1.1, 1.6), rel=0.01)
    assert all(measured_one == pytest.approx(expected) for _, measured_one, expected in found.farthest)


def test_what_is_told_is_the_written_figures(tmp_path):
    # Decode at 1.05 times the table, and end-to-end runs at twice: no one pair of ratios tells both.
    rows = [each for each in tpu_rows(1.05, 1.05) if each["phase"] == "decode"]
    rows += [each for each in tpu_rows(2.0, 2.0) if each["phase"] == "end_to_end"]
    found = calibrate(file_of(tmp_path / "m.csv", rows)).fits[0]
    assert found.efficiency.step_ratio == pytest.approx(1.05, rel=0.01)
    for place, _, expected in found.farthest:
        at = int(place.split("line ")[1].split(":")[0]) - 2
        given = rows[at]
        point = point_of(measured(slice="v5e:2x4", prompt_tokens=2048, output_tokens=65, batch=given["batch"],
                                  phase=given["phase"], seconds=9.0))  # fmt: skip
        ratios = found.efficiency.step_ratio, found.efficiency.prefill_ratio
        assert expected == pytest.approx(sum(r * s for r, s in zip(ratios, point.compiled_s, strict=True)), rel=0.01)


def test_the_shipped_figures_are_compared_on_the_same_rows(tmp_path):
    # Of the prefills, all of one model, nothing tells the left-out model's: they are compared nowhere.
    steps = [each for each in tpu_rows(1.1, 3.0) if each["phase"] == "decode"]
    prefills = [each for each in tpu_rows(1.1, 3.0) if each["phase"] == "prefill"]
    other = [{**each, "model": "llama-3.2-1b", "ms": 1100 * sum(point_of(measured(
        model="llama-3.2-1b", slice="v5e:2x4", prompt_tokens=2048, output_tokens=65, batch=each["batch"],
    )).compiled_s)} for each in steps]  # fmt: skip
    both = calibrate(file_of(tmp_path / "m.csv", [*steps, *other, *prefills])).fits[0]
    alone = calibrate(file_of(tmp_path / "n.csv", [*steps, *other])).fits[0]
    assert (both.shipped_median, both.held_out_median) == pytest.approx((alone.shipped_median, alone.held_out_median))


def test_a_range_holds_its_own_rows(tmp_path):
    found = calibrate(file_of(tmp_path / "m.csv", [row(ms=16), row(ms=6)])).fits[0]
    error = found.efficiency.errors["decode 1"]
    for _, measured_one, expected in found.farthest:
        assert error.low <= measured_one / expected <= error.high
    assert any("times more than 1.5 times apart" in words for words in found.advice)


def test_what_was_not_measured_has_the_wide_range(tmp_path):
    moe = row(model="deepseek-v3", slice="h200:8", weights="fp8", kv="bf16", batch=1, isl=1024, osl=256, ms=18)
    mine = tmp_path / "mine.toml"
    calibrate(file_of(tmp_path / "m.csv", [moe]), out=mine)
    words = {"isl": 1024, "osl": 256, "efficiency": str(mine)}
    wide = shipped("gpus")[0].errors["decode 2+"]
    same = step("deepseek-v3", slice="h200:8", weights="fp8", batch=1, **words)
    assert same.step_high_s < wide.high * same.step_expected_s
    assert "not all plain" not in " ".join(same.assumptions)
    for model, slice_ in (("llama-3-70b", "h200:8"), ("llama-3-8b", "h200:1")):
        other = step(model, slice=slice_, batch=1, **words)
        assert other.step_high_s == pytest.approx(wide.high * other.step_expected_s)
        assert "of another model than the one that was measured" in " ".join(other.assumptions)


def test_a_scale_is_widened_where_the_plan_is_unlike_what_was_measured(tmp_path):
    mine = tmp_path / "mine.toml"
    calibrate(file_of(tmp_path / "m.csv", [each for each in tpu_rows(1.1, 1.1) if each["phase"] == "decode"]), out=mine)
    like = step("llama-3-8b", slice="v5e:2x4", batch=8, efficiency=str(mine))
    for model, slice_, said in (("llama-3-8b", "v5e:4x4", "more chips"), ("llama-3-70b", "v5e:2x4", "another model")):
        other = step(model, slice=slice_, batch=8, efficiency=str(mine), weights="int8")
        assert other.step_high_s / other.step_expected_s > 2 > like.step_high_s / like.step_expected_s
        assert said in " ".join(other.assumptions)


@pytest.mark.parametrize("words", [{"tp": 8, "dp": 2}, {"tp": 8, "pp": 2}])
def test_prompts_side_by_side_on_a_tpu_are_left_out(words):
    with pytest.raises(UnusableError, match="data parallelism"):
        point_of(measured(slice="v5e:4x4", phase="prefill", layout=words))


def test_an_end_to_end_row_counts_once(tmp_path):
    rows = [row(phase="end_to_end", batch=b, ms=2100 + 30 * b) for b in (1, 2, 4)]
    found = calibrate(file_of(tmp_path / "m.csv", rows), out=tmp_path / "mine.toml")
    assert found.efficiencies[0].n_rows == 3
    told = step("llama-3-8b", slice="h100:1", batch=1, efficiency=str(tmp_path / "mine.toml"))
    assert "fitted to 3 measurements of your own (m.csv)" in " ".join(told.assumptions)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"model": "llama-3-9b"}, r"m\.csv:line 2: .*llama-3-9b"),
        ({"slice": "h100:3000000000"}, r"m\.csv:line 2"),
        ({"isl": 0, "osl": 0}, r"m\.csv:line 2: .*above 0"),
    ],
)
def test_a_row_that_is_off_names_its_line(tmp_path, words, said):
    with pytest.raises(InputError, match=said):
        calibrate(file_of(tmp_path / "m.csv", [row(**words)]))


def test_a_file_twice_is_a_mistake(tmp_path):
    made = file_of(tmp_path / "m.csv", [row()])
    with pytest.raises(InputError, match="given twice"):
        calibrate(made, made)


def test_figures_that_are_no_better_say_so(tmp_path):
    # The times have nothing to do with what ran.
    rows = [row(batch=b, ms=ms) for b, ms in zip((1, 2, 4, 8, 16, 32), (30, 9, 25, 10, 40, 15), strict=True)]
    found = calibrate(file_of(tmp_path / "m.csv", rows)).fits[0]
    exact = [row(batch=b, ms=1000 * step("llama-3-8b", slice="h100:1", batch=b, isl=1024, osl=256).step_expected_s)
             for b in (1, 2, 4, 8, 16, 32)]  # fmt: skip
    assert found.held_out_median > 0.1
    assert calibrate(file_of(tmp_path / "e.csv", exact)).fits[0].is_better is False
    assert found.farthest[0][0].startswith("m.csv:line")


def test_an_efficiency_file_is_no_measurement(tmp_path):
    (tmp_path / "mine.toml").write_text("[[fit]]", encoding="utf-8")
    with pytest.raises(InputError, match="take it with --efficiency"):
        calibrate(tmp_path / "mine.toml")


def test_the_json_is_flat_enough_for_a_table(tmp_path):
    (found,) = calibrate(written(tmp_path / "made.csv", synthetic())).to_dict()["fits"]
    assert {"chip", "engine", "weight_read_efficiency", "prefill_efficiency_16", "ranges", "is_better"} <= set(found)


def test_advice_names_what_is_open():
    points = synthetic()
    alone = [p for p in points if p.model == "llama-3-8b" and p.n_chips == 1 and p.measurement.batch == 1]
    steps = [p for p in alone if p.phase == "decode"]
    words = " ".join(advice(steps))
    for said in ("No prefill was measured", "Batches are all 1", "a second model", "ran on 1 chip"):
        assert said in words
    assert advice(points) == ()
