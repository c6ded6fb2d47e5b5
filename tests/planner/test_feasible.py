"""Verdicts: a kind of reason to count by, and one sentence with the ledger line that breaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import BATCH, FITS, SEQUENCE, WEIGHTS, granting, memory_verdict
from slicewise.planner.step import LEDGER


@given(deployment=..., batch=st.integers(1, 10_000))
def test_a_verdict_is_that_of_the_ledger(deployment: Deployment, batch: int) -> None:
    ledger = deployment.evaluate(LEDGER, batch=batch)
    verdict = memory_verdict(deployment, ledger, batch)
    total, granted, weights = (float(ledger[name]) for name in ("total_bytes", "hbm_bytes", "weight_bytes"))
    assert verdict.fits == (total <= granted + 0.5)
    if verdict.fits:
        assert verdict == FITS
    elif weights > granted + 0.5:
        assert verdict.reason == WEIGHTS
    else:
        assert verdict.reason == (SEQUENCE if batch == 1 else BATCH)
    assert (verdict.detail == "") == verdict.fits
    assert "\n" not in verdict.detail


@pytest.mark.parametrize(
    ("slice_", "batch", "said"),
    [
        (
            "v5e:2x4",
            1,
            "141.11 GB (131.42 GiB) of bf16 weights do not fit 128.53 GB (119.7 GiB), what v5e:2x4 grants (8 chips",
        ),
        ("v5e:4x4", 1000, "the KV cache of 1,000 × 8,704 tokens takes"),
        ("v5e:4x4", 1000, "at most 40 sequences fit"),
    ],
)
def test_the_sentence_has_the_line_that_breaks(slice_: str, batch: int, said: str) -> None:
    assert said in str(slicewise.step("llama-3-70b", slice=slice_, batch=batch).reason)


def test_memory_is_told_as_granted() -> None:
    book = slicewise.step("llama-3-8b", slice="v5e:1x1", book=True, weights="int8", context=100).deployment
    assert granting(book) == "1 chip × 16 GB (14.901 GiB)"
