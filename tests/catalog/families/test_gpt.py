"""GPT-2 and its kin: counts, one KV head or groups of them, learned positions, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

GPT2 = {"model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024}
GPT2 |= {"vocab_size": 50257}
STARCODER = {"model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_inner": 24576, "n_layer": 40}
STARCODER |= {"n_positions": 8192, "multi_query": True, "vocab_size": 49152}
NEOX_20B = {"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576, "num_attention_heads": 64}
NEOX_20B |= {"num_hidden_layers": 44, "max_position_embeddings": 2048, "vocab_size": 50432, "rotary_pct": 0.25}
OPT_6_7B = {"model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "num_attention_heads": 32}
OPT_6_7B |= {
    "num_hidden_layers": 32,
    "max_position_embeddings": 2048,
    "vocab_size": 50272,
    "activation_function": "relu",
}
OPT_6_7B |= {"word_embed_proj_dim": 4096, "do_layer_norm_before": True, "layerdrop": 0.0}
FALCON_7B = {"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32}
FALCON_7B |= {"vocab_size": 65024, "multi_query": True, "new_decoder_architecture": False, "num_kv_heads": 71}
FALCON_7B |= {"parallel_attn": True, "bias": False, "alibi": False}
FALCON_40B = {**FALCON_7B, "hidden_size": 8192, "num_attention_heads": 128, "num_hidden_layers": 60}
FALCON_40B |= {"new_decoder_architecture": True, "num_kv_heads": 8}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


@pytest.mark.parametrize(
    ("keys", "n_params"),
    [
        # Counted by making each model with transformers 5.24 on the meta device.
        pytest.param(GPT2, 124_439_808, id="gpt2"),
        pytest.param({**GPT2, "n_embd": 1600, "n_head": 25, "n_layer": 48}, 1_557_611_200, id="gpt2-xl"),
        pytest.param(STARCODER, 15_517_456_384, id="starcoder"),
        pytest.param(NEOX_20B, 20_554_567_680, id="gpt-neox-20b"),
        pytest.param(OPT_6_7B, 6_658_473_984, id="opt-6.7b"),
        pytest.param(FALCON_7B, 6_921_720_704, id="falcon-7b"),
        pytest.param(FALCON_40B, 41_303_293_952, id="falcon-40b"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], n_params: int) -> None:
    assert sum(tensor.size for tensor in weight_tensors(read(keys)) if tensor.stored) == n_params


@pytest.mark.parametrize(
    ("keys", "n_kv_heads"),
    [
        (GPT2, 12),
        (STARCODER, 1),
        ({**STARCODER, "multi_query": False}, 48),
        (FALCON_7B, 1),
        ({**FALCON_7B, "multi_query": False}, 71),
        (FALCON_40B, 8),
    ],
)
def test_keys_and_values_are_of_so_many_heads(keys: dict[str, Any], n_kv_heads: int) -> None:
    (cache,) = caches(read(keys))
    assert cache.n_heads == n_kv_heads
    assert cache.elements_per_token == 2 * n_kv_heads * cache.head_dim


def test_positions_are_learned_or_rotated() -> None:
    assert read(NEOX_20B).rope_table == (2048, 24)
    assert read(FALCON_7B).rope_table == (2048, 64)
    assert read(FALCON_7B, alibi=True).rope_table == (0, 0)
    for keys, rows in ((GPT2, 1024), (STARCODER, 8192), (OPT_6_7B, 2048 + 2)):
        model = read(keys)
        (table,) = [tensor for tensor in weight_tensors(model) if tensor.name == "position_embedding"]
        assert (table.size, model.rope_table) == (rows * model.d_model, (0, 0))


@pytest.mark.parametrize(
    ("changes", "vectors"),
    [
        # One norm of a weight and a bias a layer is 2 x 4,544 x 32 parameters.
        ({"parallel_attn": False}, 1),
        ({"num_ln_in_parallel_attn": 2}, 1),
        ({"num_ln_in_parallel_attn": 1}, 0),
    ],
)
def test_falcon_has_one_norm_a_layer_or_two(changes: dict[str, Any], vectors: int) -> None:
    n_params = sum(tensor.size for tensor in weight_tensors(read(FALCON_7B, **changes)) if tensor.stored)
    assert n_params == 6_921_720_704 + vectors * 2 * 4544 * 32


def test_matrices_are_where_the_checkpoint_has_them() -> None:
    for keys, places in (
        (GPT2, {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}),
        (OPT_6_7B, {"self_attn.q_proj", "self_attn.out_proj", "fc1", "fc2"}),
        (NEOX_20B, {"attention.query_key_value", "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"}),
    ):
        assert places <= {tensor.module for tensor in weight_tensors(read(keys))}


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (GPT2, {"add_cross_attention": True}, "add_cross_attention"),
        (GPT2, {"activation_function": "swish"}, "activation_function swish"),
        (GPT2, {"n_positions": None}, "n_positions is missing"),
        (OPT_6_7B, {"word_embed_proj_dim": 512}, "word_embed_proj_dim"),
        (OPT_6_7B, {"do_layer_norm_before": False}, "do_layer_norm_before"),
        (NEOX_20B, {"rotary_pct": 0}, "rotary_pct is 0"),
        (NEOX_20B, {"hidden_act": "silu"}, "hidden_act silu"),
        (FALCON_40B, {"num_kv_heads": 7}, "128 query heads do not divide over 7 KV heads"),
        (FALCON_7B, {"multi_query": "yes"}, "multi_query is 'yes'"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
