"""Expected steps of TPUs beside measured ones: the compiler's table alone, nothing fitted."""

import re
from importlib import import_module

import numpy as np
import pytest

from slicewise.catalog.efficiency import tpu_errors
from slicewise.catalog.load import models, sources


@pytest.fixture(scope="module")
def script(published):
    del published  # its folder is importable then
    return import_module("compiled_times")


@pytest.fixture(scope="module")
def tpu_rows(published):
    del published
    return import_module("_tpu_rows")


@pytest.fixture(scope="module")
def table(published, published_path):
    return published.rows(published_path)


@pytest.fixture(scope="module")
def classified(tpu_rows, table):
    return tpu_rows.classified(table)


@pytest.fixture(scope="module")
def of_class(classified):
    return lambda name: [row for row, told in classified if told == name]


# -- every row has its place -----------------------------------------------------------------------------------------


def test_every_tpu_row_is_compared_or_left_out_for_a_reason(tpu_rows, table, classified):
    expected = [row["id"] for row in table if row["chip"].startswith("tpu")]
    assert [row["id"] for row, _ in classified] == expected
    assert len(expected) == 205
    counts = dict(tpu_rows.counted(classified))
    assert set(counts) == {*tpu_rows.AS, *tpu_rows.WHY}
    assert sum(each.total() for each in counts.values()) == len(expected)
    for chip in {row["chip"] for row, _ in classified}:
        assert sum(each[chip] for each in counts.values()) == sum(row["chip"] == chip for row in table)


def test_the_page_counts_every_row_and_names_every_reason(script, tpu_rows, classified):
    lines = re.findall(r"^\| (.*?) \|.*\| (\d+) \|$", script.rows_by_class(classified), re.MULTILINE)
    counted = {name: int(count) for name, count in lines}
    assert counted.pop("all") == sum(counted.values()) == len(classified)
    assert counted == {name: each.total() for name, each in tpu_rows.counted(classified) if each}
    assert "no rows at all: v4, v5p" in script.rows_by_class(classified)


def test_a_row_of_no_known_class_stops_the_count(tpu_rows, classified):
    with pytest.raises(AssertionError, match="rows without a class"):
        tpu_rows.counted([*classified, (classified[0][0], "somewhere else")])


def test_each_run_is_compared_once_and_by_its_most_direct_time(tpu_rows, classified, of_class):
    shown = [row for name in tpu_rows.AS for row in of_class(name)]
    runs = [
        tuple(row[key] for key in ("chip", "model", "parallelism", "batch", "input_len", "output_len")) for row in shown
    ]
    assert len(runs) == len(set(runs))
    again = {row["id"] for row in of_class(tpu_rows.AGAIN)}
    assert "sgljax-0046" in again  # tokens/s of MiMo-7B, whose TPOT is told
    assert {"sgljax-0047", "sgljax-0065"} <= {row["id"] for row in shown}


def test_models_that_the_catalog_has_are_not_said_to_be_missing(tpu_rows, of_class):
    missing = {row["model"].lower() for row in of_class(tpu_rows.NO_MODEL)}
    assert missing == {"glm-4.5-air", "kimi-linear-48b-a3b", "ling-2.6-1t", "mimo-v2.5-pro"}
    assert not missing & set(models())
    assert set(tpu_rows.MODELS.values()) <= set(models())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"batch": ""}, "NO_BATCH"),
        ({"input_len": ""}, "NO_BATCH"),
        ({"output_len": ""}, "NO_BATCH"),
        ({"model": "Unheard-Of-7B"}, "NO_MODEL"),
        ({"metric": "watts"}, "NO_TIME"),
        ({"metric": "ttft_mean_ms"}, "QUEUED"),
        ({"metric": "itl_median_ms"}, "GAP"),
        ({"metric": "prefill_s", "input_len": ""}, "NO_PROMPT"),
        ({"metric": "hbm_bw_util_pct"}, "AGAIN"),
        ({"batch": "100000"}, "TOO_MANY"),
        ({"chip": "tpu-v7x", "n_chips": "1", "topology": "1x1x1"}, "NO_SLICE"),
    ],
)
def test_a_row_that_cannot_be_compared_says_why(tpu_rows, of_class, changed, reason):
    row = {**of_class("dense servers")[0], **changed}
    assert tpu_rows.classified([row]) == [(row, getattr(tpu_rows, reason))]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("jaxex-0037", {"slice": "v5e:4x4", "weights": "int8", "kv": "int8", "dp": 2, "tp": 8}),
        ("jaxex-0091", {"slice": "v5e:8x8", "weights": "int8", "kv": "int8", "ep": 64}),
        ("jaxex-0093", {"slice": "v5e:4x4", "weights": "int8", "kv": "int8"}),
        ("sgljax-0030", {"slice": "tpu7x:2x2x1", "weights": "bf16", "kv": "bf16"}),
        ("sgljax-0056", {"slice": "v6e:4x4", "weights": "fp8", "kv": "bf16", "dp": 4, "tp": 4, "ep": 16}),
        ("sgljax-0057", {"slice": "tpu7x:2x2x1", "weights": "fp8", "kv": "bf16", "ep": 4}),
    ],
)
def test_a_rows_words_are_its_slice_and_layout(tpu_rows, table, source, words):
    assert tpu_rows.words_of(next(row for row in table if row["id"] == source)) == words


# -- how far expected times are off ----------------------------------------------------------------------------------


def test_llama_70b_int8_on_a_v5e_16(script, of_class):
    """24 published steps, two layouts."""
    _, ratios = script.fixed_batches(of_class("dense steps"))
    off = np.abs(1 / np.array(ratios) - 1)
    assert len(off) == 24
    assert np.median(off) <= 0.15
    assert off.max() <= 0.35


def test_it_is_nearer_than_the_bounds(script, of_class):
    text, _ = script.fixed_batches(of_class("dense steps"))
    medians = dict(re.findall(r"- (\w+): ([\d.]+)% off in the median", text))
    assert float(medians["expected"]) < float(medians["overlapped"])
    assert float(medians["expected"]) < float(medians["roofline"])


def test_mixtures_are_shown_with_their_errors_and_the_wide_range_holds_8_of_10(script, of_class):
    """The range is told by servers alone: these steps are no part of it."""
    text, ratios = script.mixtures(of_class("mixture steps"))
    assert text.count("| DeepSeek-R1 |") == 10
    assert text.count("| Llama-4-Scout |") == 3
    wide = tpu_errors("").error
    for name in ("expected", "expected, cut evenly"):
        held = [wide.low <= ratio <= wide.high for ratio in ratios[name]]
        assert sum(held) >= 0.8 * len(held)
    off = {name: np.median(np.abs(1 / np.array(each) - 1)) for name, each in ratios.items()}
    assert 0.35 < off["expected"] < off["overlapped"] < off["roofline"]


def test_what_a_longer_context_costs_deepseek_r1_is_a_copy_on_each_chip(script, of_class):
    """The page's claim: growth is two to three times the transfer of all latents by each chip."""
    rows = re.findall(r"\| DeepSeek-R1 \| (\d+) x 32 to \1 x [\d,]+ \|(.*)\|", script.growth(of_class("mixture steps")))
    assert [batch for batch, _ in rows] == ["1", "8", "128"]
    for _, cells in rows:
        _, cache, *_, measured = (float(cell) for cell in cells.split("|"))
        assert 2.4 < measured / cache < 3.0


def test_the_ranges_are_what_the_script_gives(script, table):
    told = script.compared(table)[1]
    for name, ratios, n_models in (("v5e", told["fixed"], 1), ("", told["servers"], told["models"])):
        fresh, kept = script.error_of(ratios, n_models), tpu_errors(name).error
        assert (kept.n_rows, kept.n_models) == (fresh.n_rows, fresh.n_models)
        assert (kept.median, kept.low, kept.high) == pytest.approx((fresh.median, fresh.low, fresh.high), rel=0.01)
    assert tpu_errors("").error.n_rows == 25


def test_the_page_has_the_tables_that_the_script_gives(script, table):
    page = script.PAGE.read_text(encoding="utf-8")
    assert script.placed(page, script.compared(table)[0]) == page


def test_only_v5e_was_measured_with_a_fixed_batch():
    assert [chip for chip in ("v4", "v5e", "v5p", "v6e", "tpu7x") if tpu_errors(chip).is_calibrated] == ["v5e"]
    assert {key for chip in ("v5e", "v6e") for key in tpu_errors(chip).sources} <= set(sources())
