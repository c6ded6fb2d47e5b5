"""GPT-2 and its kin: MLPs without a gate, norms and matrices with biases, often learned positions and one KV head."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, shape
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import UnsupportedModelError

GELU = ("gelu_new", "gelu", "gelu_pytorch_tanh", "gelu_fast")
_MLP = 4
_NEOX_SHARE = 0.25
_OPT_OFFSET = 2
"""OPT's first position is the third row of its table."""


def gpt2(config: Config) -> ModelRecord:
    """GPT-2."""
    config.refuse("add_cross_attention", "an encoder is not supported")
    return _gpt2(config, heads(config))


def gpt_bigcode(config: Config) -> ModelRecord:
    """SantaCoder and StarCoder: GPT-2 with one KV head, unless `multi_query` is false."""
    config.refuse("add_cross_attention", "an encoder is not supported")
    words = heads(config)
    return _gpt2(config, {**words, "n_kv_heads": 1} if config.flag("multi_query", default=True) else words)


def gpt_neox(config: Config) -> ModelRecord:
    """GPT-NeoX and Pythia: rotary positions on a part of each head."""
    config.text("hidden_act", "gelu", GELU)
    found, words, bias = shape(config), heads(config), config.flag("attention_bias", default=True)
    return assembled(
        found,
        {FULL: _attention(words, "attention", "query_key_value", "dense", bias=bias)},
        {"dense": _mlp(config.size("intermediate_size"), "mlp", "dense_h_to_4h", "dense_4h_to_h")},
        [(FULL, "dense")] * config.layers(),
        rotated=int(words["head_dim"] * config.number("rotary_pct", _NEOX_SHARE, most=1.0)),
        norm_bias=True,
    )


def opt(config: Config) -> ModelRecord:
    """OPT, but for 350M, whose embedding is narrower than its layers."""
    config.text("activation_function", "relu", ("relu", *GELU))
    found, words, bias = shape(config, tied=True), heads(config), config.flag("enable_bias", default=True)
    config.ignore("layerdrop")
    if config.size("word_embed_proj_dim", default=found["d_model"]) != found["d_model"]:
        raise UnsupportedModelError(
            f"{config.origin}: word_embed_proj_dim: an embedding of another width than the layers"
        )
    if not config.flag("do_layer_norm_before", default=True):
        raise UnsupportedModelError(f"{config.origin}: do_layer_norm_before: norms after attention are not supported")
    weights = config.flag("layer_norm_elementwise_affine", default=True)
    rows = config.size("max_position_embeddings") + _OPT_OFFSET
    return assembled(
        found,
        {FULL: _attention(words, "self_attn", None, "out_proj", bias=bias)},
        {"dense": _mlp(config.size("ffn_dim"), "", "fc1", "fc2", bias=bias)},
        [(FULL, "dense")] * config.layers(),
        rotated=0,
        norms=["attention_norm", "mlp_norm"] if weights else [],
        final_norm=not config.flag("_remove_final_layer_norm") and weights,
        norm_bias=weights,
        more=[["position_embedding", [rows, found["d_model"]], "other"]],
    )


def falcon(config: Config) -> ModelRecord:
    """Falcon: one KV head, or the groups of its newer architecture; norms are one a layer or two."""
    config.text("activation", "gelu", GELU)
    found, words, bias = shape(config, tied=True, max_context=2048), heads(config), config.flag("bias")
    new, parallel = config.flag("new_decoder_architecture"), config.flag("parallel_attn", default=True)
    config.ignore("apply_residual_connection_post_layernorm")
    grouped, single = config.size("num_kv_heads", default=words["n_heads"]), config.flag("multi_query", default=True)
    words["n_kv_heads"] = grouped if new or not single else 1
    norms = config.size("num_ln_in_parallel_attn", default=2 if new else 1)
    d_ff = config.size("ffn_hidden_size", default=_MLP * found["d_model"])
    return assembled(
        found,
        {FULL: _attention(words, "self_attention", "query_key_value", "dense", bias=bias)},
        {"dense": _mlp(d_ff, "mlp", "dense_h_to_4h", "dense_4h_to_h", bias=bias)},
        [(FULL, "dense")] * config.layers(),
        rotated=0 if config.flag("alibi") else words["head_dim"],
        norms=["input_layernorm"] if parallel and norms == 1 else ["ln_attn", "ln_mlp"],
        norm_bias=True,
        reduces_once=parallel,
    )


def _gpt2(config: Config, words: dict[str, int]) -> ModelRecord:
    config.text("activation_function", GELU[0], GELU)
    config.ignore("n_ctx")
    found = shape(config, tied=True)
    rows = config.size("n_positions", "max_position_embeddings")
    d_ff = config.size("n_inner", "intermediate_size", default=_MLP * found["d_model"])
    return assembled(
        found,
        {FULL: _attention(words, "attn", "c_attn", "c_proj")},
        {"dense": _mlp(d_ff, "mlp", "c_fc", "c_proj")},
        [(FULL, "dense")] * config.layers("n_layer", "num_hidden_layers"),
        rotated=0,
        norm_bias=True,
        more=[["position_embedding", [rows, found["d_model"]], "other"]],
    )


def _attention(words: dict[str, int], module: str, fused: str | None, out: str, *, bias: bool = True) -> dict[str, Any]:
    """Attention whose queries, keys and values are one matrix, or three of the usual names."""
    places = {"o": out, **(dict.fromkeys("qkv", fused) if fused else {})}
    return {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias, "module": module, "places": places}


def _mlp(d_ff: int, module: str, up: str, down: str, *, bias: bool = True) -> dict[str, Any]:
    places = {"up": up, "down": down}
    return {"kind": "dense", "d_ff": d_ff, "gated": False, "bias": bias, "module": module, "places": places}
