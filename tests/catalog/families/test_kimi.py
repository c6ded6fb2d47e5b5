"""Kimi K2.5, Kimi Linear and Kimi K3: counts, towers, states, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of moonshotai/Kimi-K2.5, Kimi-Linear-48B-A3B-Instruct and Kimi-K3 that matter here.
K25: dict[str, Any] = {
    "model_type": "kimi_k25",
    "text_config": {
        "model_type": "kimi_k2",
        "first_k_dense_replace": 1,
        "hidden_act": "silu",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "kv_lora_rank": 512,
        "max_position_embeddings": 262144,
        "moe_intermediate_size": 2048,
        "moe_layer_freq": 1,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_attention_heads": 64,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 61,
        "num_key_value_heads": 64,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "scoring_func": "sigmoid",
        "v_head_dim": 128,
        "vocab_size": 163840,
    },
    "tie_word_embeddings": False,
    "vision_config": {
        "init_pos_emb_height": 64,
        "init_pos_emb_time": 4,
        "init_pos_emb_width": 64,
        "merge_kernel_size": [2, 2],
        "merge_type": "sd2_tpool",
        "mm_hidden_size": 1152,
        "mm_projector_type": "patchmerger",
        "patch_size": 14,
        "pos_emb_type": "divided_fixed",
        "projector_hidden_act": "gelu",
        "text_hidden_size": 7168,
        "video_attn_type": "spatial_temporal",
        "vt_hidden_size": 1152,
        "vt_intermediate_size": 4304,
        "vt_num_attention_heads": 16,
        "vt_num_hidden_layers": 27,
    },
}
LINEAR: dict[str, Any] = {
    "model_type": "kimi_linear",
    "first_k_dense_replace": 1,
    "head_dim": 72,
    "hidden_act": "silu",
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "kv_lora_rank": 512,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "head_dim": 128,
        "kda_layers": [number for number in range(1, 27) if number % 4],
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
    "mla_use_nope": True,
    "model_max_length": 1048576,
    "moe_intermediate_size": 1024,
    "moe_layer_freq": 1,
    "moe_router_activation_func": "sigmoid",
    "num_attention_heads": 32,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_hidden_layers": 27,
    "num_key_value_heads": 32,
    "num_shared_experts": 1,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 163840,
}
K3_TEXT = {
    **LINEAR,
    "activation_situ_beta": 4.0,
    "attn_res_block_size": 12,
    "hidden_act": "situ",
    "hidden_size": 7168,
    "intermediate_size": 33792,
    "latent_moe_use_norm": True,
    "linear_attn_config": {
        "full_attn_layers": [*range(4, 93, 4), 93],
        "gate_lower_bound": -5.0,
        "head_dim": 128,
        "kda_layers": [number for number in range(1, 93) if number % 4],
        "num_heads": 96,
        "short_conv_kernel_size": 4,
        "use_full_rank_gate": True,
    },
    "mla_use_output_gate": True,
    "moe_intermediate_size": 3072,
    "num_attention_heads": 96,
    "num_experts": 896,
    "num_experts_per_token": 16,
    "num_hidden_layers": 93,
    "num_key_value_heads": 96,
    "num_shared_experts": 2,
    "q_lora_rank": 1536,
    "routed_expert_hidden_size": 3584,
}
K3 = {"model_type": "kimi_k3", "text_config": K3_TEXT, "vision_config": {"vt_hidden_size": 1024}}


def _model(keys: dict[str, Any]) -> Model:
    return model_from_config(keys, "model", "config.json")


def _total(model: Model, *roles: str) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored and tensor.role not in roles)


def test_a_tower_is_counted_and_its_projector_is_the_language_models():
    model = _model(K25)
    assert _total(model) == 1_026_879_353_328
    assert _total(model, "tower") == 1_026_462_487_296
    assert model.max_context_tokens == 262144


def test_a_linear_model_is_counted_as_transformers_does():
    assert _total(_model(LINEAR)) == 49_122_675_072


def test_k3_is_as_large_as_its_checkpoint():
    # Its parts as https://github.com/FareedKhan-dev/kimi-k3-in-c reads the checkpoint: 2.78T parameters; 1.45 TB of
    # routed experts in MXFP4, of 32 to a scale; 108.81 GB of other layers in 16 bits; 4.70 GB outside the layers.
    tensors = [tensor for tensor in weight_tensors(_model(K3)) if tensor.stored]
    routed = sum(tensor.size for tensor in tensors if tensor.role == "experts")
    trunk = sum(tensor.size for tensor in tensors if tensor.layers and tensor.role != "experts")
    outside = sum(tensor.size for tensor in tensors if not tensor.layers)
    # The checkpoint has convolutions and biases of the decay in 32 bits.
    wide = sum(tensor.size for tensor in tensors if "conv1d" in tensor.name or tensor.name == "dt_bias")
    assert round((routed + trunk + outside) / 10**12, 2) == 2.78
    assert round(routed * (1 / 2 + 1 / 32) / 10**12, 2) == 1.45
    assert round((2 * trunk + 2 * wide) / 10**9, 2) == 108.81
    assert round(2 * outside / 10**9, 2) == 4.70


def test_delta_attention_keeps_a_state_in_32_bits_and_latent_attention_its_latents():
    state, latent = caches(_model(LINEAR))
    assert (state.n_layers, state.n_heads) == (20, 32)
    assert state.state_bytes == 32 * 128 * 128 * 4 + 3 * 32 * 128 * 3 * 2
    assert (latent.n_layers, latent.elements_per_token, latent.state_bytes) == (7, 576, 0)


def test_k3_says_what_is_not_counted():
    assert _model(K3).left_out == ("vision_config: the vision tower is not counted.",)
    assert _model(K3).layers_by_kind == {"linear + dense": 1, "linear + experts": 68, "latent + experts": 24}


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"hidden_act": "gelu"}, UnsupportedModelError, "hidden_act"),
        ({"linear_attn_config": None}, InputError, "linear_attn_config"),
        ({"linear_attn_config": {**LINEAR["linear_attn_config"], "kda_layers": [1, 2]}}, InputError, "kda_layers"),
        ({"linear_attn_config": {**LINEAR["linear_attn_config"], "num_heads": None}}, InputError, "num_heads"),
        ({"moe_layer_freq": 2}, UnsupportedModelError, "moe_layer_freq"),
        ({"num_nextn_predict_layers": 2}, UnsupportedModelError, "num_nextn_predict_layers"),
        ({"num_shared_experts": None}, InputError, "num_shared_experts"),
        ({"num_experts_per_token": 512}, InputError, "num_experts_per_token"),
    ],
)
def test_what_is_not_understood_in_a_linear_model_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**LINEAR, **change})


@pytest.mark.parametrize(
    "key", ["attn_res_block_size", "latent_moe_use_norm", "mla_use_output_gate", "routed_expert_hidden_size"]
)
def test_what_k3_adds_must_be_given(key):
    with pytest.raises(InputError, match=f"{key} is missing"):
        _model({**K3, "text_config": {name: value for name, value in K3_TEXT.items() if name != key}})


def test_the_rank_of_k3s_gates_must_be_given():
    linear = {name: value for name, value in K3_TEXT["linear_attn_config"].items() if name != "use_full_rank_gate"}
    with pytest.raises(InputError, match="use_full_rank_gate is missing"):
        _model({**K3, "text_config": {**K3_TEXT, "linear_attn_config": linear}})


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"text_config": None}, InputError, "text_config"),
        ({"vision_config": None}, InputError, "vision_config"),
        ({"vision_config": {**K25["vision_config"], "merge_kernel_size": None}}, InputError, "merge_kernel_size"),
        (
            {"vision_config": {**K25["vision_config"], "mm_projector_type": "mlp"}},
            UnsupportedModelError,
            "mm_projector",
        ),
        ({"vision_config": {**K25["vision_config"], "text_hidden_size": 4096}}, InputError, "text_hidden_size"),
        ({"vision_config": {**K25["vision_config"], "pos_emb_type": "learned"}}, UnsupportedModelError, "pos_emb_type"),
    ],
)
def test_what_is_not_understood_in_a_seeing_model_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**K25, **change})
