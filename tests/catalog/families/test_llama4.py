"""Llama 4: counts, chunks, which layers have experts, and the tower that is left out."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of meta-llama/Llama-4-Scout-17B-16E-Instruct and Maverick-17B-128E that matter here.
SCOUT = {
    "model_type": "llama4_text",
    "attention_bias": False,
    "attention_chunk_size": 8192,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 5120,
    "interleave_moe_layer_step": 1,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "max_position_embeddings": 10485760,
    "no_rope_layers": [],
    "num_attention_heads": 40,
    "num_experts_per_tok": 1,
    "num_hidden_layers": 48,
    "num_key_value_heads": 8,
    "num_local_experts": 16,
    "use_qk_norm": True,
    "vocab_size": 202048,
}
MAVERICK = {**SCOUT, "interleave_moe_layer_step": 2, "num_local_experts": 128, "max_position_embeddings": 1048576}
VISION = {
    "model_type": "llama4_vision_model",
    "hidden_act": "gelu",
    "hidden_size": 1408,
    "image_size": 336,
    "intermediate_size": 5632,
    "multi_modal_projector_bias": False,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 34,
    "patch_size": 14,
    "pixel_shuffle_ratio": 0.5,
    "projector_dropout": 0.0,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
    "vision_feature_layer": -1,
    "vision_feature_select_strategy": "default",
    "vision_output_dim": 4096,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


@pytest.mark.parametrize(
    ("keys", "n_params"),
    [
        # Counted by making each Llama4ForCausalLM with transformers 5.24 on the meta device.
        pytest.param(SCOUT, 107_769_861_120, id="scout"),
        pytest.param(MAVERICK, 400_711_848_960, id="maverick"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], n_params: int) -> None:
    assert sum(tensor.size for tensor in weight_tensors(read(keys)) if tensor.stored) == n_params


def test_three_layers_of_four_attend_within_a_chunk() -> None:
    chunked, full = caches(read(SCOUT))
    assert (chunked.window, chunked.n_layers, full.layers) == (8192, 36, tuple(range(3, 48, 4)))
    # vLLM charges 4,096 B a token for each of the 48 layers: https://github.com/vllm-project/vllm/pull/29431
    assert chunked.elements_per_token * 2 == full.elements_per_token * 2 == 4096
    assert read(SCOUT).mixers[0].kind == "chunked"


def test_without_a_chunk_every_layer_sees_all() -> None:
    assert read(SCOUT, attention_chunk_size=None).layers_by_kind == {"full + experts": 48}


def test_layers_say_themselves_whether_they_see_all() -> None:
    listed = read(SCOUT, no_rope_layers=[1] * 47 + [0])
    assert listed.layers_by_kind == {"chunked + experts": 47, "full + experts": 1}
    typed = read(SCOUT, layer_types=["full_attention"] * 40 + ["chunked_attention"] * 8)
    assert typed.layers_by_kind == {"full + experts": 40, "chunked + experts": 8}


def test_every_second_layer_of_maverick_has_experts_and_one_that_all_share() -> None:
    model = read(MAVERICK)
    assert [layer.kind.split()[-1] for layer in model.layers[:4]] == ["dense", "experts", "dense", "experts"]
    assert (model.feed_forwards[0].d_ff, model.feed_forwards[1].active_d_ff) == (16384, 2 * 8192)
    assert read(MAVERICK, moe_layers=[0, 5]).layers_by_kind["chunked + experts"] == 2
    places = {tensor.module for tensor in weight_tensors(model)}
    assert {"feed_forward.router", "feed_forward.shared_expert.up_proj", "feed_forward.up_proj"} <= places


def test_the_tower_is_left_out_and_said_so() -> None:
    whole = {"model_type": "llama4", "text_config": SCOUT}
    assert read(whole).left_out == ("The vision tower, which the config does not describe, is not counted.",)
    model = read(whole, vision_config=VISION)
    # Llama4VisionModel and the projector, counted by transformers 5.24.
    assert model.left_out == ("The vision tower, 871,932,416 parameters with its projector, is not counted.",)
    assert not model.towers


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"no_rope_layers": [1, 0]}, "no_rope_layers must hold a 0 or a 1 for each of 48 layers"),
        ({"no_rope_layers": [2] * 48}, "no_rope_layers must hold a 0 or a 1"),
        ({"layer_types": ["sliding_attention"] * 48}, "layer_types holds 'sliding_attention'"),
        ({"moe_layers": [48]}, "moe_layers holds 48"),
        ({"interleave_moe_layer_step": 0}, "interleave_moe_layer_step is 0"),
        ({"interleave_moe_layer_step": None}, "interleave_moe_layer_step is missing"),
        ({"attention_chunk_size": -1}, "attention_chunk_size is -1"),
        ({"num_experts_per_tok": 17}, "num_experts_per_tok is 17, of 16 experts"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(SCOUT, **changes)


def test_a_chunk_must_be_stated() -> None:
    with pytest.raises(InputError, match="attention_chunk_size is missing"):
        read({key: value for key, value in SCOUT.items() if key != "attention_chunk_size"})
