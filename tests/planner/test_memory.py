"""Memory: one row a slice, and what is longest and largest on each really is."""

import json
from typing import Any

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


# -- layers of several kinds, and ranks ------------------------------------------------------------------------------

KINDS = {
    "windows": ("gemma-3-12b", "h100:8"),
    "states": ("nemotron-h-56b", "h100:8"),
    "states-and-experts": ("qwen3-next-80b-a3b", "h200:8"),
    "latents": ("deepseek-v2-lite", "h100:8"),
    "sparse": ("deepseek-v3.2", "h200:8"),
    "experts": ("mixtral-8x7b", "h100:8"),
    "stored": ("qwen3-32b-fp8", "h100:8"),
    "one-window": ("mistral-7b-v0.1", "v5e:4x4"),
}
LAYOUTS: list[dict[str, Any]] = [
    {}, {"split": "ideal"}, {"kv_split": "copy"}, {"tp": 8}, {"tp": 4, "pp": 2}, {"tp": 2, "dp": 4}, {"engine": "vllm"},
    {"tp": 2, "pp": 2, "dp": 2, "split": "ideal"},
]  # fmt: skip


def words_of(kind: str, layout: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    model, slice_ = KINDS[kind]
    if slice_ == "v5e:4x4":
        layout = {**layout, **({"tp": 4, "dp": 4} if {"tp", "engine"} & set(layout) else {})}
        layout = {name: value for name, value in layout.items() if name not in ("pp", "engine")}
    return model, {"slice": slice_, **layout}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_batch_fits_and_one_more_does_not(kind: str, layout: dict[str, Any]) -> None:
    model, words = words_of(kind, layout)
    found = slicewise.memory(model, **words, context=6000)
    most = found.ledger.max_batch
    assert most >= 1
    fits = {batch: slicewise.memory(model, **words, context=6000, batch=batch) for batch in (1, most, most + 1)}
    assert [found.fits for found in fits.values()] == [True, True, False]
    assert fits[most].ledger.free_bytes >= -0.5 > fits[most + 1].ledger.free_bytes
    for batch, found in fits.items():
        ledger = found.ledger
        assert ledger.total_bytes == ledger.weight_bytes + ledger.kv_bytes + ledger.activation_bytes
        assert ledger.free_bytes == ledger.hbm_bytes - ledger.total_bytes
        assert ledger.batch == batch


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_context_fits_and_one_more_token_does_not_for_every_kind(kind: str, layout: dict[str, Any]) -> None:
    model, words = words_of(kind, layout)
    batch = 300
    found = slicewise.memory(model, **words, context=100, batch=batch)
    longest = found.max_context_tokens
    if longest is None:
        # A window bounds the cache: any context fits.
        assert slicewise.memory(model, **words, context=10**9, batch=batch).fits
        return
    assert found.explain("max_context_tokens").value == longest
    assert longest == 0 or slicewise.memory(model, **words, context=longest, batch=batch).fits
    assert not slicewise.memory(model, **words, context=longest + 1, batch=batch).fits


def test_a_longer_context_grows_by_the_layers_whose_window_is_not_full() -> None:
    short, long = (
        slicewise.memory("gemma-4-31b", slice="h100:4", context=context, batch=1).ledger for context in (1024, 32_768)
    )
    # 3.523 GB at 32,768 tokens: https://github.com/alvarobartt/hf-mem/issues/61
    assert long.kv_bytes == 819_200 * 1024 + 81_920 * 32_768
    assert short.kv_bytes == 901_120 * 1024
    assert (short.kv_growth_bytes_per_token, long.kv_growth_bytes_per_token) == (81_920, 81_920)
    assert long.kv_bytes_per_token == short.kv_bytes_per_token == 901_120


def test_ranks_beyond_the_heads_hold_copies() -> None:
    # 64,512 B a token on each chip at tp 8 and at tp 64: https://github.com/tenstorrent/vllm/issues/50
    for slice_, ranks in (("v5e:2x4", 8), ("v5e:8x8", 64)):
        ledger = slicewise.memory("llama-3-405b", slice=slice_, tp=ranks, context=1, batch=1).ledger
        assert ledger.kv_bytes / ranks == 64_512
    split = slicewise.memory("llama-3-405b", slice="v5e:8x8", context=1, batch=8).ledger
    assert split.kv_bytes == 8 * 516_096


def test_legal_layouts_are_listed_where_ranks_are_asked_for() -> None:
    assert slicewise.memory("llama-3-70b", slice="h100:4").legal_layouts == ()
    found = slicewise.memory("llama-3-70b", slice="h100:4", tp=2)
    assert found.ledger.layout == "tp 2 × dp 2"
    assert found.legal_layouts[:2] == ("tp 4", "tp 2 × dp 2")
    assert [row.layout for row in found.slices] == ["tp 2 × dp 2"]


def test_slices_without_a_legal_layout_have_no_row() -> None:
    found = slicewise.memory("llama-3-8b", chip="h100", tp=8)
    chips = [slice_.n_chips for slice_ in standard_slices(find_chip("h100"))]
    assert [row.n_chips for row in found.slices] == [n for n in chips if n % 8 == 0]
    assert found.smallest == "h100:8"


def test_of_named_slices_one_without_a_legal_layout_is_passed_over() -> None:
    found = slicewise.memory("deepseek-v3", slice=["h100:4", "h100:8"], tp=8, weights="bf16")
    assert [row.slice for row in found.slices] == ["h100:8"]
    assert (found.fits, found.ledger.slice) == (False, "h100:8")


def test_parameters_by_role_add_up() -> None:
    for model in ("llama-3-8b", "deepseek-v3", "gemma-3-27b", "nemotron-h-56b"):
        found = slicewise.memory(model, chip="h200")
        assert sum(found.params_by_role.values()) == found.ledger.n_params
        assert list(found.params_by_role.values()) == sorted(found.params_by_role.values(), reverse=True)


def test_weights_are_those_of_the_checkpoint_unless_a_dtype_is_given() -> None:
    # 4 bytes of scale for 128 x 128 elements, in matrices of 8 bits beside an embedding and a head of 16.
    stored = slicewise.memory("qwen3-32b-fp8", slice="h100:8").ledger
    given_ = slicewise.memory("qwen3-32b-fp8", slice="h100:8", weights="fp8").ledger
    wide = slicewise.memory("qwen3-32b-fp8", slice="h100:8", weights="bf16").ledger
    assert (stored.weight_dtype, given_.weight_dtype, wide.weight_dtype) == ("fp8", "fp8", "bf16")
    assert given_.weight_bytes == given_.n_params == wide.weight_bytes / 2
    outside = 2 * 151_936 * 5120
    assert stored.weight_bytes == pytest.approx(given_.n_params + outside, rel=1e-3)
    assert stored.weight_bytes > given_.n_params + outside
