"""Hunyuan: counts, lists of sizes that are alike in every layer, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
DENSE: dict[str, Any] = {
    "model_type": "hunyuan_v1_dense",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128167,
    "max_position_embeddings": 262144,
    "head_dim": 128,
    "attention_head_dim": 128,
    "use_qk_norm": True,
    "use_cla": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "num_experts": 1,
    "num_shared_expert": 1,
    "moe_topk": 1,
}
A13B: dict[str, Any] = {
    "model_type": "hunyuan_v1_moe",
    "hidden_size": 4096,
    "intermediate_size": 3072,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128167,
    "max_position_embeddings": 32768,
    "head_dim": 128,
    "attention_head_dim": 128,
    "use_qk_norm": True,
    "use_cla": False,
    "cla_share_factor": 2,
    "tie_word_embeddings": True,
    "num_experts": 64,
    "moe_topk": [8] * 32,
    "moe_intermediate_size": [3072] * 32,
    "num_shared_expert": [1] * 32,
    "use_mixed_mlp_moe": True,
    "moe_layer_num_skipped": 0,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(DENSE, 7_504_568_320, id="dense"),
        pytest.param(A13B, 80_393_183_232, id="a13b"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(DENSE, [(32, 2048, None, 0)], id="dense"),
        pytest.param(A13B, [(32, 2048, None, 0)], id="a13b"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_a_number_is_as_good_as_a_list() -> None:
    assert read(A13B, moe_topk=8, moe_intermediate_size=3072, num_shared_expert=1) == read(A13B)


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (DENSE, {"num_experts": 8}, "num_experts"),
        (DENSE, {"use_qk_norm": False}, "use_qk_norm must be true"),
        (DENSE, {"use_cla": True}, "use_cla"),
        (DENSE, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (A13B, {"moe_topk": [*[8] * 31, 4]}, "moe_topk: layers that differ"),
        (A13B, {"moe_topk": 65}, "moe_topk is 65, of 64 experts"),
        (A13B, {"num_shared_expert": [2] * 32}, "num_shared_expert 1"),
        (A13B, {"moe_intermediate_size": [1024] * 32}, "moe_intermediate_size must be"),
        (A13B, {"use_mixed_mlp_moe": False}, "use_mixed_mlp_moe must be true"),
        (A13B, {"moe_layer_num_skipped": 2}, "moe_layer_num_skipped"),
        (A13B, {"num_experts": None}, "num_experts is missing"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
