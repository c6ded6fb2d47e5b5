"""One chip's own measurements: ranges of few rows, figures that they hardly tell, and another engine than theirs."""

import pytest

from helpers.rows import file_of, row, tpu_rows
from slicewise.calibrate.run import calibrate
from slicewise.catalog.efficiency import read_efficiency, shipped, tpu_errors
from slicewise.planner.question import ask
from slicewise.planner.step import step
from slicewise.report.views.calibrate import calibrate_document

ROUNDED = 1.005
"""The ratio has three digits."""


@pytest.mark.parametrize("n_rows", [1, 5])
@pytest.mark.parametrize("ms", [9, 5.2])
def test_few_rows_of_a_tpu_have_no_narrower_range_than_the_shipped_one_on_either_side(tmp_path, n_rows, ms):
    words = {"slice": "v5e:2x2", "isl": 1000, "osl": 10}
    rows = [row(**words, batch=4 + more, ms=ms + 0.01 * more) for more in range(n_rows)]
    own = calibrate(file_of(tmp_path / "m.csv", rows)).efficiencies[0]
    assert own.step_ratio == pytest.approx(ms / 5.06, rel=0.02)
    kept, found = tpu_errors("v5e").error, own.errors["decode 2+"]
    # Around what is expected with the rows' ratio, and to where the shipped range ends.
    assert found.low <= min(kept.low, kept.low / own.step_ratio) * ROUNDED
    assert found.high * ROUNDED >= max(kept.high, kept.high / own.step_ratio) > 1


def test_figures_that_no_row_tells_are_marked(tmp_path):
    rows = [row(batch=b, isl=isl, ms=8 + b / 10 + isl / 2000) for b in (1, 8, 32) for isl in (128, 1024, 4096)]
    found = calibrate(file_of(tmp_path / "m.csv", rows), out=tmp_path / "mine.toml")
    (own,) = read_efficiency(tmp_path / "mine.toml")
    unseen = {"network_efficiency", "sync_s", "prefill_efficiency_16", "prefill_efficiency_8", "prefill_token_passes"}
    assert unseen <= set(own.as_shipped)
    assert "weight_read_efficiency" not in own.as_shipped
    table = next(block for block in calibrate_document(found) if getattr(block, "title", "").endswith("the figures"))
    told_by = {cells[0]: cells[-1] for cells in table.rows}
    assert told_by["weights are read at"] == "the rows"
    assert told_by["collectives run at"] == told_by["prefill in 8 bits runs at"] == "hardly any: as shipped, or near it"
    words = {"slice": "h100:1", "batch": 8, "isl": 1024, "osl": 256, "efficiency": str(tmp_path / "mine.toml")}
    origins = ask("llama-3-8b", {**words, "price": 1}).deployment().origins
    assert "hardly tell it" in origins["prefill_efficiency"][0]
    assert "fitted to 9 measurements" in origins["weight_read_efficiency"][0]


def test_a_ratio_that_no_row_tells_is_marked(tmp_path):
    steps = [each for each in tpu_rows(1.1, 1.1) if each["phase"] == "decode"]
    found = calibrate(file_of(tmp_path / "m.csv", steps))
    table = next(block for block in calibrate_document(found) if getattr(block, "title", "").endswith("the figures"))
    assert [cells[-1] for cells in table.rows] == ["the rows", "none: as the compiler has it"]


@pytest.mark.parametrize(("engine", "is_wide"), [("sglang", False), ("vllm", True)])
def test_another_engine_than_the_measured_one_has_a_wide_range(tmp_path, engine, is_wide):
    rows = [row(batch=b, isl=isl, ms=8 + b / 10) for b in (1, 8, 32) for isl in (128, 1024, 4096)]
    text = file_of(tmp_path / "m.csv", rows).read_text(encoding="utf-8").splitlines()
    named = [f"{line},{'engine' if not at else 'SGLang 0.4'}" for at, line in enumerate(text)]
    (tmp_path / "m.csv").write_text("\n".join(named), encoding="utf-8")
    calibrate(tmp_path / "m.csv", out=tmp_path / "mine.toml")
    words = {"slice": "h100:1", "batch": 8, "isl": 1024, "osl": 256, "efficiency": str(tmp_path / "mine.toml")}
    found = step("llama-3-8b", **words, engine=engine)
    others = shipped("gpus")[0].other_engine_errors["decode 1"]
    assert (found.step_high_s >= found.step_expected_s * others.high * (1 - 1e-9)) is is_wide
    assert (f"What {engine} itself would take was not measured" in " ".join(found.assumptions)) is is_wide
