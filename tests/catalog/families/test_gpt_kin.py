"""BLOOM, MPT, GPT-J, CodeGen, Persimmon and DBRX: counts, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
BLOOM: dict[str, Any] = {
    "model_type": "bloom",
    "n_embed": 14336,
    "n_layer": 70,
    "n_head": 112,
    "vocab_size": 250880,
    "seq_length": 2048,
    "attention_softmax_in_fp32": True,
    "masked_softmax_fusion": True,
    "offset_alibi": 100,
    "skip_bias_add": True,
    "skip_bias_add_qkv": False,
    "slow_but_exact": False,
    "apply_residual_connection_post_layernorm": False,
}
MPT: dict[str, Any] = {
    "model_type": "mpt",
    "d_model": 4096,
    "n_heads": 32,
    "n_layers": 32,
    "expansion_ratio": 4,
    "max_seq_len": 2048,
    "vocab_size": 50432,
    "no_bias": True,
    "attn_config": {
        "alibi": True,
        "alibi_bias_max": 8,
        "attn_impl": "torch",
        "attn_type": "multihead_attention",
        "attn_uses_sequence_id": False,
        "clip_qkv": None,
        "prefix_lm": False,
        "qk_ln": False,
        "softmax_scale": None,
    },
}
GPT_J: dict[str, Any] = {
    "model_type": "gptj",
    "activation_function": "gelu_new",
    "n_embd": 4096,
    "n_head": 16,
    "n_inner": None,
    "n_layer": 28,
    "n_positions": 2048,
    "rotary": True,
    "rotary_dim": 64,
    "scale_attn_weights": True,
    "tie_word_embeddings": False,
    "vocab_size": 50400,
}
CODEGEN: dict[str, Any] = {
    "model_type": "codegen",
    "n_embd": 6144,
    "n_layer": 34,
    "n_head": 24,
    "n_positions": 2048,
    "n_ctx": 2048,
    "n_inner": None,
    "rotary_dim": 64,
    "vocab_size": 51200,
}
PERSIMMON: dict[str, Any] = {
    "model_type": "persimmon",
    "hidden_size": 4096,
    "intermediate_size": 16384,
    "num_hidden_layers": 36,
    "num_attention_heads": 64,
    "vocab_size": 262144,
    "max_position_embeddings": 16384,
    "hidden_act": "relu2",
    "qk_layernorm": True,
    "partial_rotary_factor": 0.5,
}
DBRX: dict[str, Any] = {
    "model_type": "dbrx",
    "d_model": 6144,
    "n_heads": 48,
    "n_layers": 40,
    "max_seq_len": 32768,
    "vocab_size": 100352,
    "tie_word_embeddings": False,
    "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": "", "rope_theta": 500000},
    "ffn_config": {
        "ffn_hidden_size": 10752,
        "model_type": "",
        "moe_jitter_eps": 0.01,
        "moe_loss_weight": 0.05,
        "moe_num_experts": 16,
        "moe_top_k": 4,
    },
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(BLOOM, 176_247_271_424, id="bloom"),
        pytest.param(MPT, 6_649_286_656, id="mpt"),
        pytest.param(GPT_J, 6_050_882_784, id="gpt-j"),
        pytest.param(CODEGEN, 16_032_155_648, id="codegen"),
        pytest.param(PERSIMMON, 9_397_175_296, id="persimmon"),
        pytest.param(DBRX, 131_596_523_520, id="dbrx"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(BLOOM, [(70, 28672, None, 0)], id="bloom"),
        pytest.param(MPT, [(32, 8192, None, 0)], id="mpt"),
        pytest.param(GPT_J, [(28, 8192, None, 0)], id="gpt-j"),
        pytest.param(CODEGEN, [(34, 12288, None, 0)], id="codegen"),
        pytest.param(PERSIMMON, [(36, 8192, None, 0)], id="persimmon"),
        pytest.param(DBRX, [(40, 2048, None, 0)], id="dbrx"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_bloom_and_mpt_have_slopes_in_place_of_positions() -> None:
    assert read(BLOOM).rope_table == read(MPT).rope_table == (0, 0)
    assert read(MPT).max_context_tokens == 2048


def test_newer_configs_of_bloom_say_hidden_size() -> None:
    renamed = {"hidden_size" if name == "n_embed" else name: value for name, value in BLOOM.items()}
    assert read(renamed) == read(BLOOM)


def test_a_fused_matrix_is_named_as_in_the_checkpoint() -> None:
    places = {tensor.name: tensor.module for tensor in weight_tensors(read(DBRX))}
    assert (places["wq"], places["router"]) == ("norm_attn_norm.attn.Wqkv", "ffn.router.layer")


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (BLOOM, {"n_layer": None}, "n_layer is missing"),
        (BLOOM, {"n_head": 100}, "does not divide by 100 heads"),
        (MPT, {"attn_config": None}, "attn_config is missing"),
        (MPT, {"no_bias": False}, "no_bias"),
        (MPT, {"expansion_ratio": 8}, "expansion_ratio"),
        (MPT, {"attn_config": {"alibi": True, "attn_type": "multiquery_attention"}}, "attn_type multiquery_attention"),
        (MPT, {"attn_config": {"alibi": False}}, "attn_config.alibi"),
        (MPT, {"attn_config": {"alibi": True, "kv_n_heads": 4}}, "kv_n_heads is not understood"),
        (GPT_J, {"activation_function": "silu"}, "activation_function silu"),
        (CODEGEN, {"n_embd": None}, "hidden_size is missing"),
        (PERSIMMON, {"hidden_act": "silu"}, "hidden_act silu"),
        (DBRX, {"ffn_config": None}, "ffn_config is missing"),
        (DBRX, {"attn_config": {"kv_n_heads": 7}}, "kv_n_heads"),
        (
            DBRX,
            {"ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 4, "moe_top_k": 5}},
            "moe_top_k is 5, of 4 experts",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
