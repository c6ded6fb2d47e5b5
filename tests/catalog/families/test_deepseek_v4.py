"""DeepSeek V4: counts, windows and compressed entries held to what engines print, and what is refused."""

import math
from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.arrays import Cache
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of deepseek-ai/DeepSeek-V4-Flash that matter here, and how DeepSeek-V4-Pro differs.
FLASH: dict[str, Any] = {
    "model_type": "deepseek_v4",
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
    "expert_dtype": "fp4",
    "hc_mult": 4,
    "head_dim": 512,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 512,
    "max_position_embeddings": 1048576,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 64,
    "num_experts_per_tok": 6,
    "num_hash_layers": 3,
    "num_hidden_layers": 43,
    "num_key_value_heads": 1,
    "num_nextn_predict_layers": 1,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "q_lora_rank": 1024,
    "qk_rope_head_dim": 64,
    "scoring_func": "sqrtsoftplus",
    "sliding_window": 128,
    "vocab_size": 129280,
}
PRO = {
    **FLASH,
    "compress_ratios": [128, 128, *[4, 128] * 29, 4, 0],
    "hidden_size": 7168,
    "index_topk": 1024,
    "moe_intermediate_size": 3072,
    "n_routed_experts": 384,
    "num_attention_heads": 128,
    "num_hidden_layers": 61,
    "o_groups": 16,
    "q_lora_rank": 1536,
}
WORDS = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
FP8_ENTRY_BYTES = 584
"""vLLM's fp8 entry of 512: 448 in fp8, 64 in 16 bits, and 8 B of scales. [B]"""
PAGE_MULTIPLE = 576
"""vLLM rounds a layer's page up to this. [B]"""


def _model(keys: dict[str, Any]) -> Model:
    return model_from_config(keys, "model", "config.json")


def _total(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


def _pages(per_layer: float, n_layers: int) -> float:
    return n_layers * math.ceil(per_layer / PAGE_MULTIPLE) * PAGE_MULTIPLE


def _by_kind(model: Model) -> dict[str, Cache]:
    names = {"window": "window", "index keys": "index"}
    return {
        names.get(cache.name) or ("chosen" if cache.read_tokens < math.inf else "all"): cache for cache in caches(model)
    }


@pytest.mark.parametrize(
    ("keys", "n_params"), [(FLASH, 284_332_230_231), (PRO, 1_572_997_179_491)], ids=["flash", "pro"]
)
def test_counts_are_those_of_transformers(keys, n_params):
    assert _total(_model(keys)) == n_params
    assert _total(_model({**keys, "model_type": "deepseek_ref"})) == n_params


def test_layers_keep_windows_entries_and_index_keys():
    kinds = _by_kind(_model(FLASH))
    assert {name: cache.n_layers for name, cache in kinds.items()} == {
        "window": 43, "chosen": 21, "index": 21, "all": 20,
    }  # fmt: skip
    assert (kinds["window"].elements_per_token, kinds["window"].window) == (512, 128)
    assert (kinds["chosen"].elements_per_token, kinds["chosen"].read_tokens) == (512 / 4, 512 * 4)
    assert (kinds["all"].elements_per_token, kinds["all"].read_tokens) == (512 / 128, math.inf)
    assert kinds["index"].other_bytes_per_token == 132 / 4
    assert {cache.n_heads for cache in kinds.values()} == {1}


def test_a_sequence_of_a_million_tokens_takes_what_vllm_says():
    # vLLM's article on DeepSeek V4: 9.62 GiB a sequence of 1,048,576 tokens in bf16, its index keys in bf16 too.
    kinds = _by_kind(_model(PRO))
    tokens = 1048576
    entries = sum(kinds[name].n_layers * kinds[name].elements_per_token * tokens for name in ("chosen", "all"))
    windows = kinds["window"].n_layers * kinds["window"].elements_per_token * kinds["window"].window
    index = kinds["index"].n_layers * 128 / 4 * tokens
    assert round(2 * (entries + windows + index) / 1024**3, 2) == 9.62


def test_pages_of_256_tokens_are_those_of_vllm():
    # https://github.com/vllm-project/vllm/issues/54703: pages of 1,002,240 B for 62 caches, 823,680 and 786,240 B for
    # windows of 64 tokens, 870,912 B for 4 tokens of 42 compressor states and 656,640 B for 8 tokens of 20.
    kinds = _by_kind(_model(FLASH))
    a_token = FP8_ENTRY_BYTES / 512
    compressed = sum(
        _pages(kinds[name].elements_per_token * a_token * 256, kinds[name].n_layers) for name in ("chosen", "all")
    )
    index = _pages(kinds["index"].other_bytes_per_token * 256, kinds["index"].n_layers)
    assert compressed + index == 1_002_240
    window = kinds["window"].elements_per_token * a_token * 64
    assert (_pages(window, 22), _pages(window, 21)) == (823_680, 786_240)
    assert kinds["window"].n_layers == 22 + 21
    # Entries of 4 tokens overlap, so that 8 tokens are held; entries of 128 do not.
    overlapping = sum(_pages(kinds[name].state_bytes / 8 * 4, 21) for name in ("chosen", "index"))
    assert (overlapping, _pages(kinds["all"].state_bytes / 128 * 8, 20)) == (870_912, 656_640)


def test_words_for_layers_mean_the_ratios():
    keys = {name: value for name, value in FLASH.items() if name != "compress_ratios"}
    named = {**keys, "layer_types": [WORDS[ratio] for ratio in FLASH["compress_ratios"][:43]]}
    assert _total(_model(named)) == _total(_model(FLASH))
    rates = {WORDS[4]: 8, WORDS[128]: 64}
    # One weight a place in the window, twice as wide where windows overlap: 8 places for 4, and 64 for 128.
    other = 21 * 4 * (2 * 512 + 2 * 128) - 20 * 64 * 512
    assert _total(_model({**named, "compress_rates": rates})) == _total(_model(FLASH)) + other


def test_a_drafting_layer_is_said():
    (said,) = _model(FLASH).left_out
    assert "num_nextn_predict_layers: 1 layer" in said


def test_places_are_those_of_the_checkpoint():
    places = {tensor.module for tensor in weight_tensors(_model(FLASH))}
    assert {
        "attn.wq_a",
        "attn.wo_b",
        "attn.compressor.wkv",
        "attn.indexer.compressor.wgate",
        "attn.indexer.wq_b",
    } <= places
    assert {"ffn.gate", "ffn.experts.{expert}.w1", "ffn.shared_experts.w2"} <= places


def test_prices_of_a_read_token_follow_the_ratio():
    kinds = _by_kind(_model(FLASH))
    whole = 2 * 64 * (512 + 512)
    assert kinds["window"].decode_flops_per_token == whole
    assert kinds["chosen"].decode_flops_per_token == whole / 4
    assert kinds["all"].decode_flops_per_token == whole / 128
    assert kinds["index"].decode_flops_per_token == 2 * 64 * 128 / 4


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"compress_ratios": [0] * 42}, InputError, "compress_ratios"),
        ({"compress_ratios": [8] * 43}, UnsupportedModelError, "compress_ratios"),
        ({"compress_ratios": None}, InputError, "compress_ratios"),
        ({"num_key_value_heads": 2}, UnsupportedModelError, "num_key_value_heads"),
        ({"kv_lora_rank": 512}, UnsupportedModelError, "kv_lora_rank"),
        ({"attention_bias": True}, UnsupportedModelError, "attention_bias"),
        ({"o_groups": 7}, InputError, "o_groups"),
        ({"scoring_func": "cosine"}, UnsupportedModelError, "scoring_func"),
        ({"layer_types": ["full_attention"] * 43}, UnsupportedModelError, "layer_types"),
        ({"mlp_layer_types": ["dense"] * 43}, UnsupportedModelError, "mlp_layer_types"),
        ({"hc_mult": None}, InputError, "hc_mult"),
        ({"sliding_window": None}, InputError, "sliding_window"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**FLASH, **change})
