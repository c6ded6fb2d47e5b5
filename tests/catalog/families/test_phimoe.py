"""Phi 3.5 MoE: counts, its biases, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
PHI_3_5: dict[str, Any] = {
    "model_type": "phimoe",
    "attention_bias": True,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "input_jitter_noise": 0.01,
    "intermediate_size": 6400,
    "lm_head_bias": True,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 16,
    "original_max_position_embeddings": 4096,
    "router_jitter_noise": 0.01,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "vocab_size": 32064,
}
MINI: dict[str, Any] = {
    "model_type": "phimoe",
    "hidden_size": 4096,
    "intermediate_size": 960,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32064,
    "max_position_embeddings": 4096,
    "attention_bias": True,
    "lm_head_bias": True,
    "num_local_experts": 16,
    "num_experts_per_tok": 2,
    "sliding_window": 2047,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(PHI_3_5, 41_873_153_344, id="phi-3.5"),
        pytest.param(MINI, 7_647_632_704, id="mini"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(PHI_3_5, [(32, 2048, 131072, 0)], id="phi-3.5"),
        pytest.param(MINI, [(32, 2048, 2047, 0)], id="mini"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_norms_have_biases_and_the_head_may() -> None:
    assert n_params(read(PHI_3_5)) - n_params(read(PHI_3_5, lm_head_bias=False)) == 32064
    assert [tensor.size for tensor in weight_tensors(read(PHI_3_5)) if tensor.name == "final_norm_bias"] == [4096]


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (PHI_3_5, {"num_local_experts": None}, "num_local_experts is missing"),
        (PHI_3_5, {"num_experts_per_tok": 17}, "num_experts_per_tok is 17, of 16 experts"),
        (PHI_3_5, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (PHI_3_5, {"lm_head_bias": "yes"}, "lm_head_bias is"),
        (PHI_3_5, {"shared_intermediate_size": 64}, "shared_intermediate_size is not understood"),
        (MINI, {"num_key_value_heads": 9}, "do not divide over 9"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
