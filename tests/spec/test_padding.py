"""Padding of a TPU's KV cache: against what tpu-inference logs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.errors import InputError
from slicewise.spec.arrays import Cache
from slicewise.spec.latent import latent_attention
from slicewise.spec.mixers import attention
from slicewise.spec.padding import packing, padded_bytes_per_token, tpu_padding
from slicewise.spec.precision import BYTES_PER_ELEMENT
from slicewise.units import GIB

HEADS = {"d_model": 1024, "n_heads": 8, "n_kv_heads": 8}


def kv(n_kv_heads: int, head_dim: int, value_dim: int = 0) -> Cache:
    sizes = {"d_model": 1024, "n_heads": n_kv_heads, "n_kv_heads": n_kv_heads}
    (cache,) = attention(**sizes, head_dim=head_dim, value_dim=value_dim).caches
    return cache


def latent() -> Cache:
    sizes = {"d_model": 7168, "n_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512}
    (cache,) = latent_attention(**sizes, qk_nope_head_dim=128, qk_rope_head_dim=64, value_dim=128).caches
    return cache


@pytest.mark.parametrize(
    ("cache", "tokens", "page_bytes", "padded_page_bytes", "blocks", "padded_blocks"),
    [
        # Llama-3.1-70B, fp8 cache, 8 chips: github.com/vllm-project/tpu-inference/pull/757.
        pytest.param(kv(8, 128), 128, 262_144, 524_288, 8676, 4338, id="heads-of-128"),
        # Heads of 64, fp8 cache, 8 chips, "padded by 4x": github.com/vllm-project/tpu-inference/pull/1285.
        pytest.param(kv(8, 64), 512, 524_288, 2_097_152, 76_268, 19_067, id="heads-of-64"),
    ],
)
def test_pages_of_one_head_a_chip_in_fp8_are_what_the_engine_logs(
    cache: Cache, tokens: int, page_bytes: int, padded_page_bytes: int, blocks: int, padded_blocks: int
) -> None:
    assert cache.elements_per_token * tokens == page_bytes
    assert 8 * tokens * padded_bytes_per_token(cache, "fp8", 1) == padded_page_bytes
    assert blocks // tpu_padding(cache, "fp8", 1) == padded_blocks


def test_a_pool_in_bf16_is_what_the_engine_logs() -> None:
    # Llama-3.1-8B on 4 chips of v6e: 32 layers of 3,168 pages of 256 tokens, 24.75 GiB a chip.
    # github.com/vllm-project/tpu-inference/pull/145
    assert 32 * 3168 * 256 * padded_bytes_per_token(kv(8, 128), "bf16", 2) / GIB == 24.75


@pytest.mark.parametrize(
    ("cache", "dtype", "heads", "factor"),
    [
        pytest.param(kv(8, 128), "bf16", 1, 1.0, id="bf16-fills-its-words"),
        pytest.param(kv(8, 128), "fp8", 2, 1.0, id="two-heads-fill-fp8"),
        pytest.param(kv(8, 128), "fp8", 3, 8 / 6, id="three-heads-leave-two-rows"),
        pytest.param(kv(8, 128), "int4", 1, 4.0, id="int4-has-eight-rows-a-word"),
        pytest.param(kv(8, 128), "fp32", 1, 1.0, id="fp32-needs-no-packing"),
        pytest.param(kv(8, 96), "bf16", 1, 128 / 96, id="heads-of-96-pad-to-the-lanes"),
        pytest.param(kv(8, 80), "fp8", 1, 2 * 128 / 80, id="both"),
        pytest.param(kv(8, 64), "bf16", 2, 1.0, id="heads-of-64-lie-side-by-side"),
        pytest.param(kv(8, 64), "bf16", 1, 2.0, id="one-head-of-64-is-half-a-word"),
        pytest.param(kv(4, 192, 128), "bf16", 1, 2 * 256 / 320, id="values-are-as-wide-as-keys"),
        pytest.param(kv(4, 128, 192), "bf16", 1, 2 * 256 / 320, id="keys-are-as-wide-as-values"),
        pytest.param(latent(), "bf16", 1, 640 / 576, id="latent"),
        pytest.param(latent(), "fp8", 1, 640 / 576, id="latents-pack-by-tokens"),
        pytest.param(
            Cache(name="compressed entries", elements_per_token=500 / 4, head_dim=500),
            "fp8",
            1,
            512 / 500,
            id="entries",
        ),
        pytest.param(attention(**HEADS, head_dim=96, earlier_kv=True).caches[0], "bf16", 1, 128 / 96, id="read-again"),
        pytest.param(Cache(name="state", n_heads=8, state_bytes=100.0), "fp8", 1, 1.0, id="state"),
        pytest.param(Cache(name="index keys", other_bytes_per_token=132.0), "fp8", 1, 1.0, id="index-keys"),
    ],
)
def test_padding_over_the_elements(cache: Cache, dtype: str, heads: int, factor: float) -> None:
    assert tpu_padding(cache, dtype, heads) == pytest.approx(factor, rel=1e-12)


def test_what_is_kept_in_no_dtype_of_the_cache_takes_none_of_its_rows() -> None:
    assert padded_bytes_per_token(Cache(name="state", state_bytes=100.0), "fp8", 1) == 0


def test_packing_is_rows_of_a_word() -> None:
    assert [packing(dtype) for dtype in ("fp32", "bf16", "fp8", "int8", "int4")] == [1, 2, 4, 4, 8]


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(InputError, match="kv dtype fp6 is not known; use one of fp32, bf16"):
        tpu_padding(kv(8, 128), "fp6", 1)


@given(st.integers(1, 16), st.integers(1, 512), st.sampled_from(sorted(BYTES_PER_ELEMENT)))
def test_padding_adds_and_a_narrower_dtype_never_costs_more(heads: int, head_dim: int, dtype: str) -> None:
    cache = kv(16, head_dim)
    assert tpu_padding(cache, dtype, heads) >= 1
    padded = padded_bytes_per_token(cache, dtype, heads)
    assert padded % 4 == 0
    assert padded <= padded_bytes_per_token(cache, "fp32", heads)
    if heads % packing(dtype) == 0 and head_dim % 128 == 0:
        assert math.isclose(tpu_padding(cache, dtype, heads), 1.0)
