"""GLM 4, dense, in the words of its makers (`chatglm`) and of transformers; and GLM 4.7 Flash, of latent attention."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, first_dense, heads, rotary_share, shape
from slicewise.catalog.families.deepseek import LATENT, latent, mixture
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.families.phi import FUSED_MLP
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError, UnsupportedModelError

_ROTATED = 0.5
_HEAD_DIM = 128
_NORMS = ["input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"]
_FEEDS = {"dense": "dense", "sparse": "experts"}
_CHATGLM_ATTENTION = {**dict.fromkeys("qkv", "query_key_value"), "o": "dense"}
_CHATGLM_MLP = {"gate": "dense_h_to_4h", "up": "dense_h_to_4h", "down": "dense_4h_to_h"}


def glm(config: Config) -> ModelRecord:
    """GLM 4 9B of transformers: two norms a layer."""
    return _dense(config, ["input_layernorm", "post_attention_layernorm"])


def glm4(config: Config) -> ModelRecord:
    """GLM 4 0414: norms before and after attention and MLP."""
    return _dense(config, _NORMS)


def _dense(config: Config, norms: list[str]) -> ModelRecord:
    config.text("hidden_act", "silu", ("silu",))
    words = heads(config, must_have_kv_heads=True, head_dim=_HEAD_DIM)
    bias = config.flag("attention_bias", default=True)
    return assembled(
        shape(config),
        {FULL: {"kind": "attention", **words, "qkv_bias": bias}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size"), "places": FUSED_MLP}},
        [(FULL, "dense")] * config.layers(),
        rotated=int(words["head_dim"] * rotary_share(config, _ROTATED)),
        norms=norms,
    )


def chatglm(config: Config) -> ModelRecord:
    """ChatGLM 2 and 3 and GLM 4 9B as published: keys and values of a few groups, one matrix of all three.

    Source: `modeling_chatglm.py` of THUDM/glm-4-9b
    """
    for key, meant in (("rmsnorm", True), ("post_layer_norm", True), ("multi_query_attention", True)):
        if config.flag(key, default=meant) != meant:
            raise UnsupportedModelError(f"{config.origin}: {key} must be {str(meant).lower()} for this family")
    for key in ("add_bias_linear", "apply_residual_connection_post_layernorm", "pre_seq_len", "vision_config"):
        config.refuse(key, "is not supported for this family")
    config.ignore(
        "apply_query_key_layer_scaling", "attention_softmax_in_fp32", "bias_dropout_fusion", "fp32_residual_connection",
        "interleaved_qkv", "layernorm_epsilon", "original_rope", "prefix_projection", "quantization_bit", "rope_ratio",
        "vocab_size", "position_encoding_2d",
    )  # fmt: skip
    n_heads, n_layers = config.size("num_attention_heads"), config.layers("num_layers", "num_hidden_layers")
    groups, width = config.size("multi_query_group_num"), config.size("kv_channels")
    found = shape(config, vocab_size=config.size("padded_vocab_size"))
    found["vocab_size"] = config.size("padded_vocab_size")
    if n_heads % groups or n_heads * width != found["d_model"]:
        raise InputError(
            f"{config.origin}: {n_heads} heads of kv_channels {width} must make hidden_size, and divide over"
            f" multi_query_group_num {groups}"
        )
    bias = config.flag("add_qkv_bias")
    words: dict[str, Any] = {"n_heads": n_heads, "n_kv_heads": groups, "head_dim": width, "qkv_bias": bias}
    return assembled(
        found,
        {FULL: {"kind": "attention", **words, "module": "self_attention", "places": _CHATGLM_ATTENTION}},
        {"dense": {"kind": "dense", "d_ff": config.size("ffn_hidden_size"), "places": _CHATGLM_MLP}},
        [(FULL, "dense")] * n_layers,
        rotated=int(width * _ROTATED),
    )


def glm4_moe_lite(config: Config) -> ModelRecord:
    """GLM 4.7 Flash: latent attention, and experts after the first layer."""
    config.text("hidden_act", "silu", ("silu",))
    n_layers, words = config.layers(), latent(config)
    listed = config.kinds("mlp_layer_types", n_layers, tuple(_FEEDS))
    n_dense = config.size("first_k_dense_replace", default=1, least=0)
    feeds = [_FEEDS[word] for word in listed] if listed else first_dense(n_layers, n_dense)
    d_ff = config.size("intermediate_size", default=None if "dense" in feeds else 1)
    record = assembled(
        shape(config),
        {LATENT: words},
        {"dense": {"kind": "dense", "d_ff": d_ff}, "experts": mixture(config)},
        [(LATENT, feed) for feed in feeds],
        rotated=words["qk_rope_head_dim"],
    )
    return drafted(config, record, layer_size(record, LATENT, feeds[-1]), "num_nextn_predict_layers")
