"""DeepSeek V2 to V3.2, Kimi K2 and GLM 5: counts, latents and index keys, drafting layers, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of deepseek-ai/DeepSeek-V3 that matter here; the others differ from it as said.
V3: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "attention_bias": False,
    "first_k_dense_replace": 3,
    "hidden_act": "silu",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_group": 8,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "v_head_dim": 128,
    "vocab_size": 129280,
}
INDEX = {"index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048}
V32 = {**V3, **INDEX, "model_type": "deepseek_v32"}
V2_LITE = {
    **V3,
    "model_type": "deepseek_v2",
    "first_k_dense_replace": 1,
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_group": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_attention_heads": 16,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 27,
    "num_key_value_heads": 16,
    "num_nextn_predict_layers": 0,
    "q_lora_rank": None,
    "scoring_func": "softmax",
    "topk_method": "greedy",
    "vocab_size": 102400,
}
V2 = {
    **V2_LITE,
    "hidden_size": 5120,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "n_group": 8,
    "n_routed_experts": 160,
    "num_attention_heads": 128,
    "num_hidden_layers": 60,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "topk_method": "group_limited_greedy",
}
K2 = {
    **V3,
    "model_type": "kimi_k2",
    "first_k_dense_replace": 1,
    "n_group": 1,
    "n_routed_experts": 384,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "num_nextn_predict_layers": 0,
    "vocab_size": 163840,
}
GLM_5 = {
    **V32,
    "model_type": "glm_moe_dsa",
    "head_dim": 64,
    "hidden_size": 6144,
    "index_n_heads": 32,
    "intermediate_size": 12288,
    "max_position_embeddings": 202752,
    "num_attention_heads": 64,
    "num_hidden_layers": 78,
    "num_key_value_heads": 64,
    "q_lora_rank": 2048,
    "qk_head_dim": 256,
    "qk_nope_head_dim": 192,
    "v_head_dim": 256,
    "vocab_size": 154880,
}
# Layers 0 to 2 have an indexer, and from there on every fourth one: 6, 10, 14 ...
GLM_52 = {**GLM_5, "indexer_types": ["full"] * 3 + (["shared"] * 3 + ["full"]) * 18 + ["shared"] * 3}
GLM_52_BY_RULE = {**GLM_5, "index_topk_freq": 4, "index_skip_topk_offset": 3}


def _model(keys: dict[str, Any]) -> Model:
    return model_from_config(keys, "model", "config.json")


def _total(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


def _bytes_per_token(model: Model) -> float:
    return sum(cache.n_layers * (cache.elements_per_token * 2 + cache.other_bytes_per_token) for cache in caches(model))


@pytest.mark.parametrize(
    ("keys", "n_params"),
    [
        (V2_LITE, 15_706_484_224),
        # 235.7e9 of the paper's 236e9; with transformers 5.24 on the meta device, like all.
        (V2, 235_741_434_880),
        (V3, 671_026_404_352),
        (V32, 671_877_929_216),
        (K2, 1_026_408_209_408),
        (GLM_5, 743_911_199_232),
        (GLM_52, 743_377_000_704),
    ],
    ids=["v2-lite", "v2", "v3", "v3.2", "kimi-k2", "glm-5", "glm-5.2"],
)
def test_counts_are_those_of_transformers(keys, n_params):
    assert _total(_model(keys)) == n_params


@pytest.mark.parametrize(
    ("keys", "n_bytes"),
    [
        (V2_LITE, 27 * 1152),
        (V3, 70_272),  # vLLM's logs: 70,267 to 70,275
        (V32, 78_324),  # vLLM's logs: 78,321 to 78,337
        (GLM_5, 100_152),  # vLLM's logs: 100,170
        (GLM_52, 78 * 1152 + 21 * 132),
    ],
    ids=["v2-lite", "v3", "v3.2", "glm-5", "glm-5.2"],
)
def test_a_latent_and_an_index_key_are_kept_of_each_token(keys, n_bytes):
    assert _bytes_per_token(_model(keys)) == n_bytes


def test_an_indexer_lets_few_latents_be_read_and_reads_every_key():
    latent, index = caches(_model(V32))
    assert (latent.read_tokens, latent.n_heads, latent.n_layers) == (2048, 1, 61)
    assert (index.read_tokens, index.n_heads, index.other_bytes_per_token) == (float("inf"), 1, 132)


def test_layers_that_share_a_choice_keep_no_index_keys_and_read_few_latents_too():
    latent, index = caches(_model(GLM_52))
    assert (latent.n_layers, latent.read_tokens) == (78, 2048)
    assert index.layers == (0, 1, 2, *range(6, 78, 4))


@pytest.mark.parametrize("keys", [GLM_52_BY_RULE, {**GLM_5, "index_topk_pattern": "FFF" + "SSSF" * 18 + "SSS"}])
def test_indexers_are_found_by_a_rule_or_a_pattern_too(keys):
    assert _model(keys).layers_by_kind == _model(GLM_52).layers_by_kind
    assert [cache.layers for cache in caches(_model(keys))] == [cache.layers for cache in caches(_model(GLM_52))]


def test_the_drafting_layer_is_said_with_its_size():
    # A layer of experts, the matrix that joins two states, and three norms.
    attention = 7168 * 1536 + 1536 + 1536 * 24576 + 7168 * 576 + 512 + 512 * 32768 + 16384 * 7168
    layer = attention + 257 * 3 * 7168 * 2048 + 256 * 7168 + 2 * 7168
    (said,) = _model(V3).left_out
    assert f"{layer + 2 * 7168 * 7168 + 3 * 7168:,}" in said
    assert "num_nextn_predict_layers: 1 layer" in said
    assert not _model(K2).left_out


def test_biases_of_the_attention_are_counted():
    more = 60 * (1536 + 576 + 5120)
    assert _total(_model({**V2, "attention_bias": True})) == _total(_model(V2)) + more


def test_a_token_uses_the_published_share_of_the_experts():
    # 37e9 of the paper, which leaves the input embedding out.
    active = sum(tensor.active_size for tensor in weight_tensors(_model(V3))) - 129280 * 7168
    assert active == pytest.approx(37e9, rel=0.02)


def test_places_are_those_of_the_checkpoint():
    places = {tensor.module for tensor in weight_tensors(_model(V32))}
    assert {
        "self_attn.q_a_proj",
        "self_attn.kv_a_proj_with_mqa",
        "self_attn.indexer.weights_proj",
        "mlp.experts.{expert}.gate_proj",
        "mlp.shared_experts.down_proj",
        "mlp.gate",
    } <= places


@pytest.mark.parametrize(
    "key",
    [
        "q_lora_rank",
        "kv_lora_rank",
        "qk_rope_head_dim",
        "v_head_dim",
        "first_k_dense_replace",
        "n_routed_experts",
        "n_shared_experts",
        "num_experts_per_tok",
        "intermediate_size",
        "index_topk",
    ],
)
def test_a_missing_size_is_refused_by_name(key):
    with pytest.raises(InputError, match=f"{key} is missing"):
        _model({name: value for name, value in V32.items() if name != key})


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"hidden_act": "gelu"}, UnsupportedModelError),
        ({"scoring_func": "cosine"}, UnsupportedModelError),
        ({"moe_layer_freq": 2}, UnsupportedModelError),
        ({"mlp_bias": True}, UnsupportedModelError),
        ({"qk_head_dim": 200}, InputError),
        ({"num_experts_per_tok": 300}, InputError),
        ({"q_lora_rank": None}, InputError),
        ({"indexer_types": ["full"] * 77 + ["none"]}, UnsupportedModelError),
        ({"indexer_types": ["shared"] * 78}, InputError),
        ({"index_topk_pattern": "FS"}, InputError),
        ({"mlp_layer_types": ["dense"] * 77 + ["hash"]}, UnsupportedModelError),
        ({"layer_types": ["full_attention"] * 78}, UnsupportedModelError),
    ],
)
def test_what_is_not_understood_is_refused_by_name(change, kind):
    (key,) = change
    with pytest.raises(kind, match="indexer_types" if key == "indexer_types" else key):
        _model({**GLM_5, **change})
