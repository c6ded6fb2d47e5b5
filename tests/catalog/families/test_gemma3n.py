"""Gemma 3n: counts, keys and values of earlier layers, towers that are not counted, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
E4B: dict[str, Any] = {
    "model_type": "gemma3n_text",
    "hidden_size": 2048,
    "intermediate_size": [16384] * 35,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 262400,
    "max_position_embeddings": 32768,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "sliding_window": 512,
    "layer_types": [
        "sliding_attention",
        "sliding_attention",
        "sliding_attention",
        "sliding_attention",
        "full_attention",
    ]
    * 7,
    "vocab_size_per_layer_input": 262144,
    "hidden_size_per_layer_input": 256,
    "num_kv_shared_layers": 15,
    "laurel_rank": 64,
    "altup_num_inputs": 4,
    "altup_active_idx": 0,
    "altup_coef_clip": 120.0,
    "altup_correct_scale": True,
    "activation_sparsity_pattern": [*[0.95] * 10, *[0.0] * 25],
}
E2B: dict[str, Any] = {
    "model_type": "gemma3n_text",
    "hidden_size": 2048,
    "intermediate_size": [8192] * 30,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 262400,
    "max_position_embeddings": 32768,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "sliding_window": 512,
    "layer_types": [
        "sliding_attention",
        "sliding_attention",
        "sliding_attention",
        "sliding_attention",
        "full_attention",
    ]
    * 6,
    "vocab_size_per_layer_input": 262144,
    "hidden_size_per_layer_input": 256,
    "num_kv_shared_layers": 10,
    "laurel_rank": 64,
    "altup_num_inputs": 4,
    "altup_active_idx": 0,
    "altup_coef_clip": 120.0,
    "altup_correct_scale": True,
    "activation_sparsity_pattern": [*[0.95] * 10, *[0.0] * 20],
}
WHOLE: dict[str, Any] = {
    "model_type": "gemma3n",
    "text_config": {
        "model_type": "gemma3n_text",
        "hidden_size": 2048,
        "intermediate_size": [16384] * 35,
        "num_hidden_layers": 35,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 262400,
        "max_position_embeddings": 32768,
        "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh",
        "sliding_window": 512,
        "layer_types": [
            "sliding_attention",
            "sliding_attention",
            "sliding_attention",
            "sliding_attention",
            "full_attention",
        ]
        * 7,
        "vocab_size_per_layer_input": 262144,
        "hidden_size_per_layer_input": 256,
        "num_kv_shared_layers": 15,
        "laurel_rank": 64,
        "altup_num_inputs": 4,
        "altup_active_idx": 0,
        "altup_coef_clip": 120.0,
        "altup_correct_scale": True,
        "activation_sparsity_pattern": [*[0.95] * 10, *[0.0] * 25],
    },
    "vision_config": {"architecture": "mobilenetv5_300m_enc", "hidden_size": 2048},
    "audio_config": {"hidden_size": 1536},
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(E4B, 6_835_235_568, id="e4b"),
        pytest.param(E2B, 4_435_182_688, id="e2b"),
        pytest.param(WHOLE, 6_835_235_568, id="whole"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(E4B, [(16, 1024, 512, 0), (4, 1024, None, 0), (12, 0, 512, 0), (3, 0, None, 0)], id="e4b"),
        pytest.param(E2B, [(16, 1024, 512, 0), (4, 1024, None, 0), (8, 0, 512, 0), (2, 0, None, 0)], id="e2b"),
        pytest.param(WHOLE, [(16, 1024, 512, 0), (4, 1024, None, 0), (12, 0, 512, 0), (3, 0, None, 0)], id="whole"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_the_last_layers_keep_nothing_and_read_again() -> None:
    again = [cache for cache in caches(read(E4B)) if cache.reread_elements_per_token]
    assert [(cache.n_layers, cache.elements_per_token, cache.reread_elements_per_token) for cache in again] == [
        (12, 0, 1024), (3, 0, 1024),
    ]  # fmt: skip


def test_one_width_is_as_good_as_a_list() -> None:
    assert read(E4B, intermediate_size=16384) == read(E4B)
    mixed = read(E4B, intermediate_size=[16384] * 34 + [8192])
    assert n_params(read(E4B)) - n_params(mixed) == 3 * 2048 * 8192


def test_towers_are_named_and_not_counted() -> None:
    vision, audio = read(WHOLE).left_out
    assert (vision.split(":")[0], audio.split(":")[0]) == ("vision_config", "audio_config")
    assert n_params(read(WHOLE)) == n_params(read(E4B))


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (E4B, {"laurel_rank": None}, "laurel_rank is missing"),
        (E4B, {"num_kv_shared_layers": None}, "num_kv_shared_layers is missing"),
        (E4B, {"num_kv_shared_layers": 34}, "num_kv_shared_layers leaves 1 of 35"),
        (E4B, {"intermediate_size": [16384] * 34}, "intermediate_size has 34 entries"),
        (E4B, {"sliding_window": None}, "sliding_window is missing"),
        (E4B, {"altup_correct_scale": False}, "altup_correct_scale must be true"),
        (E4B, {"hidden_activation": "relu"}, "hidden_activation relu"),
        (E4B, {"layer_types": ["full"] * 35}, "layer_types holds"),
        (E4B, {"layer_types": None}, "layer_types is missing"),
        (WHOLE, {"text_config": None}, "text_config is missing"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
