"""ERNIE 4.5: counts, where experts are, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
DENSE: dict[str, Any] = {
    "model_type": "ernie4_5",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 18,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "vocab_size": 103424,
    "max_position_embeddings": 131072,
    "head_dim": 128,
    "tie_word_embeddings": True,
    "use_bias": False,
}
A3B: dict[str, Any] = {
    "model_type": "ernie4_5_moe",
    "hidden_size": 2560,
    "intermediate_size": 12288,
    "num_hidden_layers": 28,
    "num_attention_heads": 20,
    "num_key_value_heads": 4,
    "vocab_size": 103424,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "use_bias": False,
    "moe_intermediate_size": 1536,
    "moe_k": 6,
    "moe_num_experts": 64,
    "moe_num_shared_experts": 2,
    "moe_layer_start_index": 1,
    "moe_layer_end_index": -1,
    "moe_layer_interval": 1,
    "moe_capacity": [64, 64, 64],
    "moe_use_aux_free": True,
    "weight_share_add_bias": True,
    "num_nextn_predict_layers": 1,
}
A47B: dict[str, Any] = {
    "model_type": "ernie4_5_moe",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 54,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 103424,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "use_bias": False,
    "moe_intermediate_size": 3584,
    "moe_k": 8,
    "moe_num_experts": 64,
    "moe_num_shared_experts": 0,
    "moe_layer_start_index": 3,
    "moe_layer_end_index": 53,
    "moe_layer_interval": 1,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(DENSE, 360_748_032, id="dense"),
        pytest.param(A3B, 21_825_437_888, id="a3b"),
        pytest.param(A47B, 299_484_163_264, id="a47b"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(DENSE, [(18, 512, None, 0)], id="dense"),
        pytest.param(A3B, [(28, 1024, None, 0)], id="a3b"),
        pytest.param(A47B, [(54, 2048, None, 0)], id="a47b"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_experts_are_in_a_run_of_layers() -> None:
    assert read(A47B).layers_by_kind == {"full + dense": 3, "full + experts": 51}
    assert read(A3B, moe_layer_interval=2, moe_layer_end_index=11).layers_by_kind == {
        "full + dense": 22, "full + experts": 6,
    }  # fmt: skip


def test_what_drafts_is_said_and_not_counted() -> None:
    (said,) = read(A3B).left_out
    assert said.startswith("num_nextn_predict_layers: 1 layer")


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (DENSE, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (A3B, {"use_bias": True}, "use_bias"),
        (A3B, {"moe_num_experts": None}, "moe_num_experts is missing"),
        (A3B, {"moe_k": 65}, "moe_k is 65, of 64 experts"),
        (A3B, {"moe_layer_start_index": None}, "moe_layer_start_index is missing"),
        (A3B, {"moe_num_shared_experts": None}, "moe_num_shared_experts is missing"),
        (A3B, {"sliding_window": 512}, "sliding_window"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
