"""Command A and R7B: counts, layers that slide, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
COMMAND_A: dict[str, Any] = {
    "model_type": "cohere2",
    "hidden_size": 12288,
    "intermediate_size": 36864,
    "num_hidden_layers": 64,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "vocab_size": 256000,
    "max_position_embeddings": 131072,
    "attention_bias": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "sliding_window": 4096,
    "sliding_window_pattern": 4,
    "use_qk_norm": False,
    "position_embedding_type": "rope_gptj",
    "use_gated_activation": True,
    "use_parallel_block": True,
    "use_parallel_embedding": False,
    "use_embedding_sharing": True,
    "layer_switch": 4,
    "order_of_interleaved_layers": "local_attn_first",
}
R7B: dict[str, Any] = {
    "model_type": "cohere2",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 256000,
    "max_position_embeddings": 132096,
    "sliding_window": 4096,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"] * 8,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(COMMAND_A, 111_057_580_032, id="command-a"),
        pytest.param(R7B, 8_028_033_024, id="r7b"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(COMMAND_A, [(48, 2048, 4096, 0), (16, 2048, None, 0)], id="command-a"),
        pytest.param(R7B, [(24, 2048, 4096, 0), (8, 2048, None, 0)], id="r7b"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_embeddings_are_tied() -> None:
    assert read(R7B).tied_embeddings
    assert n_params(read(R7B, tie_word_embeddings=False)) - n_params(read(R7B)) == 256000 * 4096


def test_every_fourth_layer_sees_all_where_nothing_else_is_said() -> None:
    every = {name: value for name, value in R7B.items() if name != "layer_types"}
    assert caches(read(every)) == caches(read(R7B))
    assert len(caches(read(every))[1].layers) == 8
    assert [len(cache.layers) for cache in caches(read({**every, "sliding_window_pattern": 2}))] == [16, 16]


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (COMMAND_A, {"sliding_window": None}, "sliding_window is missing"),
        (COMMAND_A, {"use_qk_norm": True}, "use_qk_norm"),
        (COMMAND_A, {"use_parallel_block": False}, "use_parallel_block must be true"),
        (COMMAND_A, {"order_of_interleaved_layers": "global_attn_first"}, "order_of_interleaved_layers"),
        (COMMAND_A, {"head_dim": 64}, "head_dim is 64"),
        (COMMAND_A, {"num_key_value_heads": 9}, "do not divide over 9"),
        (R7B, {"layer_types": ["full"] * 32}, "layer_types holds"),
        (R7B, {"hidden_act": "gelu"}, "hidden_act gelu"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
