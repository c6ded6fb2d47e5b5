"""LFM 2: counts, what a short convolution keeps, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
DENSE: dict[str, Any] = {
    "model_type": "lfm2",
    "hidden_size": 2048,
    "intermediate_size": 12288,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 65536,
    "max_position_embeddings": 128000,
    "block_auto_adjust_ff_dim": True,
    "block_ff_dim": 12288,
    "block_dim": 2048,
    "block_ffn_dim_multiplier": 1.0,
    "block_multiple_of": 256,
    "conv_L_cache": 3,
    "conv_bias": False,
    "conv_dim": 2048,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14],
    "tie_embedding": True,
}
EXPERTS: dict[str, Any] = {
    "model_type": "lfm2_moe",
    "hidden_size": 2048,
    "intermediate_size": 7168,
    "num_hidden_layers": 24,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 65536,
    "max_position_embeddings": 128000,
    "conv_L_cache": 3,
    "conv_bias": False,
    "moe_intermediate_size": 1792,
    "num_dense_layers": 2,
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "use_expert_bias": True,
    "layer_types": [
        *["conv"] * 2,
        "full_attention",
        *["conv"] * 3,
        "full_attention",
        *["conv"] * 3,
        "full_attention",
        *["conv"] * 3,
        "full_attention",
        *["conv"] * 3,
        "full_attention",
        *["conv"] * 2,
        "full_attention",
        *["conv"] * 2,
    ],
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(DENSE, 1_170_340_608, id="dense"),
        pytest.param(EXPERTS, 8_339_929_856, id="experts"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(DENSE, [(10, 0, None, 8192), (6, 1024, None, 0)], id="dense"),
        pytest.param(EXPERTS, [(18, 0, None, 8192), (6, 1024, None, 0)], id="experts"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_a_list_of_words_wins_over_numbers() -> None:
    words = ["full_attention" if at in DENSE["full_attn_idxs"] else "conv" for at in range(16)]
    assert read(DENSE, layer_types=words, full_attn_idxs=None) == read(DENSE)


def test_the_width_of_the_mlp_is_two_thirds_rounded_up_unless_switched_off() -> None:
    assert read(DENSE).d_ff == 8192
    assert read(DENSE, block_ff_dim=12290).d_ff == 8448
    assert read(DENSE, block_auto_adjust_ff_dim=False).d_ff == 12288


def test_embeddings_are_tied_unless_either_key_says_no() -> None:
    assert read(DENSE).tied_embeddings
    assert not read(DENSE, tie_embedding=False).tied_embeddings
    assert read(EXPERTS).tied_embeddings


def test_biases_of_a_convolution() -> None:
    assert n_params(read(DENSE, conv_bias=True)) - n_params(read(DENSE)) == 10 * 5 * 2048


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (DENSE, {"full_attn_idxs": [16]}, "full_attn_idxs holds 16"),
        (DENSE, {"full_attn_idxs": None}, "layer_types is missing"),
        (DENSE, {"conv_L_cache": None}, "conv_L_cache is missing"),
        (DENSE, {"block_ffn_dim_multiplier": -1}, "block_ffn_dim_multiplier is -1"),
        (EXPERTS, {"layer_types": None}, "layer_types is missing"),
        (EXPERTS, {"layer_types": ["mamba"] * 24}, "layer_types holds"),
        (EXPERTS, {"num_dense_layers": None}, "num_dense_layers is missing"),
        (EXPERTS, {"num_experts_per_tok": 33}, "num_experts_per_tok is 33"),
        (EXPERTS, {"num_key_value_heads": 9}, "do not divide over 9"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
