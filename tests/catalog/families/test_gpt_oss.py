"""gpt-oss: counts, windows, sinks and biases, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of the config.json of openai/gpt-oss-120b that matter here, and how gpt-oss-20b differs.
LARGE: dict[str, Any] = {
    "model_type": "gpt_oss",
    "attention_bias": True,
    "experts_per_token": 4,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2880,
    "initial_context_length": 4096,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "max_position_embeddings": 131072,
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "num_local_experts": 128,
    "sliding_window": 128,
    "vocab_size": 201088,
}
SMALL = {
    **LARGE,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "num_hidden_layers": 24,
    "num_local_experts": 32,
}


def _model(keys: dict[str, Any]) -> Model:
    return model_from_config(keys, "model", "config.json")


@pytest.mark.parametrize(("keys", "n_params"), [(LARGE, 116_829_156_672), (SMALL, 20_914_757_184)], ids=["120b", "20b"])
def test_counts_are_those_of_transformers(keys, n_params):
    assert sum(tensor.size for tensor in weight_tensors(_model(keys)) if tensor.stored) == n_params


def test_half_the_layers_keep_a_window():
    sliding, full = caches(_model(LARGE))
    assert (sliding.n_layers, sliding.window, sliding.elements_per_token) == (18, 128, 2 * 8 * 64)
    assert (full.n_layers, full.window, full.elements_per_token) == (18, float("inf"), 2 * 8 * 64)


def test_one_request_takes_what_vllm_says():
    # vLLM's log: 4.54 GiB for 131,072 tokens, with windows of 74 blocks of 16, for batches of 1,024 tokens.
    sliding, full = caches(_model(LARGE))
    blocks = -(-(sliding.window - 1 + 1024) // 16) + 1
    held = (
        full.n_layers * full.elements_per_token * 131072 + sliding.n_layers * sliding.elements_per_token * blocks * 16
    )
    assert round(2 * held / 1024**3, 2) == 4.54


def test_every_head_has_a_sink_and_every_expert_biases():
    sizes = {tensor.name: tensor.dims for tensor in weight_tensors(_model(SMALL))}
    assert sizes["sinks"][-1][1] == 64
    assert [size for _, size in sizes["expert_down_bias"]] == [24, 32, 2880]
    assert [size for _, size in sizes["router_bias"]] == [24, 32]


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"layer_types": None}, InputError, "layer_types"),
        ({"layer_types": ["chunked_attention"] * 36}, UnsupportedModelError, "layer_types"),
        ({"layer_types": ["full_attention"] * 35}, InputError, "layer_types"),
        ({"sliding_window": None}, InputError, "sliding_window"),
        ({"head_dim": None}, InputError, "head_dim"),
        ({"hidden_act": "gelu"}, UnsupportedModelError, "hidden_act"),
        ({"num_experts_per_tok": 256}, InputError, "num_experts_per_tok"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**LARGE, **change})
