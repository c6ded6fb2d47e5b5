"""Expected steps of TPUs beside measured ones: the compiler's table alone, nothing fitted."""

import re
from importlib import import_module

import numpy as np
import pytest

from slicewise.catalog.efficiency import tpu_errors
from slicewise.catalog.load import sources


@pytest.fixture(scope="module")
def script(published):
    del published  # its folder is importable then
    return import_module("compiled_times")


@pytest.fixture(scope="module")
def controlled(published, published_path):
    return [row for row in published.rows(published_path) if row["note"].startswith("ctrl:fixed_batch")]


def test_llama_70b_int8_on_a_v5e_16(script, controlled):
    """24 published steps, two layouts."""
    _, ratios = script.fixed_batches(controlled)
    off = np.abs(1 / np.array(ratios) - 1)
    assert len(off) == 24
    assert np.median(off) <= 0.15
    assert off.max() <= 0.35


def test_it_is_nearer_than_the_bounds(script, controlled):
    text, _ = script.fixed_batches(controlled)
    medians = dict(re.findall(r"- (\w+): ([\d.]+)% off in the median", text))
    assert float(medians["expected"]) < float(medians["overlapped"])
    assert float(medians["expected"]) < float(medians["roofline"])


def test_the_ranges_are_what_the_script_gives(script, published, published_path, controlled):
    loops = [row for row in published.rows(published_path) if row["note"].startswith("ctrl:closed_loop")]
    _, servers, n_served = script.closed_loops(loops)
    models = {row["model"] for row in controlled if row["chip"] == "tpu-v5e" and row["model"] in script.DENSE}
    for name, ratios, n_models in (("v5e", script.fixed_batches(controlled)[1], len(models)), ("", servers, n_served)):
        fresh, kept = script.error_of(ratios, n_models), tpu_errors(name).error
        assert (kept.n_rows, kept.n_models) == (fresh.n_rows, fresh.n_models)
        assert (kept.median, kept.low, kept.high) == pytest.approx((fresh.median, fresh.low, fresh.high), rel=0.01)


def test_only_v5e_was_measured_with_a_fixed_batch():
    assert [chip for chip in ("v5e", "v5p", "v6e", "tpu7x") if tpu_errors(chip).is_calibrated] == ["v5e"]
    assert {key for chip in ("v5e", "v6e") for key in tpu_errors(chip).sources} <= set(sources())
