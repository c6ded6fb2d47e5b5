"""What layers keep on a chip, and how they share a pool."""

import math

import pytest

from slicewise.errors import InputError
from slicewise.planner.engines import engine_named
from slicewise.planner.paged_layers import CHUNKED, FULL, SLIDING, STATE, paged_layers, paged_pool
from slicewise.spec.latent import latent_attention
from slicewise.spec.mixers import Mixer, attention
from slicewise.spec.model import Layer, Model
from slicewise.spec.recurrences import recurrence
from slicewise.spec.sparse import compressed_attention

VLLM = engine_named("vllm-0.19")
FULL_8 = attention(d_model=64, n_heads=8, n_kv_heads=8, head_dim=16)
SLIDES = attention(d_model=64, n_heads=8, n_kv_heads=8, head_dim=16, window=128)
CHUNKS = attention(d_model=64, n_heads=8, n_kv_heads=8, head_dim=16, window=128, chunked=True)
LATENT = latent_attention(
    d_model=64, n_heads=8, q_lora_rank=16, kv_lora_rank=32, qk_nope_head_dim=8, qk_rope_head_dim=8, value_dim=8,
    index_heads=2, index_head_dim=128, index_tokens=64,
)  # fmt: skip
DELTA = recurrence(
    form="linear", n_heads=8, head_dim=16, state_elements=8 * 16 * 16, conv_elements=3 * 256, matrices=[],
    out=["out_proj", [64, 64], "state_space"],
)  # fmt: skip
COMPRESSED = compressed_attention(
    d_model=64, n_heads=8, head_dim=16, q_lora_rank=16, out_groups=2, out_lora_rank=8, window=32, ratio=4
)


def model(*mixers: Mixer | None) -> Model:
    return Model(name="made up", d_model=64, vocab_size=100, layers=tuple(Layer(mixer=mixer) for mixer in mixers))


def test_heads_are_cut_as_far_as_there_are() -> None:
    for tp, share in ((1, 1), (2, 2), (8, 8), (16, 8)):
        ((layer,),) = paged_layers(model(FULL_8), "bf16", tp)
        assert layer.bytes_per_token == 2 * 8 * 16 * 2 / share
        assert layer.key_bytes_per_token == layer.bytes_per_token / 2
    with pytest.raises(InputError, match="8 KV heads neither divide over tp 3 nor divide it; use tp 1"):
        paged_layers(model(FULL_8), "bf16", 3)
    with pytest.raises(InputError, match="8 state heads neither divide over tp 6 nor divide it; use tp 2"):
        paged_layers(model(DELTA), "bf16", 6)
    with pytest.raises(InputError, match="kv dtype fp7 is not known"):
        paged_layers(model(FULL_8), "fp7", 1)


def test_latents_and_index_keys_are_whole_on_every_rank() -> None:
    for tp in (1, 8):
        ((layer,),) = paged_layers(model(LATENT), "fp8", tp)
        assert (layer.kind, layer.bytes_per_token) == (FULL, 40 + 132)
        assert layer.key_bytes_per_token == 0


def test_kinds() -> None:
    kinds = [
        [part.kind for part in kept] for kept in paged_layers(model(FULL_8, SLIDES, CHUNKS, DELTA, None), "bf16", 1)
    ]
    assert kinds == [[FULL], [SLIDING], [CHUNKED], [STATE], []]
    charged = paged_layers(model(FULL_8, SLIDES, CHUNKS), "bf16", 1, windows=False)
    assert {part for kept in charged for part in kept} == {charged[0][0]}
    ((state,),) = paged_layers(model(DELTA), "bf16", 4)
    assert state.state_bytes == (8 * 16 * 16 * 4 + 3 * 256 * 2) / 4


def test_rows_are_padded_on_tpus() -> None:
    ((layer,),) = paged_layers(model(FULL_8), "fp8", 8, padded=True)
    assert layer.bytes_per_token == 4 * 128  # One head: two rows of 16 become four of 128.


def test_layers_of_one_kind_are_one_group_whatever_their_widths() -> None:
    wide = attention(d_model=64, n_heads=8, n_kv_heads=8, head_dim=32)
    pool = paged_pool(paged_layers(model(FULL_8, wide, FULL_8), "bf16", 1), [range(2), range(2, 3)], VLLM, 16)
    assert pool is not None
    assert pool.n_groups == 1
    assert pool.block_bytes == (16 * (512 + 1024), 16 * 512)
    assert pool.request_blocks(1000, 8192, VLLM) == 63


def test_pages_are_made_alike_by_longer_blocks() -> None:
    narrow = attention(d_model=64, n_heads=8, n_kv_heads=4, head_dim=16)
    pool = paged_pool(paged_layers(model(SLIDES, SLIDES, SLIDES, narrow), "bf16", 1), [range(4)], VLLM, 16)
    assert pool is not None
    assert [(kind.layer.kind, kind.groups, kind.block_tokens) for kind in pool.kinds] == [
        (SLIDING, 3, 16),
        (FULL, 1, 32),
    ]
    assert pool.block_bytes == (16 * 512,)
    assert pool.request_blocks(1024, 64, VLLM) == 3 * (math.ceil((127 + 64) / 16) + 1) + 32


def test_pages_that_do_not_go_into_the_widest_are_padded() -> None:
    odd = attention(d_model=64, n_heads=8, n_kv_heads=8, head_dim=12)
    pool = paged_pool(paged_layers(model(SLIDES, odd), "bf16", 1), [range(2)], VLLM, 16)
    assert pool is not None
    assert [kind.block_tokens for kind in pool.kinds] == [16, 16]
    assert pool.block_bytes == (16 * 512,)


def test_states_lengthen_the_block_of_attention() -> None:
    pool = paged_pool(paged_layers(model(DELTA, DELTA, DELTA, FULL_8), "bf16", 1), [range(4)], VLLM, 16)
    assert pool is not None
    state = 8 * 16 * 16 * 4 + 3 * 256 * 2  # 9,728 B; a token of attention takes 512.
    assert [kind.block_tokens for kind in pool.kinds] == [32, 32]
    assert pool.block_bytes == (32 * 512,)
    assert 32 * 512 >= state > 16 * 512
    assert pool.request_blocks(1000, 8192, VLLM) == 3 + math.ceil(1000 / 32)
    assert pool.request_blocks(1000, 8192, engine_named("vllm")) == 3 * 2 + math.ceil(1000 / 32)


def test_states_alone_take_a_block_each() -> None:
    pool = paged_pool(paged_layers(model(DELTA, DELTA), "bf16", 1), [range(2)], VLLM, 16)
    assert pool is not None
    assert pool.block_bytes == (2 * (8 * 16 * 16 * 4 + 3 * 256 * 2),)
    assert pool.request_blocks(10**6, 8192, VLLM) == 1


def test_groups_deal_layers_out_in_turn() -> None:
    """Stages of 1 + 3 layers twice: each stage has one layer of each group, so blocks are not padded."""
    layers = paged_layers(model(FULL_8, SLIDES, SLIDES, SLIDES, FULL_8, SLIDES, SLIDES, SLIDES), "bf16", 1)
    pool = paged_pool(layers, [range(4), range(4, 8)], VLLM, 16)
    assert pool is not None
    assert (pool.group_layers, pool.n_groups) == (2, 4)
    assert pool.block_bytes == (16 * 512, 16 * 512)
    assert pool.padding == ((0, 0.0), (0, 0.0))


def test_entries_for_several_tokens_are_not_described() -> None:
    assert paged_pool(paged_layers(model(COMPRESSED, SLIDES), "bf16", 1), [range(2)], VLLM, 64) is None
