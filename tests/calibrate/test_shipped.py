"""The shipped figures: they are what the script fits, and they hold on what they never saw."""

from importlib import import_module

import numpy as np
import pytest

from slicewise.calibrate.fit import bounds_s, measured_s
from slicewise.calibrate.held_out import told
from slicewise.catalog.efficiency import shipped
from slicewise.catalog.load import sources
from slicewise.spec.efficiency import LARGE

FILES = ("ampere", "hopper", "ada", "gpus")


@pytest.fixture(scope="module")
def script(shared_points):
    return import_module("refit_efficiency")


@pytest.fixture(scope="module")
def refitted(script, shared_points):
    return script.fit_all(shared_points)


@pytest.fixture(scope="module")
def held_out(script, shared_points):
    main = [point for point in shared_points if script.source(point) == script.MAIN]
    return told(main, [script.family(point) for point in main], [point.model for point in main])


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_what_the_script_gives(name, refitted):
    fresh, kept = refitted[name], shipped(name)[0]
    assert (fresh.name, fresh.chips, fresh.models, fresh.sources) == (kept.name, kept.chips, kept.models, kept.sources)
    for figure in ("weight_read_efficiency", "kv_read_efficiency", "matmul_efficiency", "network_efficiency"):
        assert getattr(kept, figure) == pytest.approx(getattr(fresh, figure), rel=0.01), figure
    for figure in ("layer_s", "sync_s", "token_passes", "prefill_token_passes"):
        assert getattr(kept, figure) == pytest.approx(getattr(fresh, figure), rel=0.02), figure
    assert dict(kept.prefill_efficiency) == pytest.approx(dict(fresh.prefill_efficiency), rel=0.01)
    assert kept.errors.keys() == fresh.errors.keys()
    assert (fresh.most_chips, fresh.engine, fresh.measured) == (kept.most_chips, kept.engine, kept.measured)
    for key, error in fresh.errors.items():
        assert (kept.errors[key].n_rows, kept.errors[key].n_models) == (error.n_rows, error.n_models)
        assert kept.errors[key].median == pytest.approx(error.median, rel=0.02)
        assert (kept.errors[key].low, kept.errors[key].high) == pytest.approx((error.low, error.high), rel=0.02)


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
def test_a_source_that_the_fit_never_saw(script, shared_points, chip):
    rows = [i for i, point in enumerate(shared_points) if point.chip == chip]
    off = np.abs(script._of_other_sources(shared_points) / measured_s(shared_points) - 1)[rows]
    assert np.isfinite(off).all()
    assert np.median(off) < 0.25


def test_the_range_holds_eight_of_ten_that_it_never_saw(held_out):
    assert np.mean(held_out.is_covered) == pytest.approx(0.8, abs=0.05)
    steps = rows_of(held_out, "decode")
    assert np.mean(held_out.is_covered[steps]) == pytest.approx(0.8, abs=0.05)
    # Neither half of the batches pays for the other's.
    large = np.array([point.measurement.batch >= LARGE for point in held_out.points])
    assert np.mean(held_out.is_covered[steps & ~large]) == pytest.approx(0.8, abs=0.05)
    assert np.mean(held_out.is_covered[steps & large]) > 0.65


def test_every_row_of_the_table_is_used_or_counted(published, published_path):
    found, left = published.points(published_path)
    rows = [row for row in published.rows(published_path) if published.source_of(row) in published.ENGINES]
    assert len(found) + sum(left.values()) == len(rows)
    assert {
        "routing: experts, or made-up weights that touch too few of them",
        "capacity exceeded",
        "pipeline stages",
    } <= set(left)
