"""EXAONE 3 and 4, and K-EXAONE: near to Llama; from 4 on, layers that slide between others, and norms of queries."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import (
    FULL,
    LAYER_TYPES,
    SLIDING,
    assembled,
    first_dense,
    heads,
    layer_kinds,
    routed,
    shape,
    window,
)
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import UnsupportedModelError

_KINDS = {word: kind for word, kind in LAYER_TYPES.items() if kind in (FULL, SLIDING)}
_MLP = {"gate": "c_fc_0", "up": "c_fc_1", "down": "c_proj"}
_FEEDS = {"dense": "dense", "sparse": "experts"}
_LETTERS = {"L": SLIDING, "G": FULL}


def exaone(config: Config) -> ModelRecord:
    """EXAONE 3 and 3.5: Llama by other names (`num_layers`, `activation_function`)."""
    for key in ("activation_function", "hidden_act"):
        config.text(key, "silu", ("silu",))
    found, words, bias = shape(config), heads(config, must_have_kv_heads=True), config.flag("attention_bias")
    config.ignore("layer_norm_epsilon", "embed_dropout")
    d_ff, mlp_bias = config.size("intermediate_size"), config.flag("mlp_bias")
    attention = {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias, "module": "attn.attention"}
    return assembled(
        found,
        {FULL: {**attention, "places": {"o": "out_proj"}}},
        {"dense": {"kind": "dense", "d_ff": d_ff, "bias": mlp_bias, "places": _MLP}},
        [(FULL, "dense")] * config.layers("num_layers", "num_hidden_layers"),
        rotated=words["head_dim"],
    )


def exaone4(config: Config) -> ModelRecord:
    """EXAONE 4; the smaller one has no window."""
    mixers, kinds = _mixing(config)
    return assembled(
        shape(config),
        mixers,
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size")}},
        [(kind, "dense") for kind in kinds],
        rotated=mixers[FULL]["head_dim"],
        norms=["post_attention_layernorm", "post_feedforward_layernorm"],
    )


def exaone_moe(config: Config) -> ModelRecord:
    """K-EXAONE: the attention of EXAONE 4, norms before, and experts after the first layers."""
    mixers, kinds = _mixing(config)
    config.ignore("n_group", "topk_group", "topk_method", "scoring_func")
    experts = routed(config, d_ff="moe_intermediate_size", count=("num_experts", "num_local_experts"))
    shared = config.size("num_shared_experts", least=0) * experts["d_ff"]
    n_layers = len(kinds)
    listed = config.kinds("mlp_layer_types", n_layers, tuple(_FEEDS))
    n_dense = config.size("first_k_dense_replace", default=None if listed is None else 0, least=0)
    feeds = [_FEEDS[word] for word in listed] if listed else first_dense(n_layers, n_dense)
    d_ff = config.size("intermediate_size", default=None if "dense" in feeds else 1)
    record = assembled(
        shape(config),
        mixers,
        {"dense": {"kind": "dense", "d_ff": d_ff}, "experts": {**experts, "shared_d_ff": shared}},
        list(zip(kinds, feeds, strict=True)),
        rotated=mixers[FULL]["head_dim"],
    )
    drafting = layer_size(record, FULL, feeds[-1], mixers)
    return drafted(config, record, drafting, "num_nextn_predict_layers", about=True)


def _mixing(config: Config) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The attention of EXAONE 4, with norms of queries and keys, and which layers slide."""
    config.text("hidden_act", "silu", ("silu",))
    words, n_layers = heads(config, must_have_kv_heads=True), config.layers()
    width = words["head_dim"]
    full = {"kind": "attention", **words, "more": [["q_norm", width, "norm"], ["k_norm", width, "norm"]]}
    kinds = layer_kinds(config, n_layers, _KINDS) or _pattern(config, n_layers)
    config.ignore("sliding_window_pattern")
    if SLIDING in kinds and not config.size("sliding_window", default=0):
        raise config.missing("sliding_window", "layer_types has layers that slide")
    return {FULL: full, SLIDING: {**full, **window(config)}}, kinds


def _pattern(config: Config, n_layers: int) -> list[str]:
    """The mixer of each layer: every so many sees all, or a pattern of L and G that repeats."""
    if not config.has("sliding_window"):
        return [FULL] * n_layers
    if not isinstance(config.keys.get("sliding_window_pattern"), str):
        step = config.size("sliding_window_pattern")
        return [FULL if (at + 1) % step == 0 else SLIDING for at in range(n_layers)]
    letters = config.text("sliding_window_pattern")
    if not letters or set(letters) - set(_LETTERS):
        raise UnsupportedModelError(
            f"{config.origin}: sliding_window_pattern {letters[:40]} is not supported; supported: letters L and G"
        )
    return [_LETTERS[letters[at % len(letters)]] for at in range(n_layers)]
