"""Mixtral: counts, where its matrices are, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# https://huggingface.co/mistralai/Mixtral-8x7B-v0.1 config.json; the count is that of its safetensors.
MIXTRAL = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
    "max_position_embeddings": 32768,
    "sliding_window": None,
    "hidden_act": "silu",
}


def read(**changes: Any) -> Model:
    return model_from_config({**MIXTRAL, **changes}, "a-model", "config.json")


def test_every_parameter_is_counted() -> None:
    tensors = [tensor for tensor in weight_tensors(read()) if tensor.stored]
    assert sum(tensor.size for tensor in tensors) == 46_702_792_704
    # The model card: 12.9B of them are active.
    assert sum(tensor.active_size for tensor in tensors) == 12_879_925_248


def test_matrices_are_where_the_checkpoint_has_them() -> None:
    places = {tensor.module for tensor in weight_tensors(read())}
    assert {f"block_sparse_moe.experts.{{expert}}.w{i}" for i in (1, 2, 3)} | {"block_sparse_moe.gate"} <= places


def test_attention_is_full_unless_a_window_is_stated() -> None:
    assert [cache.window for cache in caches(read(sliding_window=4096))] == [4096]
    assert read().layers_by_kind == {"full + experts": 32}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_experts_per_tok": 9}, "num_experts_per_tok is 9, of 8 experts"),
        ({"num_local_experts": None}, "num_local_experts is missing"),
        ({"num_local_experts": 8.0}, "num_local_experts is 8.0"),
        ({"hidden_act": "tanh"}, "hidden_act tanh is not supported"),
        ({"moe_layer_freq": 2}, "moe_layer_freq is not understood"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(**changes)
