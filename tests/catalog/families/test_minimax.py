"""MiniMax M2 and M3: counts, norms, chosen blocks, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of MiniMaxAI/MiniMax-M2.5 and MiniMax-M3 that matter here.
M2: dict[str, Any] = {
    "model_type": "minimax_m2",
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 3072,
    "intermediate_size": 1536,
    "max_position_embeddings": 196608,
    "mtp_transformer_layers": 1,
    "num_attention_heads": 48,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 62,
    "num_key_value_heads": 8,
    "num_local_experts": 256,
    "num_mtp_modules": 3,
    "qk_norm_type": "per_layer",
    "rotary_dim": 64,
    "scoring_func": "sigmoid",
    "shared_intermediate_size": 0,
    "use_mtp": True,
    "use_qk_norm": True,
    "vocab_size": 200064,
}
M3: dict[str, Any] = {
    "model_type": "minimax_m3",
    "dense_intermediate_size": 12288,
    "first_k_dense_replace": 3,
    "head_dim": 128,
    "hidden_act": "swigluoai",
    "hidden_size": 6144,
    "intermediate_size": 3072,
    "max_position_embeddings": 1048576,
    "moe_intermediate_size": 3072,
    "moe_layer_freq": [0] * 3 + [1] * 57,
    "n_shared_experts": 1,
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 60,
    "num_key_value_heads": 4,
    "num_local_experts": 128,
    "num_mtp_modules": 7,
    "num_nextn_predict_layers": 1,
    "qk_norm_type": "per_head",
    "rotary_dim": 64,
    "shared_intermediate_size": 3072,
    "sparse_attention_config": {
        "sparse_attention_freq": [0] * 3 + [1] * 57,
        "sparse_block_size": 128,
        "sparse_disable_index_value": [0] * 3 + [1] * 57,
        "sparse_index_dim": 128,
        "sparse_num_index_heads": 4,
        "sparse_topk_blocks": 16,
        "use_sparse_attention": True,
    },
    "use_qk_norm": True,
    "vocab_size": 200064,
}
SPARSE = M3["sparse_attention_config"]


def _model(keys: dict[str, Any]) -> Model:
    return model_from_config(keys, "model", "config.json")


def _total(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


def test_counts_are_those_of_transformers():
    assert _total(_model(M2)) == 228_689_748_992
    assert _total(_model(M3)) == 426_174_565_632
    assert _total(_model({"model_type": "minimax_m3_vl", "text_config": M3})) == 426_174_565_632


def test_norms_are_over_all_heads_together_or_over_each():
    sizes = {tensor.name: tensor.dims[-1][1] for tensor in weight_tensors(_model(M2)) if tensor.role == "norm"}
    assert (sizes["q_norm"], sizes["k_norm"]) == (48 * 128, 8 * 128)
    sizes = {tensor.name: tensor.dims[-1][1] for tensor in weight_tensors(_model(M3)) if tensor.role == "norm"}
    assert (sizes["q_norm"], sizes["k_norm"]) == (128, 128)


def test_a_token_of_m2_takes_what_engines_say():
    # vLLM's log of MiniMax M2.5 on 8 ranks: 31,744 B a token on each.
    (cache,) = caches(_model(M2))
    assert 2 * cache.n_layers * cache.elements_per_token / 8 == 31_744


def test_m3_reads_sixteen_blocks_and_every_index_key():
    full, sparse, index = caches(_model(M3))
    assert (full.n_layers, full.read_tokens, full.elements_per_token) == (3, float("inf"), 1024)
    assert (sparse.n_layers, sparse.read_tokens, sparse.n_heads) == (57, 16 * 128, 4)
    assert (index.n_layers, index.read_tokens, index.other_bytes_per_token) == (57, float("inf"), 256)
    # Index keys are whole on every chip, and the heads of the cache are split all the same.
    assert _model(M3).n_kv_heads == 4


def test_sparse_layers_are_found_by_their_names_too():
    keys = {name: value for name, value in M3.items() if name not in {"sparse_attention_config", "moe_layer_freq"}}
    named = {
        **keys,
        "index_block_size": 128,
        "index_head_dim": 128,
        "index_n_heads": 4,
        "index_topk_blocks": 16,
        "layer_types": ["full_attention"] * 3 + ["minimax_m3_sparse"] * 57,
        "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 57,
    }
    assert _model(named).layers == _model(M3).layers


def test_drafting_modules_are_said():
    assert "num_mtp_modules: 3 modules" in _model(M2).left_out[0]
    assert not _model({**M2, "use_mtp": False}).left_out


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"attn_type_list": [0] * 62}, UnsupportedModelError, "attn_type_list"),
        ({"attn_type_list": [2] * 62}, InputError, "attn_type_list"),
        ({"qk_norm_type": "per_head"}, UnsupportedModelError, "qk_norm_type"),
        ({"scoring_func": "softmax"}, UnsupportedModelError, "scoring_func"),
        ({"hidden_act": "gelu"}, UnsupportedModelError, "hidden_act"),
        ({"head_dim": None}, InputError, "head_dim"),
        ({"num_local_experts": None}, InputError, "num_local_experts"),
    ],
)
def test_what_is_not_understood_in_m2_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**M2, **change})


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"attention_output_gate": True}, UnsupportedModelError, "attention_output_gate"),
        ({"moe_intermediate_size": 1536}, InputError, "moe_intermediate_size"),
        ({"moe_layer_freq": None}, InputError, "moe_layer_freq"),
        ({"moe_layer_freq": [2] * 60}, InputError, "moe_layer_freq"),
        ({"sparse_attention_config": None}, InputError, "sparse_attention_config"),
        (
            {"sparse_attention_config": {**SPARSE, "sparse_disable_index_value": [0] * 60}},
            UnsupportedModelError,
            "sparse_disable_index_value",
        ),
        ({"sparse_attention_config": {**SPARSE, "sparse_topk_blocks": None}}, InputError, "sparse_topk_blocks"),
        ({"sparse_attention_config": {**SPARSE, "sparse_attention_freq": None}}, InputError, "sparse_attention_freq"),
    ],
)
def test_what_is_not_understood_in_m3_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**M3, **change})
