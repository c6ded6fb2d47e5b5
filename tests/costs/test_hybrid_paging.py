"""Groups of layers that share a pool: what vLLM logged of models with windows and with recurrent states."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.costs import hybrid_paging, paging
from slicewise.units import GIB


def test_groups_of_gemma_3_1b() -> None:
    # 22 sliding and 4 full layers: "Add 2 padding layers, may waste at most 9.09% KV cache memory".
    size = hybrid_paging.group_layers((4, 22), 1.5)
    assert size == 4
    assert hybrid_paging.groups_of_kind(4, size) == 1
    groups = hybrid_paging.groups_of_kind(22, size)
    assert groups == 6
    padding = hybrid_paging.padding_layers(22, groups, size)
    assert padding == 2
    assert f"{hybrid_paging.padding_share(padding, 22):.2%}" == "9.09%"


def test_kinds_of_nearly_as_many_layers_make_a_group_each() -> None:
    # gpt-oss-20b with a draft layer: 13 and 12 layers are two groups of 13. vllm-project/vllm#29303
    assert hybrid_paging.group_layers((12, 13), 1.25) == 13
    assert hybrid_paging.group_layers((12, 17), 1.25) == 12
    assert hybrid_paging.group_layers((12, 17), 1.5) == 17
    assert hybrid_paging.group_layers((10, 50), 1.5) == 10


def test_requests_of_gemma_3_1b() -> None:
    # 25.39 GiB of blocks of 64 KiB; 128 blocks of full attention and 6 * 129 in windows.
    page = 16 * 256 * 2 * 2
    blocks = hybrid_paging.paged_blocks(416_007 * 4 * page, page, 4)
    assert blocks == 416_007
    assert blocks * 4 * page / GIB == pytest.approx(25.39, abs=0.005)
    needed = hybrid_paging.grouped_request_blocks((1, 6), (128, 129))
    assert needed == 902
    assert round(paging.max_concurrency(blocks, needed), 2) == 461.21
    assert hybrid_paging.grouped_pool_tokens(blocks, 7, 16) == 950_864


@pytest.mark.parametrize(
    ("blocks", "length", "concurrency"), [(26_853, 8192, 9.52), (28_569, 8192, 10.13), (28_569, 10_000, 8.93)]
)
def test_requests_of_gemma_4_31b(blocks: int, length: int, concurrency: float) -> None:
    # 50 sliding layers of 16 heads * 256, 10 full ones of 4 * 512, whose page of half the bytes takes 32 tokens.
    sliding = paging.sliding_request_blocks(length, 1024, 8192, 1, 16)
    needed = hybrid_paging.grouped_request_blocks((5, 1), (sliding, paging.request_blocks(length, 32)))
    assert round(paging.max_concurrency(blocks, needed), 2) == concurrency


STATES = {
    # elements of the state, channels of the convolution, bytes of a state's element, bytes of a token in attention
    "Qwen3.5-35B": (32 * 128 * 128, 8192, 4.0, 2 * 2 * 256 * 2, 1056),
    "Qwen3-Coder-Next": (32 * 128 * 128, 8192, 2.0, 2 * 2 * 256 * 2, 544),
    "Qwen3.5-122B tp 2": (32 * 128 * 128, 12_288 // 2, 4.0, 2 * 1 * 256 * 2, 2096),
    "Qwen3.5-397B tp 4": (16 * 128 * 128, 12_288 // 4, 4.0, 2 * 1 * 256 * 2, 1056),
    "Nemotron-3-Nano fp8": (64 * 64 * 128, 4096 + 2 * 8 * 128, 4.0, 2 * 2 * 128 * 1, 4176),
    "Qwen3.5-27B": (48 * 128 * 128, 10_240, 4.0, 2 * 4 * 256 * 2, 784),
    "Qwen3.6-35B fp8": (32 * 128 * 128, 8192, 4.0, 2 * 2 * 256 * 1, 2096),
}


@pytest.mark.parametrize("model", STATES)
def test_attention_blocks_hold_a_state(model: str) -> None:
    state, channels, width, per_token, block = STATES[model]
    page = hybrid_paging.state_page_bytes(state, width, channels, 4, 0, 2.0)
    assert hybrid_paging.attention_block_tokens(page, per_token, 16) == block


@pytest.mark.parametrize(
    ("model", "printed"), [("Qwen3.5-35B", "0.76%"), ("Qwen3.5-27B", "0.13%"), ("Qwen3.6-35B fp8", "0.00%")]
)
def test_states_are_padded_to_the_page(model: str, printed: str) -> None:
    # "Padding mamba page size by 0.76%", and by 0.13%; of Qwen3.6-35B in fp8 the line is missing.
    state, channels, width, per_token, block = STATES[model]
    page = hybrid_paging.state_page_bytes(state, width, channels, 4, 0, 2.0)
    assert f"{hybrid_paging.state_padding_share(block, per_token, page):.2%}" == printed


@pytest.mark.parametrize(
    ("blocks", "block", "state_groups", "length", "concurrency"),
    [
        (4464, 1056, 3, 10_240, 343.38),
        (4464, 1056, 3, 8192, 405.82),
        (3958, 544, 3, 10_240, 179.91),
        (3958, 544, 3, 8192, 208.32),
        (2616, 2096, 3, 10_240, 327.0),
        (2616, 2096, 3, 8192, 373.71),
        (1771, 1056, 3, 10_240, 136.23),
        (1771, 1056, 3, 8192, 161.0),
        (7794, 4176, 4, 10_240, 1113.43),
        (7794, 4176, 4, 8192, 1299.0),
        (1487, 784, 3, 32_768, 33.04),  # Qwen3.5-27B: vllm-project/vllm#40691
    ],
)
def test_requests_beside_states(blocks: int, block: int, state_groups: int, length: int, concurrency: float) -> None:
    states = hybrid_paging.state_request_blocks(1, 0)
    needed = hybrid_paging.grouped_request_blocks((state_groups, 1), (states, paging.request_blocks(length, block)))
    assert round(paging.max_concurrency(blocks, needed), 2) == concurrency


def test_tokens_by_groups_and_by_concurrency() -> None:
    # The same pool of Qwen3.5-27B: 290,864 tokens before version 0.20, 33.04 * 32,768 since. vllm-project/vllm#40691
    assert hybrid_paging.grouped_pool_tokens(1487, 4, 784) == 290_864
    assert hybrid_paging.equivalent_pool_tokens(1487 / 45, 32_768) == math.floor(1487 / 45 * 32_768)


def test_cached_prefixes_keep_two_states() -> None:
    # Qwen3.6-35B, fp8, 131,072 tokens, 6.01 GiB: 569,878 tokens, 4.35x. https://github.com/noonghunna/club-3090/issues/652
    page = hybrid_paging.state_page_bytes(32 * 128 * 128, 4.0, 8192, 4, 0, 2.0)
    blocks = hybrid_paging.paged_blocks(6.01 * GIB, page, 10)
    states = hybrid_paging.state_request_blocks(2, 0)
    needed = hybrid_paging.grouped_request_blocks((3, 1), (states, paging.request_blocks(131_072, 2096)))
    concurrency = paging.max_concurrency(blocks, needed)
    assert round(concurrency, 2) == 4.35
    assert hybrid_paging.equivalent_pool_tokens(concurrency, 131_072) == 569_878


def test_drafts_widen_the_convolution_and_keep_states() -> None:
    # Qwen3.6-27B, tp 2, fp8, 11.05 GiB: 623,873 tokens, 2.38x at 262,144. Three draft tokens and their attention layer
    # explain every digit, though the log does not name them. https://github.com/noonghunna/club-3090/issues/642
    per_token = 2 * 2 * 256
    page = hybrid_paging.state_page_bytes(24 * 128 * 128, 4.0, 5120, 4, 3, 2.0)
    block = hybrid_paging.attention_block_tokens(page, per_token, 16)
    assert block == 1600
    size = hybrid_paging.group_layers((17, 48), 1.5)
    assert size == 17
    blocks = hybrid_paging.paged_blocks(426 * size * block * per_token, block * per_token, size)
    assert blocks * size * block * per_token / GIB == pytest.approx(11.05, abs=0.005)
    states = hybrid_paging.state_request_blocks(2, 3)
    groups = hybrid_paging.groups_of_kind(48, size)
    needed = hybrid_paging.grouped_request_blocks((groups, 1), (states, paging.request_blocks(262_144, block)))
    concurrency = paging.max_concurrency(blocks, needed)
    assert round(concurrency, 2) == 2.38
    assert hybrid_paging.equivalent_pool_tokens(concurrency, 262_144) == 623_873


KINDS = st.lists(st.integers(1, 100), min_size=2, max_size=4).map(tuple)


@given(KINDS, st.sampled_from([1.0, 1.25, 1.5]))
def test_groups_hold_every_layer(kinds: tuple[int, ...], tolerance: float) -> None:
    size = hybrid_paging.group_layers(kinds, tolerance)
    assert min(kinds) <= size <= max(kinds)
    for layers in kinds:
        groups = hybrid_paging.groups_of_kind(layers, size)
        padding = hybrid_paging.padding_layers(layers, groups, size)
        assert 0 <= padding < size
        assert groups * size == layers + padding


@given(st.integers(1, 10**7), st.integers(1, 10**5), st.sampled_from([16, 32, 64]))
def test_an_attention_page_holds_a_state_and_no_shorter_one_does(state: int, per_token: int, multiple: int) -> None:
    block = hybrid_paging.attention_block_tokens(state, per_token, multiple)
    assert block % multiple == 0
    assert block * per_token >= state > (block - multiple) * per_token
    assert hybrid_paging.state_padding_share(block, per_token, state) >= 0


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(1, 10**6))
def test_equivalent_tokens_serve_the_concurrency(blocks: int, needed: int, length: int) -> None:
    tokens = hybrid_paging.equivalent_pool_tokens(blocks / needed, length)
    assert tokens <= blocks / needed * length < tokens + 1
