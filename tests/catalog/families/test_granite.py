"""Granite 3 and 4: counts, states, experts beside an MLP, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
DENSE: dict[str, Any] = {
    "model_type": "granite",
    "hidden_size": 4096,
    "intermediate_size": 12800,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 49152,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "mlp_bias": False,
    "attention_multiplier": 0.0078125,
    "embedding_multiplier": 12,
    "residual_multiplier": 0.22,
    "logits_scaling": 16,
}
EXPERTS: dict[str, Any] = {
    "model_type": "granitemoe",
    "hidden_size": 1536,
    "intermediate_size": 512,
    "num_hidden_layers": 32,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "vocab_size": 49155,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "num_local_experts": 40,
    "num_experts_per_tok": 8,
    "attention_multiplier": 0.0078125,
    "embedding_multiplier": 12,
    "residual_multiplier": 0.22,
    "logits_scaling": 16,
}
SHARED: dict[str, Any] = {
    "model_type": "granitemoeshared",
    "hidden_size": 1536,
    "intermediate_size": 512,
    "num_hidden_layers": 32,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "vocab_size": 49155,
    "max_position_embeddings": 131072,
    "num_local_experts": 40,
    "num_experts_per_tok": 8,
    "shared_intermediate_size": 1024,
}
HYBRID: dict[str, Any] = {
    "model_type": "granitemoehybrid",
    "hidden_size": 4096,
    "intermediate_size": 768,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 100352,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "layer_types": [
        *["mamba"] * 5,
        "attention",
        *["mamba"] * 9,
        "attention",
        *["mamba"] * 9,
        "attention",
        *["mamba"] * 9,
        "attention",
        *["mamba"] * 4,
    ],
    "num_local_experts": 72,
    "num_experts_per_tok": 10,
    "shared_intermediate_size": 1536,
    "position_embedding_type": "nope",
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 256,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
    "attention_multiplier": 0.0078125,
    "embedding_multiplier": 12,
    "residual_multiplier": 0.22,
    "logits_scaling": 16,
}
MICRO: dict[str, Any] = {
    "model_type": "granitemoehybrid",
    "hidden_size": 2560,
    "intermediate_size": 8192,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "vocab_size": 100352,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "layer_types": ["attention"] * 40,
    "num_local_experts": 0,
    "num_experts_per_tok": 0,
    "shared_intermediate_size": 8192,
    "position_embedding_type": "rope",
    "mamba_n_heads": 80,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 256,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(DENSE, 8_170_835_968, id="dense"),
        pytest.param(EXPERTS, 3_298_793_472, id="experts"),
        pytest.param(SHARED, 3_525_290_496, id="shared"),
        pytest.param(HYBRID, 32_207_337_984, id="hybrid"),
        pytest.param(MICRO, 3_402_836_480, id="micro"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(DENSE, [(40, 2048, None, 0)], id="dense"),
        pytest.param(EXPERTS, [(32, 1024, None, 0)], id="experts"),
        pytest.param(SHARED, [(32, 1024, None, 0)], id="shared"),
        pytest.param(HYBRID, [(36, 0, None, 2147840), (4, 2048, None, 0)], id="hybrid"),
        pytest.param(MICRO, [(40, 1024, None, 0)], id="micro"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_a_state_has_the_dtype_of_the_weights() -> None:
    """A matrix of 8,192 channels by 128, and three inputs of the short convolution, 16 bits each."""
    (state,) = (cache for cache in caches(read(HYBRID)) if cache.state_bytes)
    assert state.state_bytes == 2 * 8192 * 128 + 2 * 3 * (8192 + 2 * 128)


def test_only_layers_that_attend_with_positions_have_a_rotary_table() -> None:
    assert read(HYBRID).rope_table == (0, 0)
    assert read(MICRO).rope_table == (131072, 64)


def test_layers_may_be_named_as_transformers_does() -> None:
    named = ["linear_attention" if word == "mamba" else "full_attention" for word in HYBRID["layer_types"]]
    assert read(HYBRID, layer_types=named) == read(HYBRID)


def test_a_shared_mlp_stands_beside_the_experts() -> None:
    places = {tensor.name: tensor.module for tensor in weight_tensors(read(HYBRID)) if tensor.module}
    assert places["shared_up"] == "shared_mlp.up_proj"
    assert places["router"] == "block_sparse_moe.router.layer"


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (DENSE, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (DENSE, {"num_key_value_heads": 9}, "do not divide over 9"),
        (DENSE, {"num_local_experts": 8}, "num_local_experts is not understood"),
        (EXPERTS, {"shared_intermediate_size": 512}, "shared_intermediate_size"),
        (EXPERTS, {"num_experts_per_tok": 41}, "num_experts_per_tok is 41, of 40 experts"),
        (EXPERTS, {"mlp_bias": True}, "mlp_bias"),
        (SHARED, {"shared_intermediate_size": None}, "shared_intermediate_size is missing"),
        (HYBRID, {"layer_types": None}, "layer_types is missing"),
        (HYBRID, {"layer_types": ["conv"] * 40}, "layer_types holds"),
        (HYBRID, {"mamba_d_head": 32}, "mamba_d_head times mamba_n_heads"),
        (HYBRID, {"mamba_n_groups": 3}, "3 groups do not divide"),
        (HYBRID, {"mamba_d_state": None}, "mamba_d_state is missing"),
        (HYBRID, {"position_embedding_type": "alibi"}, "position_embedding_type alibi"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
