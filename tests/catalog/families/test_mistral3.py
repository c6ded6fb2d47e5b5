"""Mistral Small 3 and Ministral: counts, towers with projectors, windows, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
SMALL: dict[str, Any] = {
    "model_type": "mistral3",
    "image_token_index": 10,
    "multimodal_projector_bias": False,
    "projector_hidden_act": "gelu",
    "spatial_merge_size": 2,
    "text_config": {
        "head_dim": 128,
        "hidden_act": "silu",
        "hidden_size": 5120,
        "intermediate_size": 32768,
        "max_position_embeddings": 131072,
        "model_type": "mistral",
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "vocab_size": 131072,
    },
    "vision_config": {
        "head_dim": 64,
        "hidden_act": "silu",
        "hidden_size": 1024,
        "image_size": 1540,
        "intermediate_size": 4096,
        "model_type": "pixtral",
        "num_attention_heads": 16,
        "num_channels": 3,
        "num_hidden_layers": 24,
        "patch_size": 14,
    },
    "vision_feature_layer": -1,
}
MINISTRAL3: dict[str, Any] = {
    "model_type": "mistral3",
    "image_token_index": 10,
    "multimodal_projector_bias": False,
    "projector_hidden_act": "gelu",
    "spatial_merge_size": 2,
    "text_config": {
        "head_dim": 128,
        "hidden_act": "silu",
        "hidden_size": 3072,
        "intermediate_size": 9216,
        "max_position_embeddings": 262144,
        "model_type": "ministral3",
        "num_attention_heads": 32,
        "num_hidden_layers": 26,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "vocab_size": 131072,
    },
    "vision_config": {
        "head_dim": 64,
        "hidden_act": "silu",
        "hidden_size": 1024,
        "image_size": 1540,
        "intermediate_size": 4096,
        "model_type": "pixtral",
        "num_attention_heads": 16,
        "num_channels": 3,
        "num_hidden_layers": 24,
        "patch_size": 14,
    },
    "vision_feature_layer": -1,
}
SLIDING: dict[str, Any] = {
    "model_type": "ministral",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 131072,
    "max_position_embeddings": 32768,
    "head_dim": 128,
    "sliding_window": 4096,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"] * 9,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(SMALL, 24_011_361_280, id="small"),
        pytest.param(MINISTRAL3, 3_849_090_048, id="ministral3"),
        pytest.param(SLIDING, 8_019_808_256, id="sliding"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(SMALL, 438_958_080, id="small"),
        pytest.param(MINISTRAL3, 420_083_712, id="ministral3"),
        pytest.param(SLIDING, 0, id="sliding"),
    ],
)
def test_towers_are_counted_apart(keys: dict[str, Any], count: int) -> None:
    assert sum(read(keys).towers.values()) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(SMALL, [(40, 2048, None, 0)], id="small"),
        pytest.param(MINISTRAL3, [(26, 2048, None, 0)], id="ministral3"),
        pytest.param(SLIDING, [(9, 2048, None, 0), (27, 2048, 4096, 0)], id="sliding"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_embeddings_are_tied_only_where_the_config_says_so() -> None:
    """The published checkpoint of Mistral Small holds an LM head, though its config says nothing of it."""
    assert not read(SMALL).tied_embeddings
    assert read(MINISTRAL3).tied_embeddings
    assert n_params(read(SMALL)) - n_params(read(SMALL, tie_word_embeddings=True)) == 131072 * 5120


def test_every_layer_slides_where_only_the_window_is_given() -> None:
    every = {name: value for name, value in SLIDING.items() if name != "layer_types"}
    assert read(every).layers_by_kind == {"sliding + dense": 36}
    assert read({**every, "sliding_window": None}).layers_by_kind == {"full + dense": 36}


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (SMALL, {"vision_config": None}, "vision_config is missing"),
        (SMALL, {"text_config": {**SMALL["text_config"], "model_type": "mixtral"}}, "model_type mixtral"),
        (
            SMALL,
            {"vision_config": {**SMALL["vision_config"], "head_dim": 32}},
            "head_dim is not hidden_size 1024 over 16 heads",
        ),
        (SMALL, {"vision_feature_layer": [-1, -2]}, "vision_feature_layer"),
        (SMALL, {"projector_hidden_act": "relu"}, "projector_hidden_act relu"),
        (SMALL, {"text_config": None}, "text_config is missing"),
        (SLIDING, {"sliding_window": None}, "sliding_window is missing"),
        (SLIDING, {"layer_types": ["chunked_attention"] * 36}, "layer_types holds"),
        (
            MINISTRAL3,
            {"text_config": {**MINISTRAL3["text_config"], "layer_types": ["sliding_attention"] * 26}},
            "layer_types",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
