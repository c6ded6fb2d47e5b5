"""Blocks, tokens and concurrency of one pool: figures that engines logged, and what must hold of any pool."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.costs import paging
from slicewise.units import GIB

PER_TOKEN = 131_072  # Llama-3.1-8B: 32 layers * 8 heads * 128 * keys and values * 2 B


def test_pool_of_a_share_of_memory() -> None:
    # Llama-3.1-8B on a 79.19 GiB H100 at 0.95: vLLM logged 58.11 GiB. llm-d-incubation/llm-d-planner#205
    pool = paging.fraction_pool_bytes(0.95, 79.19 * GIB, 14.99 * GIB, (1.89 + 0.25) * GIB)
    assert pool / GIB == pytest.approx(58.11, abs=0.01)


@pytest.mark.parametrize(
    ("weights", "free_after", "cache", "fraction"),
    [(15.11, 63.48, 2 * 27.02, 0.88), (16.41, 62.08, 2 * 25.14, 0.85), (15.54, 6.09, 2 * 1.42, 0.85)],
)
def test_pool_of_a_static_fraction(weights: float, free_after: float, cache: float, fraction: float) -> None:
    # Three SGLang logs: weights, what was free after loading, and the cache that followed from its default fractions.
    pool = paging.static_pool_bytes(fraction, weights + free_after, weights)
    assert pool == pytest.approx(cache, abs=0.03)


def test_a_static_fraction_below_the_weights_leaves_nothing() -> None:
    # DeepSeek-V4-Pro, 125.65 GB of weights, 12.25 free: 0.88 fails, it asks for 0.9113. SemiAnalysisAI/InferenceX#2128
    free = 125.65 + 12.25
    assert paging.static_pool_bytes(0.88, free, 125.65) < 0
    assert paging.static_pool_bytes(0.9113, free, 125.65) == pytest.approx(0, abs=0.03)


def test_blocks_and_tokens_of_a_pool() -> None:
    # vllm-project/vllm#10517: 3.81 GiB, 1,952 blocks, 1.56x at 20,000; 1,478 blocks, 23,648 tokens, 0.82x at 29,000.
    assert paging.pool_blocks(1952 * 16 * PER_TOKEN, PER_TOKEN, 16) == 1952
    assert paging.pool_blocks(1952 * 16 * PER_TOKEN - 1, PER_TOKEN, 16) == 1951
    assert paging.pool_tokens(1478, 16) == 23_648
    assert round(paging.max_concurrency(1952, paging.request_blocks(20_000, 16)), 2) == 1.56
    assert round(paging.max_concurrency(1478, paging.request_blocks(29_000, 16)), 2) == 0.82


def test_bytes_of_the_longest_request() -> None:
    # Qwen3-Coder-480B: 62 layers * 8 heads * 128, bf16; 262,144 tokens need 62.00 GiB. vllm-project/recipes#12
    per_token = 62 * 8 * 128 * 2 * 2
    assert paging.request_bytes(paging.request_blocks(262_144, 16), 16, per_token) == 62 * GIB
    assert paging.pool_tokens(paging.pool_blocks(55.65 * GIB, per_token, 16), 16) == pytest.approx(235_296, abs=16)


def test_windows_keep_what_is_seen_and_what_is_in_flight() -> None:
    # gemma-3-1b: window 512. Two logs: batches of 8,192 up to 2,048 tokens, and of 2,048 up to 32,768.
    assert paging.sliding_request_blocks(2048, 512, 8192, 1, 16) == 129
    assert paging.sliding_request_blocks(32_768, 512, 2048, 1, 16) == 161
    # Gemma-4-31B: window 1,024, batches of 32,768, one in flight and two. vllm-project/vllm#49878
    assert paging.sliding_request_blocks(262_144, 1024, 32_768, 1, 16) == 2113
    assert paging.sliding_request_blocks(262_144, 1024, 32_768, 2, 16) == 4161


def test_all_layers_slide() -> None:
    # starcoder2-3b, window 4,096: 2,198,512 tokens, 178.68x at 16,384; 134.19x before windows counted. vllm#19029
    blocks = 2_198_512 / 16
    assert round(paging.max_concurrency(blocks, paging.sliding_request_blocks(16_384, 4096, 8192, 1, 16)), 2) == 178.68
    assert round(paging.max_concurrency(blocks, paging.request_blocks(16_384, 16)), 2) == 134.19


def test_chunks_begin_with_a_block() -> None:
    assert paging.chunked_request_blocks(1_000_000, 8192, 8192, 1, 16) == 1024
    assert paging.chunked_request_blocks(1000, 8192, 8192, 1, 16) == 63


def test_latent_kept_head_by_head() -> None:
    # DeepSeek-V2-Lite before its latent was cached: 27 layers, 16 heads, 192 padded to 256. vllm-project/vllm#10927
    per_token = paging.materialised_bytes_per_token(27, 16, 256, 2.0)
    assert per_token == 442_368
    assert paging.pool_blocks(35.42 * GIB, per_token, 16) == pytest.approx(5373, abs=1)


def test_two_pools_of_tokens() -> None:
    # SGLang's Gemma-4-26B in fp8: 37,081 tokens of full attention, 29,664 in windows, 3.18 GB together.
    full, window = 5 * 2 * 2 * 512, 25 * 8 * 2 * 256
    assert paging.window_pool_tokens(37_081, 0.8) == 29_664
    assert paging.window_pool_tokens(997_846, 0.8) == 798_276
    assert paging.full_pool_tokens(37_081 * (full + 0.8 * window), full, window, 0.8) == 37_081
    assert (37_081 * full + 29_664 * window) / GIB == pytest.approx(3.18, abs=0.005)


LENGTHS, BLOCKS = st.integers(1, 10**6), st.sampled_from([1, 16, 64, 256, 1056])
WINDOWS, BATCHES = st.integers(1, 10**5), st.integers(1, 10**5)


@given(st.integers(0, 10**12), st.integers(1, 10**6), BLOCKS)
def test_a_pool_is_filled_to_within_a_block(pool: int, per_token: int, block: int) -> None:
    tokens = paging.pool_tokens(paging.pool_blocks(pool, per_token, block), block)
    assert tokens % block == 0
    assert 0 <= pool - tokens * per_token < block * per_token


@given(LENGTHS, WINDOWS, BATCHES, BLOCKS)
def test_a_window_never_needs_more_than_the_whole_length_and_a_block(
    length: int, window: int, batch: int, block: int
) -> None:
    whole = paging.request_blocks(length, block)
    sliding = paging.sliding_request_blocks(length, window, batch, 1, block)
    chunked = paging.chunked_request_blocks(length, window, batch, 1, block)
    assert chunked <= sliding <= whole + 1
    assert chunked <= whole
    assert sliding <= paging.sliding_request_blocks(length, window, batch, 2, block)
    assert sliding * block >= min(window, length)


def test_a_grid_is_its_points() -> None:
    lengths = np.array([100.0, 5000.0, 200_000.0])
    grid = paging.sliding_request_blocks(lengths, 1024, 8192, 1, 16)
    assert grid.tolist() == [paging.sliding_request_blocks(float(length), 1024, 8192, 1, 16) for length in lengths]
    pools = np.array([1e9, 2e9])
    assert paging.pool_blocks(pools, PER_TOKEN, 16).tolist() == [476.0, 953.0]
