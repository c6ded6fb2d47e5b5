"""BLOOM, MPT, GPT-J, CodeGen, Persimmon and DBRX: before or beside Llama, each with its own norms and biases."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, rotary_share, routed, shape
from slicewise.catalog.families.gpt import GELU
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError, UnsupportedModelError

_MLP = 4
_PERSIMMON_SHARE = 0.5
_ROTARY_DIM = 64
_FUSED = "query_key_value"


def bloom(config: Config) -> ModelRecord:
    """BLOOM: slopes in place of positions, and a norm after the embedding. Older configs say `n_embed`."""
    width = config.size("n_embed", "hidden_size")
    others = {name: value for name, value in config.keys.items() if name != "n_embed"}
    renamed = Config({**others, "hidden_size": width}, config.origin, config.family)
    record = _bloom(renamed)
    renamed.done()
    config.ignore(*config.keys)
    return record


def _bloom(config: Config) -> ModelRecord:
    config.ignore(
        "apply_residual_connection_post_layernorm", "attention_softmax_in_fp32", "masked_softmax_fusion",
        "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "slow_but_exact", "unk_token_id", "bias_dropout_fusion",
    )  # fmt: skip
    found, words = shape(config, tied=True), heads(config)
    d_model = found["d_model"]
    return assembled(
        found,
        {FULL: _attention(words, "self_attention", _FUSED, "dense")},
        {"dense": _mlp(config.size("n_inner", default=_MLP * d_model), "dense_h_to_4h", "dense_4h_to_h")},
        [(FULL, "dense")] * config.layers("n_layer", "num_hidden_layers"),
        rotated=0,
        norm_bias=True,
        more=[["embedding_norm", d_model, "norm"], ["embedding_norm_bias", d_model, "bias"]],
    )


def gptj(config: Config) -> ModelRecord:
    """GPT-J: attention without biases and an MLP with them, side by side behind one norm."""
    return _parallel(config, {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"})


def codegen(config: Config) -> ModelRecord:
    """CodeGen: GPT-J with one matrix of queries, keys and values."""
    return _parallel(config, {**dict.fromkeys("qkv", "qkv_proj"), "o": "out_proj"})


def _parallel(config: Config, places: dict[str, str]) -> ModelRecord:
    config.text("activation_function", GELU[0], GELU)
    config.ignore("n_ctx", "rotary")
    found, words = shape(config), heads(config)
    d_ff = config.size("n_inner", "intermediate_size", default=_MLP * found["d_model"])
    return assembled(
        found,
        {FULL: {"kind": "attention", **words, "module": "attn", "places": places}},
        {"dense": _mlp(d_ff, "fc_in", "fc_out")},
        [(FULL, "dense")] * config.layers("n_layer", "num_hidden_layers"),
        rotated=config.size("rotary_dim", default=_ROTARY_DIM),
        norms=["ln_1"],
        norm_bias=True,
        more=[["lm_head_bias", found["vocab_size"], "bias"]],
    )


def persimmon(config: Config) -> ModelRecord:
    """Persimmon: an MLP of squares, biases everywhere, and norms of queries and keys."""
    config.text("hidden_act", "relu2", ("relu2",))
    found, words = shape(config), heads(config)
    width = words["head_dim"]
    norms = [
        [f"{side}_layernorm{end}", width, role] for side in "qk" for end, role in (("", "norm"), ("_bias", "bias"))
    ]
    attention = _attention(words, "self_attn", _FUSED, "dense")
    return assembled(
        found,
        {FULL: {**attention, "more": norms if config.flag("qk_layernorm", default=True) else []}},
        {"dense": _mlp(config.size("intermediate_size"), "dense_h_to_4h", "dense_4h_to_h")},
        [(FULL, "dense")] * config.layers(),
        rotated=int(width * rotary_share(config, _PERSIMMON_SHARE)),
        norm_bias=True,
    )


def mpt(config: Config) -> ModelRecord:
    """MPT: slopes in place of positions, no gate, and norms without biases."""
    found = shape(config, tied=True)
    words = config.part("attn_config")
    if words is None:
        raise config.missing("attn_config")
    if not config.flag("no_bias", default=None) or not words.flag("alibi", default=None):
        raise UnsupportedModelError(f"{config.origin}: no_bias and attn_config.alibi must be true for this family")
    words.text("attn_type", "multihead_attention", ("multihead_attention",))
    words.refuse("qk_ln", "norms of queries and keys are not supported for this family")
    words.refuse("prefix_lm", "attention in both directions is not supported")
    words.ignore("attn_impl", "attn_uses_sequence_id", "alibi_bias_max", "softmax_scale")
    words.done()
    config.refuse("use_norm_bias", "biases of norms are not supported for this family")
    config.ignore("init_config", "init_device", "embedding_fraction", "verbose", "emb_pdrop", "learned_pos_emb")
    config.text("norm_type", "low_precision_layernorm", ("low_precision_layernorm", "layernorm"))
    limit, n_heads = config.size("max_seq_len"), config.size("n_heads")
    if found["d_model"] % n_heads:
        raise InputError(f"{config.origin}: d_model {found['d_model']} does not divide by n_heads {n_heads}")
    sizes = {"n_heads": n_heads, "n_kv_heads": n_heads, "head_dim": found["d_model"] // n_heads}
    places = {**dict.fromkeys("qkv", "Wqkv"), "o": "out_proj"}
    config.refuse("expansion_ratio", "an MLP that is not four times as wide as the model is not supported", but=_MLP)
    d_ff = _MLP * found["d_model"]
    feed = {"kind": "dense", "d_ff": d_ff, "gated": False, "module": "ffn", "places": _up_down("up_proj", "down_proj")}
    return assembled(
        {**found, "max_context_tokens": limit},
        {FULL: {"kind": "attention", **sizes, "module": "attn", "places": places}},
        {"dense": feed},
        [(FULL, "dense")] * config.layers("n_layers"),
        rotated=0,
        norms=["norm_1", "norm_2"],
    )


def dbrx(config: Config) -> ModelRecord:
    """DBRX: sixteen experts in every layer, and norms without biases."""
    attention, forward = config.part("attn_config"), config.part("ffn_config")
    if attention is None or forward is None:
        raise config.missing("attn_config" if attention is None else "ffn_config")
    attention.ignore("model_type", "rope_theta", "clip_qkv", "attn_pdrop")
    forward.ignore("model_type", "hidden_size", "ffn_act_fn", "moe_loss_weight", "moe_normalize_expert_weights")
    forward.ignore("moe_jitter_eps", "uniform_expert_assignment")
    config.ignore("emb_pdrop", "resid_pdrop")
    found, n_heads, n_kv_heads = shape(config), config.size("n_heads"), attention.size("kv_n_heads")
    if found["d_model"] % n_heads or n_heads % n_kv_heads:
        raise InputError(f"{config.origin}: d_model must divide by n_heads, and n_heads by kv_n_heads; check the file")
    width = found["d_model"] // n_heads
    words = {"n_heads": n_heads, "n_kv_heads": n_kv_heads, "head_dim": width, "module": "norm_attn_norm.attn"}
    experts = routed(forward, d_ff="ffn_hidden_size", count=("moe_num_experts",), active="moe_top_k")
    for part in (attention, forward):
        part.done()
    return assembled(
        {**found, "max_context_tokens": config.size("max_seq_len")},
        {FULL: {"kind": "attention", **words, "places": {**dict.fromkeys("qkv", "Wqkv"), "o": "out_proj"}}},
        {"experts": {**experts, "module": "ffn", "router_module": "router.layer", "expert_module": "experts.mlp"}},
        [(FULL, "experts")] * config.layers("n_layers"),
        rotated=width,
        norms=["norm_1", "norm_2"],
    )


def _attention(words: dict[str, int], module: str, fused: str, out: str) -> dict[str, Any]:
    """Attention with biases, whose queries, keys and values are one matrix."""
    places = {**dict.fromkeys("qkv", fused), "o": out}
    return {"kind": "attention", **words, "qkv_bias": True, "out_bias": True, "module": module, "places": places}


def _mlp(d_ff: int, up: str, down: str) -> dict[str, Any]:
    """An MLP with biases and without a gate."""
    return {"kind": "dense", "d_ff": d_ff, "gated": False, "bias": True, "places": _up_down(up, down)}


def _up_down(up: str, down: str) -> dict[str, str]:
    return {"up": up, "down": down}
