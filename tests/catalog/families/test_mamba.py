"""Mamba, Falcon Mamba and Mamba 2: counts, states, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
MAMBA: dict[str, Any] = {
    "model_type": "mamba",
    "hidden_size": 2560,
    "num_hidden_layers": 64,
    "vocab_size": 50280,
    "expand": 2,
    "conv_kernel": 4,
    "use_bias": False,
    "use_conv_bias": True,
    "hidden_act": "silu",
    "state_size": 16,
    "time_step_rank": 160,
}
FALCON: dict[str, Any] = {
    "model_type": "falcon_mamba",
    "hidden_size": 4096,
    "num_hidden_layers": 64,
    "vocab_size": 65024,
    "expand": 2,
    "conv_kernel": 4,
    "use_bias": False,
    "use_conv_bias": True,
    "hidden_act": "silu",
    "state_size": 16,
    "time_step_rank": 256,
    "tie_word_embeddings": False,
}
CODESTRAL: dict[str, Any] = {
    "model_type": "mamba2",
    "hidden_size": 4096,
    "num_hidden_layers": 64,
    "vocab_size": 32768,
    "expand": 2,
    "conv_kernel": 4,
    "use_bias": False,
    "use_conv_bias": True,
    "hidden_act": "silu",
    "state_size": 128,
    "num_heads": 128,
    "head_dim": 64,
    "n_groups": 8,
    "tie_word_embeddings": False,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(MAMBA, 2_768_345_600, id="mamba"),
        pytest.param(FALCON, 7_272_665_088, id="falcon"),
        pytest.param(CODESTRAL, 7_285_403_648, id="codestral"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(MAMBA, [(64, 0, None, 194560)], id="mamba"),
        pytest.param(FALCON, [(64, 0, None, 311296)], id="falcon"),
        pytest.param(CODESTRAL, [(64, 0, None, 2158592)], id="codestral"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_a_rank_may_be_left_to_the_width() -> None:
    assert read(MAMBA, time_step_rank="auto") == read(MAMBA)


def test_a_state_has_the_dtype_of_the_weights() -> None:
    """5,120 channels of 16, and three inputs of the short convolution."""
    (state,) = caches(read(MAMBA))
    assert state.state_bytes == 2 * (5120 * 16 + 5120 * 3)
    (wide,) = caches(read(MAMBA, torch_dtype="float32"))
    assert wide.state_bytes == 4 * 5120 * 16 + 2 * 5120 * 3


def test_nothing_grows_with_the_sequence() -> None:
    assert [cache.elements_per_token for cache in caches(read(CODESTRAL))] == [0]
    assert read(CODESTRAL).rope_table == (0, 0)


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (MAMBA, {"state_size": None}, "state_size is missing"),
        (MAMBA, {"time_step_rank": None}, "time_step_rank is missing"),
        (MAMBA, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (MAMBA, {"num_attention_heads": 8}, "num_attention_heads is not understood"),
        (CODESTRAL, {"num_heads": 64}, "num_heads times head_dim must be expand times hidden_size"),
        (CODESTRAL, {"n_groups": 5}, "5 groups do not divide"),
        (CODESTRAL, {"n_groups": None}, "n_groups is missing"),
        (FALCON, {"conv_kernel": 0}, "conv_kernel is 0"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
