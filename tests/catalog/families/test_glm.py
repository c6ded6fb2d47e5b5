"""GLM 4.5: counts by hand, caches on data-parallel ranks, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.ranks import kv_bytes_per_token_per_chip
from slicewise.spec.tensors import caches, weight_tensors

# https://huggingface.co/zai-org/GLM-4.5-Air config.json
AIR = {
    "model_type": "glm4_moe",
    "attention_bias": True,
    "first_k_dense_replace": 1,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 10944,
    "max_position_embeddings": 131072,
    "moe_intermediate_size": 1408,
    "n_group": 1,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_attention_heads": 96,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 46,
    "num_key_value_heads": 8,
    "num_nextn_predict_layers": 1,
    "partial_rotary_factor": 0.5,
    "rope_scaling": None,
    "routed_scaling_factor": 1.0,
    "tie_word_embeddings": False,
    "topk_group": 1,
    "torch_dtype": "bfloat16",
    "use_qk_norm": False,
    "vocab_size": 151552,
}


def read(**changes: Any) -> Model:
    return model_from_config({**AIR, **changes}, "a-model", "config.json")


def size(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


def test_every_parameter_is_counted() -> None:
    attention = 4096 * (2 * 96 + 2 * 8) * 128 + (96 + 2 * 8) * 128
    experts = 129 * 3 * 4096 * 1408 + 128 * 4096
    layers = 46 * (attention + 2 * 4096) + 3 * 4096 * 10944 + 45 * experts
    assert size(read()) == layers + 2 * 151552 * 4096 + 4096 == 106_852_245_504
    active = sum(tensor.active_size for tensor in weight_tensors(read()) if tensor.stored)
    # The model card: 106B, of which 12B are active, beside the embeddings.
    assert (active - 2 * 151552 * 4096) // 10**9 == 12


def test_the_larger_one_has_norms_of_queries_and_keys() -> None:
    assert size(read(use_qk_norm=True)) - size(read()) == 46 * 2 * 128


def test_half_of_a_head_is_rotated() -> None:
    assert read().rope_table == (131072, 64)


def test_a_draft_layer_is_left_out_and_said() -> None:
    (said,) = read().left_out
    assert said.startswith("num_nextn_predict_layers: 1 layer")
    assert read(num_nextn_predict_layers=0).left_out == ()


def test_cache_of_a_token_over_four_tensor_ranks() -> None:
    """46 layers of 8 heads of 128, two heads a rank, whatever data-parallel groups there are beside it."""
    assert kv_bytes_per_token_per_chip(caches(read()), 2, 4) == 46 * 2 * 2 * 128 * 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head_dim": None}, "head_dim is missing"),
        ({"num_key_value_heads": 5}, "96 query heads do not divide over 5 KV heads"),
        ({"first_k_dense_replace": None}, "first_k_dense_replace"),
        ({"num_experts_per_tok": 129}, "num_experts_per_tok is 129, of 128 experts"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"sliding_window": 4096}, "sliding_window"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(**changes)
