"""Gemma 1 to 3: counts, windows, what the configs leave out, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of google/gemma-2b, gemma-2-2b-it, gemma-3-1b-it and gemma-3-4b-it that matter here.
GEMMA_1 = {
    "model_type": "gemma",
    "head_dim": 256,
    "hidden_act": "gelu",
    "hidden_size": 2048,
    "intermediate_size": 16384,
    "max_position_embeddings": 8192,
    "num_attention_heads": 8,
    "num_hidden_layers": 18,
    "num_key_value_heads": 1,
    "vocab_size": 256000,
}
GEMMA_2 = {
    "model_type": "gemma2",
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "max_position_embeddings": 8192,
    "num_attention_heads": 8,
    "num_hidden_layers": 26,
    "num_key_value_heads": 4,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "vocab_size": 256000,
}
GEMMA_3 = {
    "model_type": "gemma3_text",
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "max_position_embeddings": 32768,
    "num_attention_heads": 4,
    "num_hidden_layers": 26,
    "num_key_value_heads": 1,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "vocab_size": 262144,
}
GEMMA_3_4B = {
    "model_type": "gemma3",
    "mm_tokens_per_image": 256,
    "boi_token_index": 255999,
    "text_config": {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    },
    "torch_dtype": "bfloat16",
    "vision_config": {
        "hidden_size": 1152,
        "image_size": 896,
        "intermediate_size": 4304,
        "model_type": "siglip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "patch_size": 14,
        "vision_use_head": False,
    },
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


@pytest.mark.parametrize(
    ("keys", "n_params"),
    [
        # The safetensors of each model on huggingface.co/google.
        pytest.param(GEMMA_1, 2_506_172_416, id="gemma-2b"),
        pytest.param(GEMMA_2, 2_614_341_888, id="gemma-2-2b"),
        pytest.param(GEMMA_3, 999_885_952, id="gemma-3-1b"),
        pytest.param(GEMMA_3_4B, 4_300_079_472, id="gemma-3-4b"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], n_params: int) -> None:
    assert sum(tensor.size for tensor in weight_tensors(read(keys)) if tensor.stored) == n_params


def test_gemma_2_slides_in_every_second_layer_from_the_first() -> None:
    sliding, full = caches(read(GEMMA_2))
    assert (sliding.window, sliding.layers) == (4096, tuple(range(0, 26, 2)))
    assert full.layers == tuple(range(1, 26, 2))


def test_gemma_3_sees_all_in_every_sixth_layer() -> None:
    # vLLM groups 22 sliding and 4 full layers of gemma-3-1b.
    sliding, full = caches(read(GEMMA_3))
    assert (sliding.window, sliding.n_layers, full.layers) == (512, 22, (5, 11, 17, 23))
    assert sliding.elements_per_token == full.elements_per_token == 2 * 256


def test_gemma_3_has_a_rotary_table_of_each_base() -> None:
    assert read(GEMMA_3).rope_table == (32768, 2 * 256)
    assert read(GEMMA_2).rope_table == (8192, 256)


def test_layer_types_win_over_the_pattern() -> None:
    types = ["full_attention"] * 2 + ["sliding_attention"] * 24
    assert read(GEMMA_3, layer_types=types).layers_by_kind == {"full + dense": 2, "sliding + dense": 24}


def test_what_the_text_part_leaves_out_is_what_transformers_takes() -> None:
    model = read(GEMMA_3_4B)
    assert (model.n_heads, model.n_kv_heads, model.head_dim, model.vocab_size) == (8, 4, 256, 262208)
    assert (model.max_context_tokens, model.tied_embeddings) == (131072, True)
    assert model.towers == {"vision_tower": 4_300_079_472 - 3_880_263_168}


def test_a_tower_that_is_not_described_is_left_out() -> None:
    model = read(GEMMA_3_4B, vision_config=None)
    assert not model.towers
    assert "not counted" in model.left_out[0]


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (GEMMA_1, {"hidden_act": "relu"}, "hidden_act relu"),
        (GEMMA_2, {"sliding_window": None}, "sliding_window is missing"),
        (GEMMA_2, {"use_bidirectional_attention": True}, "use_bidirectional_attention"),
        (GEMMA_3, {"num_attention_heads": None}, "num_attention_heads is missing"),
        (GEMMA_3, {"sliding_window_pattern": 0}, "sliding_window_pattern is 0"),
        (GEMMA_3, {"layer_types": ["linear_attention"] * 26}, "layer_types holds 'linear_attention'"),
        (GEMMA_3, {"layer_types": ["full_attention"]}, "layer_types has 1 entries for 26 layers"),
        (GEMMA_3_4B, {"text_config": None}, "text_config is missing"),
        (GEMMA_3_4B, {"vision_config": {**GEMMA_3_4B["vision_config"], "vision_use_head": True}}, "vision_use_head"),
        (GEMMA_3_4B, {"vision_config": {}}, "vision_config: vision_use_head is missing"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)


@pytest.mark.parametrize("keys", [GEMMA_1, GEMMA_2, GEMMA_3])
def test_kv_heads_must_be_stated(keys: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="num_key_value_heads is missing"):
        read({key: value for key, value in keys.items() if key != "num_key_value_heads"})
