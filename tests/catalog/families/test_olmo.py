"""OLMo 1, OLMo 3 and OLMoE: counts, windows, norms over all heads, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
OLMO: dict[str, Any] = {
    "model_type": "olmo",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 50304,
    "max_position_embeddings": 2048,
    "clip_qkv": None,
}
OLMO3_7B: dict[str, Any] = {
    "model_type": "olmo3",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 100278,
    "max_position_embeddings": 65536,
    "sliding_window": 4096,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"] * 8,
}
OLMO3_32B: dict[str, Any] = {
    "model_type": "olmo3",
    "hidden_size": 5120,
    "intermediate_size": 27648,
    "num_hidden_layers": 64,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "vocab_size": 100278,
    "max_position_embeddings": 65536,
    "sliding_window": 4096,
}
OLMOE: dict[str, Any] = {
    "model_type": "olmoe",
    "hidden_size": 2048,
    "intermediate_size": 1024,
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": 50304,
    "max_position_embeddings": 4096,
    "num_experts": 64,
    "num_experts_per_tok": 8,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(OLMO, 6_888_095_744, id="olmo"),
        pytest.param(OLMO3_7B, 7_298_011_136, id="olmo3-7b"),
        pytest.param(OLMO3_32B, 32_233_522_176, id="olmo3-32b"),
        pytest.param(OLMOE, 6_919_161_856, id="olmoe"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(OLMO, [(32, 8192, None, 0)], id="olmo"),
        pytest.param(OLMO3_7B, [(24, 8192, 4096, 0), (8, 8192, None, 0)], id="olmo3-7b"),
        pytest.param(OLMO3_32B, [(48, 2048, 4096, 0), (16, 2048, None, 0)], id="olmo3-32b"),
        pytest.param(OLMOE, [(16, 4096, None, 0)], id="olmoe"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_olmo_1_has_no_norm_weights() -> None:
    assert [tensor for tensor in weight_tensors(read(OLMO)) if tensor.role == "norm"] == []


def test_norms_are_over_all_heads() -> None:
    sizes = {tensor.name: tensor.size // 64 for tensor in weight_tensors(read(OLMO3_32B)) if tensor.role == "norm"}
    assert (sizes["q_norm"], sizes["k_norm"]) == (40 * 128, 8 * 128)


def test_layers_that_see_all_have_a_rotary_table_of_their_own() -> None:
    assert read(OLMO3_7B).rope_table == (65536, 256)


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (OLMO, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (OLMO, {"num_experts": 8}, "num_experts is not understood"),
        (OLMO3_7B, {"sliding_window": None}, "sliding_window is missing"),
        (OLMO3_7B, {"layer_types": ["sliding_attention"] * 31}, "layer_types has 31 entries"),
        (OLMO3_7B, {"num_key_value_heads": 5}, "do not divide over 5"),
        (OLMOE, {"num_experts": None}, "num_experts is missing"),
        (OLMOE, {"num_experts_per_tok": 65}, "num_experts_per_tok is 65"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
