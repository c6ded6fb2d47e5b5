"""Memory: one row a slice, and what is longest and largest on each really is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.catalog.load import find_chip
from slicewise.catalog.slices import standard_slices


@given(
    st.sampled_from(["llama-3-8b", "llama-3-70b", "llama-2-13b"]),
    st.sampled_from(["v5e", "v5p", "v6e", "h100"]),
    st.integers(1, 200),
    st.integers(1, 2**16),
    st.sampled_from(["bf16", "int8"]),
    st.sampled_from(["whole", "ideal"]),
)
def test_rows_say_what_fits(model: str, chip: str, batch: int, context: int, dtype: str, split: str) -> None:
    found = slicewise.memory(model, chip=chip, batch=batch, context=context, weights=dtype, split=split)
    json.dumps(found.to_dict(), allow_nan=False)
    assert [row.slice for row in found.slices] == [slice_.name for slice_ in standard_slices(find_chip(chip))]
    for row in found.slices:
        assert row.fits == (row.max_batch >= batch) == (row.free_bytes >= -0.5) == (row.reason is None)
        assert row.free_bytes == row.hbm_bytes - row.total_bytes
    fitting = [row for row in found.slices if row.fits]
    assert found.smallest == (fitting[0].slice if fitting else None)
    assert found.fits == bool(fitting)
    assert found.ledger.slice == (found.smallest or found.slices[-1].slice)


@given(st.sampled_from(["v5e:2x4", "v5e:4x4", "v5e:8x16", "h100:8"]), st.integers(1, 200))
def test_the_longest_context_fits_and_one_more_token_does_not(slice_: str, batch: int) -> None:
    found = slicewise.memory("llama-3-8b", slice=slice_, batch=batch)
    longest = found.max_context_tokens
    assert longest
    assert slicewise.memory("llama-3-8b", slice=slice_, batch=batch, context=longest).fits
    assert not slicewise.memory("llama-3-8b", slice=slice_, batch=batch, context=longest + 1).fits


def test_the_json_has_the_ledger_and_a_list_of_slices() -> None:
    found = slicewise.memory("llama-3-70b", weights="int8").to_dict()
    assert {"n_params", "kv_bytes_per_token", "total_bytes", "max_batch", "fits", "max_context_tokens"} <= set(found)
    assert {"slice", "fits", "max_batch", "free_bytes"} <= set(found["slices"][0])
    assert found["matmul_params"] == 69_501_714_432
    assert found["kv_bytes_per_sequence"] == 327_680 * 8704


# Question 0.5 of chapter 8: caches of 8k tokens on the smallest slices, and 43 sequences on each.
@pytest.mark.parametrize(("dtype", "smallest"), [("bf16", "v5e:4x4"), ("int8", "v5e:2x4"), ("int4", "v5e:2x2")])
def test_question_5_of_chapter_8(dtype: str, smallest: str) -> None:
    found = slicewise.memory("llama-3-70b", weights=dtype, kv=dtype, isl=8192, book=True, params="70e9")
    assert found.smallest == smallest
    assert found.ledger.max_batch == 43


def test_405b_needs_64_chips_of_v5e() -> None:
    # https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/issues/1467
    found = slicewise.memory("llama-3-405b", context=1, memory_fraction=1)
    assert found.smallest == "v5e:8x8"
    assert found.ledger.weight_bytes / 64 / 2**30 == pytest.approx(11.81, rel=1e-3)


@pytest.mark.parametrize("name", ["", "max_context_tokens", "kv_bytes_per_sequence", "matmul_params"])
def test_numbers_are_explained(name: str) -> None:
    found = slicewise.memory("llama-3-8b", slice="v5e:2x4")
    values = {**found.to_dict(), "": found.ledger.total_bytes}
    derivation = found.explain(name).to_dict()
    assert derivation["value"] == values[name]
    json.dumps(derivation, allow_nan=False)


def test_of_named_slices_the_ledger_is_that_of_the_smallest_that_fits() -> None:
    found = slicewise.memory("llama-3-70b", slice=["v5e:8x8", "v5e:2x2", "v5e:4x4"])
    assert [row.fits for row in found.slices] == [True, False, True]
    assert found.smallest == found.ledger.slice == "v5e:4x4"


def test_several_dtypes_have_rows_each() -> None:
    found = slicewise.memory("llama-3-8b", chip="v5e", weights=["bf16", "int8"])
    assert len(found.slices) == 16
    assert {row.weight_dtype for row in found.slices} == {"bf16", "int8"}
