"""Qwen 2 VL and 2.5 VL: counts, towers, flat and nested configs, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
QWEN2_7B: dict[str, Any] = {
    "model_type": "qwen2_vl",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "vision_config": {
        "depth": 32,
        "embed_dim": 1280,
        "mlp_ratio": 4,
        "num_heads": 16,
        "in_chans": 3,
        "hidden_size": 3584,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "spatial_patch_size": 14,
        "temporal_patch_size": 2,
    },
}
QWEN25_7B: dict[str, Any] = {
    "model_type": "qwen2_5_vl",
    "hidden_act": "silu",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 128000,
    "max_window_layers": 28,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "sliding_window": 32768,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vision_config": {
        "depth": 32,
        "hidden_act": "silu",
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "num_heads": 16,
        "in_chans": 3,
        "out_hidden_size": 3584,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "spatial_patch_size": 14,
        "window_size": 112,
        "fullatt_block_indexes": [7, 15, 23, 31],
        "tokens_per_second": 2,
        "temporal_patch_size": 2,
    },
    "vocab_size": 152064,
}
QWEN25_72B: dict[str, Any] = {
    "model_type": "qwen2_5_vl",
    "text_config": {
        "model_type": "qwen2_5_vl_text",
        "hidden_size": 8192,
        "intermediate_size": 29568,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "vocab_size": 152064,
        "max_position_embeddings": 128000,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
    },
    "vision_config": {
        "depth": 32,
        "hidden_act": "silu",
        "hidden_size": 1280,
        "intermediate_size": 3456,
        "num_heads": 16,
        "in_chans": 3,
        "out_hidden_size": 8192,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "spatial_patch_size": 14,
        "window_size": 112,
        "fullatt_block_indexes": [7, 15, 23, 31],
        "tokens_per_second": 2,
        "temporal_patch_size": 2,
    },
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(QWEN2_7B, 8_291_375_616, id="qwen2-7b"),
        pytest.param(QWEN25_7B, 8_292_166_656, id="qwen25-7b"),
        pytest.param(QWEN25_72B, 73_410_777_344, id="qwen25-72b"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(QWEN2_7B, 675_759_104, id="qwen2-7b"),
        pytest.param(QWEN25_7B, 676_550_144, id="qwen25-7b"),
        pytest.param(QWEN25_72B, 704_573_696, id="qwen25-72b"),
    ],
)
def test_towers_are_counted_apart(keys: dict[str, Any], count: int) -> None:
    assert sum(read(keys).towers.values()) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(QWEN2_7B, [(28, 1024, None, 0)], id="qwen2-7b"),
        pytest.param(QWEN25_7B, [(28, 1024, None, 0)], id="qwen25-7b"),
        pytest.param(QWEN25_72B, [(80, 2048, None, 0)], id="qwen25-72b"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_a_nested_language_model_is_the_flat_one() -> None:
    text = {name: value for name, value in QWEN25_7B.items() if name not in ("vision_config", "model_type")}
    nested = {"model_type": "qwen2_5_vl", "text_config": text, "vision_config": QWEN25_7B["vision_config"]}
    assert read(nested) == read(QWEN25_7B)


def test_embeddings_are_tied_where_the_whole_says_so() -> None:
    assert read(QWEN25_72B, tie_word_embeddings=True).tied_embeddings
    assert not read(QWEN25_72B).tied_embeddings


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (QWEN25_7B, {"vision_config": None}, "vision_config is missing"),
        (
            QWEN25_7B,
            {"vision_config": {**QWEN25_7B["vision_config"], "out_hidden_size": None}},
            "vision_config: out_hidden_size is missing",
        ),
        (QWEN25_7B, {"vision_config": {**QWEN25_7B["vision_config"], "hidden_act": "relu"}}, "hidden_act relu"),
        (
            QWEN25_7B,
            {"vision_config": {**QWEN25_7B["vision_config"], "num_experts": 8}},
            "num_experts is not understood",
        ),
        (QWEN25_7B, {"num_key_value_heads": 9}, "do not divide over 9"),
        (QWEN2_7B, {"vision_config": {**QWEN2_7B["vision_config"], "mlp_ratio": None}}, "mlp_ratio is missing"),
        (QWEN25_72B, {"text_config": {**QWEN25_72B["text_config"], "hidden_act": "gelu"}}, "hidden_act gelu"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
