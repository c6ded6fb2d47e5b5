"""The shipped figures: they are what the script fits, and they hold on what they never saw."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from slicewise.calibrate.fit import bounds_s, measured_s
from slicewise.calibrate.held_out import groups_of
from slicewise.calibrate.terms import point_of
from slicewise.catalog.efficiency import shipped
from slicewise.catalog.load import sources
from slicewise.spec.efficiency import LARGE, SMALL

FILES = ("ampere", "hopper", "ada", "gpus")


@pytest.fixture(scope="module")
def script(shared_points):
    return import_module("refit_efficiency")


@pytest.fixture(scope="module")
def refitted(script, shared_points):
    return script.fit_all(shared_points)


@pytest.fixture(scope="module")
def held_out(refitted):
    return refitted.models


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_what_the_script_gives(name, refitted):
    fresh, kept = refitted.files[name], shipped(name)[0]
    assert (fresh.name, fresh.chips, fresh.models, fresh.sources) == (kept.name, kept.chips, kept.models, kept.sources)
    for figure in ("weight_read_efficiency", "kv_read_efficiency", "matmul_efficiency", "network_efficiency"):
        assert getattr(kept, figure) == pytest.approx(getattr(fresh, figure), rel=0.01), figure
    for figure in ("layer_s", "sync_s", "token_passes", "prefill_token_passes"):
        assert getattr(kept, figure) == pytest.approx(getattr(fresh, figure), rel=0.02), figure
    assert dict(kept.prefill_efficiency) == pytest.approx(dict(fresh.prefill_efficiency), rel=0.01)
    assert kept.errors.keys() == fresh.errors.keys()
    assert (fresh.most_chips, fresh.engine, fresh.measured) == (kept.most_chips, kept.engine, kept.measured)
    assert (fresh.shared, fresh.shared_chips, fresh.shared_rows) == (kept.shared, kept.shared_chips, kept.shared_rows)
    assert fresh.other_engines == kept.other_engines
    assert fresh.other_engine_errors.keys() == kept.other_engine_errors.keys()
    errors = [*fresh.errors.items(), *fresh.other_engine_errors.items()]
    for (key, error), stored in zip(errors, [*kept.errors.values(), *kept.other_engine_errors.values()], strict=True):
        assert (stored.n_rows, stored.n_models) == (error.n_rows, error.n_models), key
        assert stored.median == pytest.approx(error.median, rel=0.02)
        assert (stored.low, stored.high) == pytest.approx((error.low, error.high), rel=0.02)
        assert stored.held == pytest.approx(error.held, abs=0.03)


@pytest.mark.parametrize("name", FILES)
def test_sources_are_known(name):
    assert set(shipped(name)[0].sources) <= set(sources())


def rows_of(found, phase, chip=None):
    return np.array([p.phase == phase and chip in (None, p.chip) for p in found.points])


@pytest.mark.parametrize("chip", ["a100", "h100", "h200", "l40s"])
@pytest.mark.parametrize(("phase", "most"), [("decode", 0.12), ("prefill", 0.15)])
def test_a_model_that_the_fit_never_saw(held_out, chip, phase, most):
    rows = rows_of(held_out, phase, chip)
    off = np.abs(1 / held_out.ratio[rows] - 1)
    bound = np.abs(bounds_s(held_out.points) / measured_s(held_out.points) - 1)[rows]
    assert np.median(off) < most < np.median(bound)


@pytest.mark.parametrize("chip", ["a100", "l40s"])
def test_a_source_that_the_fit_never_saw(refitted, shared_points, chip):
    rows = [i for i, point in enumerate(shared_points) if point.chip == chip]
    off = np.abs(refitted.engines.expected_s / measured_s(shared_points) - 1)[rows]
    assert np.isfinite(off).all()
    assert np.median(off) < 0.25


def test_the_range_holds_eight_of_ten_that_it_never_saw(held_out):
    """The range of a row comes from rows of other models alone."""
    covered, steps, prefills = held_out.is_covered, rows_of(held_out, "decode"), rows_of(held_out, "prefill")
    large = np.array([point.measurement.batch >= LARGE for point in held_out.points])
    # Neither half of the batches, nor a phase, pays for the other's.
    for rows in (steps | prefills, steps, prefills, steps & ~large, steps & large):
        assert np.mean(covered[rows]) == pytest.approx(0.8, abs=0.05)
    several = np.array([point.n_chips > 1 for point in held_out.points])
    for rows in (steps & ~several, steps & several):
        assert np.mean(covered[rows]) == pytest.approx(0.8, abs=0.05)
    for chip in ("a100", "h100", "h200"):
        assert np.mean(covered[rows_of(held_out, "decode", chip)]) == pytest.approx(0.8, abs=0.05), chip
    # L40S has few rows on several chips: its range takes in those of the other chips.
    assert np.mean(covered[rows_of(held_out, "decode", "l40s")]) < 0.95


def test_a_low_end_that_is_held_to_that_of_a_small_batch_loses_no_row(held_out, script, published):
    """Planner's `step_low_s` lifts the low end of a large batch to that of 32 sequences."""
    points = held_out.points
    families, n_lifted = [script.family(point) for point in points], 0
    for model in {point.model for point in points}:
        seen = [i for i, point in enumerate(points) if point.model != model]
        rest = script.fit([points[i] for i in seen], [families[i] for i in seen])
        for i, point in enumerate(points):
            if point.model == model and point.phase == "decode" and point.measurement.batch >= LARGE:
                small = replace(point.measurement, batch=SMALL)
                there = point_of(small, published.model_of(small.model))
                ratio = shipped(families[i])[0].errors[groups_of(there)[0]].low
                low_s = ratio * rest.expected_s([there], [families[i]])[0]
                n_lifted += low_s > held_out.low_s[i]
                assert not held_out.is_covered[i] or low_s <= point.measurement.seconds
    assert n_lifted > 10


@pytest.mark.parametrize("name", ["ampere", "hopper", "ada"])
def test_a_file_says_what_its_ranges_held(held_out, script, name):
    for key, error in shipped(name)[0].errors.items():
        rows = [i for i, p in enumerate(held_out.points) if script.family(p) == name and key in groups_of(p)]
        assert error.n_rows == len(rows)
        assert error.held == pytest.approx(np.mean(held_out.is_covered[rows]), abs=0.005)


def test_an_engine_that_nobody_measured_has_a_range_that_holds(refitted):
    """The range of an engine's rows comes from the other engines alone, and each engine counts alike."""
    engines = refitted.engines
    assert len(engines.told) == 5
    assert engines.held(engines.in_wide) == pytest.approx(0.8, abs=0.05)
    assert engines.held(engines.in_wide, "decode") == pytest.approx(0.8, abs=0.05)
    # What the fitted engine's own range would have held of the others: the reason for another one.
    assert engines.held(engines.in_narrow) < 0.35
    vllm = [
        i for i, name in enumerate(engines.engines) if name.startswith("vLLM") and np.isfinite(engines.expected_s[i])
    ]
    assert np.mean(engines.in_narrow[vllm]) < 0.2 < np.mean(engines.in_wide[vllm])
    held = {key: error.held for key, error in shipped("gpus")[0].other_engine_errors.items()}
    for key, share in held.items():
        assert share == pytest.approx(engines.held(engines.in_wide, key.partition(" ")[0]), abs=0.005)


def test_the_tables_tell_coverage_by_chips_and_batch(refitted):
    table = import_module("_held_out_tables").by_source(refitted.engines)
    assert "in the narrow range | in the engines' range" in table
    for place in ("| a100 | FasterTransformer 5 | end_to_end | 8 |", "| h100 | vLLM 2024-11 | end_to_end | batch 64"):
        assert place in table


@pytest.mark.parametrize("name", ["ampere", "hopper", "ada"])
def test_shared_figures_are_those_that_the_files_have_in_common(name):
    fit, others = shipped(name)[0], [shipped(other)[0] for other in ("ampere", "hopper", "ada")]
    assert fit.shared_rows == sum(other.n_rows for other in others)
    assert set(fit.shared_chips) == {chip for other in others for chip in other.chips}
    for figure in fit.shared:
        assert {getattr(other, figure) for other in others} == {getattr(fit, figure)}


def test_every_row_of_the_table_is_used_or_counted(published, published_path):
    found, left = published.points(published_path)
    rows = [row for row in published.rows(published_path) if published.source_of(row) in published.ENGINES]
    assert len(found) + sum(left.values()) == len(rows)
    assert {
        "routing: experts, or made-up weights that touch too few of them",
        "capacity exceeded",
        "pipeline stages",
    } <= set(left)
