"""MiMo V2 Flash: counts, two kinds of heads, sinks, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of XiaomiMiMo/MiMo-V2-Flash that matter here: full attention in layers 0, 5, 11, 17 ...
PATTERN = [0, 1, 1, 1, 1, *[0, 1, 1, 1, 1, 1] * 7, 0]
FLASH: dict[str, Any] = {
    "model_type": "mimo_v2_flash",
    "add_full_attention_sink_bias": False,
    "add_swa_attention_sink_bias": True,
    "attention_chunk_size": 128,
    "head_dim": 192,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "hybrid_layer_pattern": PATTERN,
    "intermediate_size": 16384,
    "max_position_embeddings": 262144,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": [0] + [1] * 47,
    "n_routed_experts": 256,
    "n_shared_experts": None,
    "num_attention_heads": 64,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "partial_rotary_factor": 0.334,
    "scoring_func": "sigmoid",
    "sliding_window": 128,
    "sliding_window_size": 128,
    "swa_head_dim": 192,
    "swa_num_attention_heads": 64,
    "swa_num_key_value_heads": 8,
    "swa_v_head_dim": 128,
    "v_head_dim": 128,
    "vocab_size": 152576,
}


def _model(keys: dict[str, Any]) -> Model:
    return model_from_config(keys, "model", "config.json")


def _total(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


def test_the_count_is_that_of_transformers():
    assert _total(_model(FLASH)) == 308_778_768_832


def test_layers_that_slide_have_heads_of_their_own():
    full, sliding = caches(_model(FLASH))
    assert full.layers == (0, 5, 11, 17, 23, 29, 35, 41, 47)
    assert (full.n_heads, full.elements_per_token) == (4, 4 * (192 + 128))
    assert (sliding.n_layers, sliding.n_heads, sliding.window) == (39, 8, 128)
    assert sliding.elements_per_token == 8 * (192 + 128)
    assert (sliding.head_dim, sliding.value_dim) == (192, 128)


def test_only_layers_that_slide_have_sinks():
    (sinks,) = (tensor for tensor in weight_tensors(_model(FLASH)) if "sink" in tensor.name)
    assert sinks.size == 39 * 64
    both = _model({**FLASH, "add_full_attention_sink_bias": True})
    assert _total(both) == _total(_model(FLASH)) + 9 * 64


def test_layers_are_found_by_their_names_too():
    words = {0: "full_attention", 1: "sliding_attention"}
    keys = {name: value for name, value in FLASH.items() if name not in {"hybrid_layer_pattern", "moe_layer_freq"}}
    named = {
        **keys,
        "layer_types": [words[kind] for kind in PATTERN],
        "mlp_layer_types": ["dense"] + ["sparse"] * 47,
    }
    assert _model(named).layers == _model(FLASH).layers


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"hybrid_layer_pattern": None}, InputError, "hybrid_layer_pattern"),
        ({"hybrid_layer_pattern": [2] * 48}, InputError, "hybrid_layer_pattern"),
        ({"hybrid_layer_pattern": [0] * 47}, InputError, "hybrid_layer_pattern"),
        ({"moe_layer_freq": None}, InputError, "moe_layer_freq"),
        ({"swa_num_key_value_heads": None}, InputError, "swa_num_key_value_heads"),
        ({"v_head_dim": None}, InputError, "v_head_dim"),
        ({"add_swa_attention_sink_bias": None}, InputError, "add_swa_attention_sink_bias"),
        ({"attention_bias": True}, UnsupportedModelError, "attention_bias"),
        ({"hidden_act": "gelu"}, UnsupportedModelError, "hidden_act"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**FLASH, **change})
