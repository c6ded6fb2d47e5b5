"""Gemma 4: two kinds of heads, experts beside an MLP, inputs a layer, shared caches, and towers."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of google/gemma-4-31B-it and gemma-4-26B-A4B that matter here.
DENSE = {
    "model_type": "gemma4_text",
    "attention_bias": False,
    "attention_k_eq_v": True,
    "dtype": "bfloat16",
    "enable_moe_block": False,
    "global_head_dim": 512,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 5376,
    "hidden_size_per_layer_input": 0,
    "intermediate_size": 21504,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10,
    "max_position_embeddings": 262144,
    "num_attention_heads": 32,
    "num_experts": None,
    "num_global_key_value_heads": 4,
    "num_hidden_layers": 60,
    "num_key_value_heads": 16,
    "num_kv_shared_layers": 0,
    "sliding_window": 1024,
    "tie_word_embeddings": True,
    "top_k_experts": None,
    "use_bidirectional_attention": "vision",
    "use_double_wide_mlp": False,
    "vocab_size": 262144,
    "vocab_size_per_layer_input": 262144,
}
EXPERTS = {
    **DENSE,
    "enable_moe_block": True,
    "hidden_size": 2816,
    "intermediate_size": 2112,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
    "moe_intermediate_size": 704,
    "num_attention_heads": 16,
    "num_experts": 128,
    "num_global_key_value_heads": 2,
    "num_hidden_layers": 30,
    "num_key_value_heads": 8,
    "top_k_experts": 8,
}
VISION = {
    "model_type": "gemma4_vision",
    "head_dim": 72,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "num_key_value_heads": 16,
    "patch_size": 16,
    "pooling_kernel_size": 3,
    "position_embedding_size": 10240,
    "standardize": True,
    "use_clipped_linears": False,
}
# The shape of gemma-4-E2B: narrow inputs for each layer, and 20 layers that use the keys and values of earlier ones.
SHARED = {
    **DENSE,
    "attention_k_eq_v": False,
    "hidden_size": 1536,
    "hidden_size_per_layer_input": 256,
    "intermediate_size": 6144,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
    "max_position_embeddings": 131072,
    "num_attention_heads": 8,
    "num_global_key_value_heads": None,
    "num_hidden_layers": 35,
    "num_key_value_heads": 1,
    "num_kv_shared_layers": 20,
    "sliding_window": 512,
    "use_double_wide_mlp": True,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def whole(text: dict[str, Any], **parts: Any) -> Model:
    return read(
        {"model_type": "gemma4", "text_config": text, "tie_word_embeddings": True, "dtype": "bfloat16", **parts}
    )


@pytest.mark.parametrize(
    ("keys", "n_params"),
    [
        # Counted by making each model with transformers 5.24 on the meta device.
        pytest.param(DENSE, 30_697_345_280, id="31B"),
        pytest.param(EXPERTS, 25_233_141_760, id="26B-A4B"),
        pytest.param(SHARED, 4_628_569_344, id="E2B"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], n_params: int) -> None:
    assert sum(tensor.size for tensor in weight_tensors(read(keys)) if tensor.stored) == n_params


def test_layers_that_see_all_have_heads_of_their_own() -> None:
    sliding, full = caches(read(DENSE))
    assert (sliding.n_layers, sliding.window, sliding.n_heads, sliding.head_dim) == (50, 1024, 16, 256)
    assert (full.n_layers, full.n_heads, full.head_dim) == (10, 4, 512)
    assert sliding.n_layers * sliding.elements_per_token * 2 == 819_200
    assert full.n_layers * full.elements_per_token * 2 == 81_920


def test_a_value_that_is_the_key_has_no_matrix() -> None:
    (values,) = [tensor for tensor in weight_tensors(read(DENSE)) if tensor.name == "wv"]
    assert set(values.layers) == {index for index in range(60) if index % 6 != 5}
    assert read(DENSE).rope_table == (262144, 256 + 512)


def test_experts_stand_beside_an_mlp() -> None:
    model = read(EXPERTS)
    places = {tensor.module for tensor in weight_tensors(model)}
    assert {"router.proj", "experts.{expert}.gate_proj", "mlp.down_proj"} <= places
    (forward,) = set(model.feed_forwards)
    assert (forward.n_experts, forward.n_active, forward.active_d_ff) == (128, 8, 8 * 704 + 2112)


def test_a_layer_that_shares_keeps_nothing_and_reads_again() -> None:
    found = {(cache.window, cache.elements_per_token): cache for cache in caches(read(SHARED))}
    assert found[512, 2 * 256].layers == tuple(index for index in range(15) if index % 5 != 4)
    again = found[512, 0]
    assert (again.reread_elements_per_token, again.layers[0], again.n_layers) == (2 * 256, 15, 16)
    assert again.decode_flops_per_token == found[512, 2 * 256].decode_flops_per_token


def test_a_layer_that_shares_has_no_projections_of_its_own_and_a_wider_mlp() -> None:
    model = read(SHARED)
    own, shared = model.layers[0], model.layers[15]
    assert {tensor.name for tensor in own.weights} - {tensor.name for tensor in shared.weights} == {
        "wk",
        "wv",
        "k_norm",
    }
    assert (own.feed_forward.d_ff, shared.feed_forward.d_ff) == (6144, 12288)
    assert read(SHARED, use_double_wide_mlp=False).layers[15].feed_forward.d_ff == 6144


def test_the_table_of_inputs_a_layer_may_be_split_by_tokens() -> None:
    (table,) = [tensor for tensor in weight_tensors(read(SHARED)) if tensor.name == "embed_tokens_per_layer"]
    assert (table.size, table.axes, table.role) == (262144 * 35 * 256, ("vocab", "embed"), "embedding")


def test_the_last_layer_sees_all() -> None:
    types = ["sliding_attention"] * 60
    assert read(DENSE, layer_types=types).layers_by_kind == {"sliding + dense": 59, "full + dense": 1}
    assert read(DENSE, layer_types=None).layers_by_kind == {"sliding + dense": 50, "full + dense": 10}


def test_towers_are_counted_where_they_are_described() -> None:
    model = whole(DENSE, vision_config=VISION, audio_config=None, vision_soft_tokens_per_image=280)
    assert model.towers == {"vision_tower": 31_273_086_512 - 30_697_345_280}
    assert whole(DENSE).towers == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size_per_layer_input": None}, "hidden_size_per_layer_input is missing"),
        (
            {"hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": None},
            "vocab_size_per_layer_input is missing",
        ),
        ({"num_kv_shared_layers": 60}, "num_kv_shared_layers is 60 of 60 layers"),
        ({"num_kv_shared_layers": 55}, "num_kv_shared_layers is 55 of 60 layers"),
        ({"use_bidirectional_attention": "all"}, "use_bidirectional_attention all is not supported"),
        ({"enable_moe_block": True}, "num_experts is missing"),
        ({"enable_moe_block": True, "num_experts": 4, "top_k_experts": 8}, "top_k_experts is 8, of 4 experts"),
        ({"sliding_window": None}, "sliding_window is missing"),
        ({"num_global_key_value_heads": 5}, "32 query heads do not divide over 5 KV heads"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(DENSE, **changes)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"vision_config": {**VISION, "attention_bias": True}}, "vision_config: attention_bias"),
        ({"vision_config": {**VISION, "num_experts": 8}}, "vision_config: num_experts is not understood"),
        ({"vision_config": "siglip"}, "vision_config is 'siglip'"),
        ({"audio_config": {"hidden_act": "silu"}}, "audio_config: hidden_size is missing"),
    ],
)
def test_a_tower_that_is_not_understood_is_refused_by_key(part: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        whole(DENSE, **part)
