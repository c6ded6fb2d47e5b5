"""Qwen 1.5 and 2 with experts: counts, the shared expert and its gate, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
A2_7B: dict[str, Any] = {
    "model_type": "qwen2_moe",
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "max_position_embeddings": 32768,
    "max_window_layers": 21,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
    "num_key_value_heads": 16,
    "sliding_window": 32768,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
    "decoder_sparse_step": 1,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
    "num_experts_per_tok": 4,
    "num_experts": 60,
}
A14B: dict[str, Any] = {
    "model_type": "qwen2_moe",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 151936,
    "max_position_embeddings": 32768,
    "decoder_sparse_step": 1,
    "moe_intermediate_size": 2560,
    "num_experts": 64,
    "num_experts_per_tok": 8,
    "shared_expert_intermediate_size": 20480,
    "use_sliding_window": False,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(A2_7B, 14_315_784_192, id="a2.7b"),
        pytest.param(A14B, 57_408_658_944, id="a14b"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(A2_7B, [(24, 4096, None, 0)], id="a2.7b"),
        pytest.param(A14B, [(28, 1024, None, 0)], id="a14b"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_layers_between_may_be_dense() -> None:
    model = read(A2_7B, decoder_sparse_step=2, mlp_only_layers=[1])
    assert model.layers_by_kind == {"full + dense": 13, "full + experts": 11}


def test_biases_are_there_unless_the_config_says_no() -> None:
    assert n_params(read(A2_7B)) - n_params(read(A2_7B, qkv_bias=False)) == 24 * 3 * 2048


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (A2_7B, {"use_sliding_window": True}, "use_sliding_window"),
        (A2_7B, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (A2_7B, {"shared_expert_intermediate_size": None}, "shared_expert_intermediate_size is missing"),
        (A2_7B, {"num_experts_per_tok": 61}, "num_experts_per_tok is 61, of 60 experts"),
        (A2_7B, {"mlp_only_layers": [24]}, "mlp_only_layers holds 24"),
        (A2_7B, {"num_key_value_heads": 3}, "do not divide over 3"),
        (A2_7B, {"layer_types": ["sliding_attention"] * 24}, "layer_types"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
