"""Step 3.5 and 3.7 Flash: counts of the published form and of a flat one, windows, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of Step-3.7-Flash: flat ones, where layers that slide have no heads of their own, and as it is published.
KINDS = ["full_attention", *["sliding_attention"] * 3]
FLAT: dict[str, Any] = {
    "model_type": "step3p7",
    "first_k_dense_replace": 3,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 11264,
    "layer_types": (KINDS * 12)[:45],
    "max_position_embeddings": 65536,
    "moe_intermediate_size": 1280,
    "moe_router_scaling_factor": 3.0,
    "n_shared_experts": 1,
    "num_attention_heads": 64,
    "num_experts": 288,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 45,
    "num_key_value_heads": 8,
    "num_nextn_predict_layers": 3,
    "share_expert_dim": 1280,
    "sliding_window": 512,
    "vocab_size": 128896,
}
TEXT: dict[str, Any] = {
    "model_type": "step3p5",
    "attention_other_setting": {
        "attention_type": "sliding_attention",
        "head_dim": 128,
        "num_attention_groups": 8,
        "num_attention_heads": 96,
    },
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 11264,
    # The lists go on with the layers that draft tokens.
    "layer_types": KINDS * 12,
    "max_position_embeddings": 262144,
    "moe_intermediate_size": 1280,
    "moe_layers_enum": ",".join(str(index) for index in range(3, 45)),
    "moe_num_experts": 288,
    "moe_top_k": 8,
    "num_attention_groups": 8,
    "num_attention_heads": 64,
    "num_hidden_layers": 45,
    "num_nextn_predict_layers": 3,
    "share_expert_dim": 1280,
    "sliding_window": 512,
    "use_head_wise_attn_gate": True,
    "vocab_size": 128896,
}
VISION = {
    "heads": 16,
    "hidden_act": "quick_gelu",
    "image_size": 728,
    "layers": 47,
    "mlp_ratio": 8960 / 1536,
    "patch_size": 14,
    "width": 1536,
}
SEEING = {"model_type": "step3p7", "text_config": TEXT, "vision_config": VISION}


def _model(keys: dict[str, Any]) -> Model:
    return model_from_config(keys, "model", "config.json")


def _total(model: Model, *roles: str) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored and tensor.role not in roles)


def test_the_published_form_counts_what_transformers_makes_of_it():
    assert _total(_model(SEEING)) == 198_937_133_056
    assert _total(_model(SEEING), "tower") == _total(_model(TEXT)) == 198_937_133_056 - 1_981_014_784


def test_a_flat_file_counts_what_transformers_makes_of_it():
    # It takes the sizes of the file but for the vocabulary, which the file pads to a multiple of 128.
    model = _model(FLAT)
    assert _total(model) == 197_824_847_872
    assert _total(model, "tower") == 195_843_833_088
    assert "81 of 128,896 rows" in model.left_out[-1]
    assert f"{2 * 81 * 4096:,} parameters" in model.left_out[-1]


def test_another_vocabulary_of_a_flat_file_is_its_own():
    assert _model({**FLAT, "vocab_size": 100_000}).vocab_size == 100_000
    assert _model({**SEEING}).vocab_size == 128_896


def test_layers_that_slide_have_heads_of_their_own_and_keep_a_window():
    heads = {layer.mixer.kind: layer.mixer.n_heads for layer in _model(SEEING).layers}
    assert heads == {"full": 64, "sliding": 96}
    full, sliding = caches(_model(SEEING))
    assert (full.n_layers, sliding.n_layers, sliding.window) == (12, 33, 512)
    assert full.elements_per_token == sliding.elements_per_token == 2 * 8 * 128


def test_every_head_has_a_gate():
    gates = [tensor for tensor in weight_tensors(_model(SEEING)) if tensor.name == "g_proj"]
    assert sorted(gate.size for gate in gates) == [12 * 64 * 4096, 33 * 96 * 4096]


def test_layers_with_experts_are_named_or_counted():
    words = {**TEXT, "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 42}
    listed = {**TEXT, "moe_layers_enum": list(range(3, 45))}
    assert _model(words).layers == _model(listed).layers == _model(TEXT).layers


def test_places_are_those_of_the_checkpoint():
    places = {tensor.module for tensor in weight_tensors(_model(TEXT))}
    assert {"share_expert.up_proj", "moe.gate", "moe.{expert}.down_proj", "mlp.gate_proj", "self_attn.g_proj"} <= places


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"layer_types": None}, InputError, "layer_types"),
        ({"layer_types": ["chunked_attention"] * 45}, UnsupportedModelError, "layer_types"),
        ({"layer_types": KINDS}, InputError, "layer_types"),
        ({"sliding_window": None}, InputError, "sliding_window"),
        ({"moe_layers_enum": None}, InputError, "first_k_dense_replace"),
        ({"moe_layers_enum": "3;4"}, InputError, "moe_layers_enum"),
        ({"num_attention_groups": None}, InputError, "num_key_value_heads"),
        ({"moe_num_experts": None}, InputError, "moe_num_experts"),
        ({"share_expert_dim": None}, InputError, "share_expert_dim"),
        ({"use_head_wise_attn_gate": False}, InputError, "use_head_wise_attn_gate"),
        ({"attention_bias": True}, UnsupportedModelError, "attention_bias"),
        ({"hidden_act": "gelu"}, UnsupportedModelError, "hidden_act"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**TEXT, **change})


def test_a_published_file_must_describe_its_tower():
    with pytest.raises(InputError, match="vision_config"):
        _model({**SEEING, "vision_config": None})
