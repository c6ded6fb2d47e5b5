"""Qwen 3 with experts: counts, layers without experts, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# https://huggingface.co/Qwen/Qwen3-30B-A3B config.json; the count is that of its safetensors.
QWEN = {
    "model_type": "qwen3_moe",
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "max_position_embeddings": 40960,
    "max_window_layers": 48,
    "mlp_only_layers": [],
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}


def read(**changes: Any) -> Model:
    return model_from_config({**QWEN, **changes}, "a-model", "config.json")


def test_every_parameter_is_counted() -> None:
    tensors = [tensor for tensor in weight_tensors(read()) if tensor.stored]
    assert sum(tensor.size for tensor in tensors) == 30_532_122_624
    # The model card: 3.3B are active.
    assert 3_300_000_000 <= sum(tensor.active_size for tensor in tensors) < 3_400_000_000


def test_heads_are_as_wide_as_stated() -> None:
    (cache,) = caches(read())
    assert (cache.elements_per_token, cache.n_layers, cache.head_dim) == (2 * 4 * 128, 48, 128)
    assert read().rope_table == (40960, 128)


def test_layers_may_be_dense() -> None:
    # Of layers 0 to 47, every second from 1 on has experts, but for the one that is named.
    model = read(decoder_sparse_step=2, mlp_only_layers=[3])
    assert model.layers_by_kind == {"full + dense": 25, "full + experts": 23}
    assert [model.layers[index].kind for index in range(5)] == [
        "full + dense", "full + experts", "full + dense", "full + dense", "full + dense",
    ]  # fmt: skip


def test_the_number_of_experts_has_two_names() -> None:
    renamed = {**{key: value for key, value in QWEN.items() if key != "num_experts"}, "num_local_experts": 128}
    assert model_from_config(renamed, "a-model", "config.json").n_experts == 128


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head_dim": None}, "head_dim is missing"),
        ({"num_key_value_heads": 3}, "32 query heads do not divide over 3 KV heads"),
        ({"mlp_only_layers": [48]}, "mlp_only_layers holds 48; there are 48 layers"),
        ({"mlp_only_layers": ["1"]}, "mlp_only_layers is '1'"),
        ({"mlp_only_layers": 1}, "mlp_only_layers is 1; it must be a list"),
        ({"use_sliding_window": True}, "use_sliding_window"),
        ({"use_qk_norm": False}, "use_qk_norm"),
        ({"shared_expert_intermediate_size": 512}, "shared_expert_intermediate_size"),
        ({"decoder_sparse_step": 0}, "decoder_sparse_step is 0"),
        ({"num_experts": 4}, "num_experts_per_tok is 8, of 4 experts"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(**changes)
