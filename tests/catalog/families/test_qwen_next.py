"""Qwen 3 Next, 3.5 and 3.6: counts, states held to what engines print, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.arrays import Cache
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of Qwen/Qwen3-Next-80B-A3B-Instruct, Qwen3.5-27B and Qwen3.5-35B-A3B that matter here.
NEXT: dict[str, Any] = {
    "model_type": "qwen3_next",
    "decoder_sparse_step": 1,
    "full_attention_interval": 4,
    "head_dim": 256,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "max_position_embeddings": 262144,
    "mlp_only_layers": [],
    "moe_intermediate_size": 512,
    "num_attention_heads": 16,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "num_hidden_layers": 48,
    "num_key_value_heads": 2,
    "partial_rotary_factor": 0.25,
    "shared_expert_intermediate_size": 512,
    "torch_dtype": "bfloat16",
    "vocab_size": 151936,
}
VISION = {
    "deepstack_visual_indexes": [],
    "depth": 27,
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "in_channels": 3,
    "intermediate_size": 4304,
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "out_hidden_size": 5120,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}
LAYERS = ["linear_attention"] * 3 + ["full_attention"]
TEXT: dict[str, Any] = {
    **{name: value for name, value in NEXT.items() if name.startswith(("linear_", "head_dim", "hidden_act", "max_"))},
    "model_type": "qwen3_5_text",
    "attn_output_gate": True,
    "dtype": "bfloat16",
    "full_attention_interval": 4,
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "layer_types": LAYERS * 16,
    "linear_num_value_heads": 48,
    "mamba_ssm_dtype": "float32",
    "mtp_num_hidden_layers": 1,
    "num_attention_heads": 24,
    "num_hidden_layers": 64,
    "num_key_value_heads": 4,
    "rope_parameters": {"partial_rotary_factor": 0.25, "rope_type": "default"},
    "vocab_size": 248320,
}
DENSE = {"model_type": "qwen3_5", "text_config": TEXT, "vision_config": VISION, "tie_word_embeddings": False}
EXPERTS_TEXT = {
    **TEXT,
    "model_type": "qwen3_5_moe_text",
    "hidden_size": 2048,
    "layer_types": LAYERS * 10,
    "linear_num_value_heads": 32,
    "moe_intermediate_size": 512,
    "num_attention_heads": 16,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 40,
    "num_key_value_heads": 2,
    "shared_expert_intermediate_size": 512,
}
EXPERTS = {"model_type": "qwen3_5_moe", "text_config": EXPERTS_TEXT, "vision_config": VISION}
# Qwen3.5-122B-A10B and Qwen3.5-397B-A17B, as far as states and caches go.
LARGER = {**EXPERTS_TEXT, "hidden_size": 3072, "linear_num_value_heads": 64, "num_attention_heads": 32}


def _model(keys: dict[str, Any]) -> Model:
    return model_from_config(keys, "model", "config.json")


def _total(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


def _state_and_heads(model: Model) -> tuple[Cache, Cache]:
    state, heads = caches(model)
    return state, heads


@pytest.mark.parametrize(
    ("keys", "n_params"),
    [(NEXT, 79_674_391_296), (DENSE, 26_895_998_464), (EXPERTS, 34_660_610_688)],
    ids=["next", "dense", "experts"],
)
def test_counts_are_those_of_transformers(keys, n_params):
    assert _total(_model(keys)) == n_params


@pytest.mark.parametrize("keys", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_the_language_model_alone_is_the_same(keys):
    assert _total(_model(keys["text_config"])) == _total(_model(keys))


def test_a_quarter_of_the_layers_keeps_every_token():
    # SGLang's log of Qwen3.6-27B in fp8 on 2 ranks: 16,390 B a token on each, of 16 layers x 2 heads x 256 x 2.
    state, heads = _state_and_heads(_model(DENSE))
    assert (state.n_layers, heads.n_layers, heads.n_heads) == (48, 16, 4)
    assert heads.n_layers * heads.elements_per_token / 2 == 16_384


@pytest.mark.parametrize(
    ("keys", "ranks", "block_tokens"),
    [(NEXT, 1, 544), (EXPERTS, 1, 1056), (LARGER, 2, 2096), (LARGER, 4, 1056)],
    ids=["qwen3-next", "qwen3.5-35b", "qwen3.5-122b on 2", "qwen3.5-397b on 4"],
)
def test_the_state_of_a_layer_makes_the_blocks_of_vllm(keys, ranks, block_tokens):
    # vLLM gives a block as many tokens, by sixteens, as make it no smaller than the state of a layer; from its logs.
    state, heads = _state_and_heads(_model(keys))
    a_token = 2 * heads.elements_per_token / min(ranks, heads.n_heads)
    assert -(-state.state_bytes / ranks // a_token // 16) * 16 == block_tokens


def test_a_state_has_the_dtype_that_the_config_says_or_that_of_the_weights():
    matrix, convolution = 32 * 128 * 128, (2 * 16 * 128 + 32 * 128) * 3
    assert _state_and_heads(_model(NEXT))[0].state_bytes == 2 * matrix + 2 * convolution
    assert (
        _state_and_heads(_model({**NEXT, "mamba_ssm_dtype": "float32"}))[0].state_bytes == 4 * matrix + 2 * convolution
    )
    assert _state_and_heads(_model({**NEXT, "torch_dtype": "float32"}))[0].state_bytes == 4 * matrix + 2 * convolution


def test_layers_that_are_dense_are_named_or_counted_out():
    feeds = [layer.feed_forward.kind for layer in _model({**NEXT, "mlp_only_layers": [0, 5]}).layers]
    assert [index for index, kind in enumerate(feeds) if kind == "dense"] == [0, 5]
    feeds = [layer.feed_forward.kind for layer in _model({**NEXT, "decoder_sparse_step": 2}).layers]
    assert feeds[:4] == ["dense", "experts", "dense", "experts"]


def test_what_is_not_counted_is_said_with_its_size():
    drafting, tower = _model(DENSE).left_out
    # Qwen3_5ForConditionalGeneration of transformers has 27,356,728,560 parameters, its language model the rest.
    assert f"{27_356_728_560 - 26_895_998_464:,}" in tower
    layer = 5120 * (2 * 24 + 2 * 4) * 256 + 24 * 256 * 5120 + 2 * 256 + 3 * 5120 * 17408 + 2 * 5120
    assert f"{layer + 2 * 5120 * 5120 + 3 * 5120:,}" in drafting


def test_places_are_those_of_the_checkpoint():
    places = {tensor.module for tensor in weight_tensors(_model(EXPERTS))}
    assert {"linear_attn.in_proj_qkv", "linear_attn.out_proj", "self_attn.q_proj", "mlp.shared_expert_gate"} <= places
    assert {"mlp.shared_expert.up_proj", "mlp.experts.{expert}.down_proj", "mlp.gate"} <= places
    assert "linear_attn.in_proj_qkvz" in {tensor.module for tensor in weight_tensors(_model(NEXT))}


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"head_dim": None}, InputError, "head_dim"),
        ({"linear_num_key_heads": None}, InputError, "linear_num_key_heads"),
        ({"linear_num_value_heads": 24}, InputError, "linear_num_value_heads"),
        ({"full_attention_interval": None}, InputError, "full_attention_interval"),
        ({"shared_expert_intermediate_size": None}, InputError, "shared_expert_intermediate_size"),
        ({"layer_types": ["sliding_attention"] * 48}, UnsupportedModelError, "layer_types"),
        ({"mamba_ssm_dtype": "float8"}, UnsupportedModelError, "mamba_ssm_dtype"),
        ({"attn_output_gate": False}, InputError, "attn_output_gate"),
        ({"use_sliding_window": True}, UnsupportedModelError, "use_sliding_window"),
        ({"hidden_act": "gelu"}, UnsupportedModelError, "hidden_act"),
        ({"mlp_only_layers": [48]}, InputError, "mlp_only_layers"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**NEXT, **change})


def test_a_seeing_model_must_have_a_language_model():
    with pytest.raises(InputError, match="text_config"):
        _model({"model_type": "qwen3_5", "vision_config": VISION})
