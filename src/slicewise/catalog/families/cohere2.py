"""Command A and Command R7B: Cohere's parallel layers, three of which slide for each one that sees all."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import (
    FULL,
    LAYER_TYPES,
    SLIDING,
    assembled,
    heads,
    layer_kinds,
    shape,
    window,
)
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError

_KINDS = {word: kind for word, kind in LAYER_TYPES.items() if kind in (FULL, SLIDING)}
_STEP = 4


def cohere2(config: Config) -> ModelRecord:
    """Every fourth layer sees all tokens, and has no positions; heads are as wide as the model over their count."""
    config.text("hidden_act", "silu", ("silu",))
    config.text("position_embedding_type", "rope_gptj", ("rope_gptj",))
    config.text("order_of_interleaved_layers", "local_attn_first", ("local_attn_first",))
    config.refuse("use_qk_norm", "norms of queries and keys are not supported for this family")
    for key in ("use_gated_activation", "use_parallel_block"):
        if not config.flag(key, default=True):
            raise InputError(f"{config.origin}: {key} must be true; the layers of this family are parallel and gated")
    config.ignore("use_embedding_sharing", "use_parallel_embedding", "layer_switch", "rotary_pct")
    found, words, bias = shape(config, tied=True), heads(config, must_have_kv_heads=True), config.flag("attention_bias")
    if words["head_dim"] * words["n_heads"] != found["d_model"]:
        raise InputError(
            f"{config.origin}: head_dim is {words['head_dim']}, and must be hidden_size over num_attention_heads"
        )
    n_layers, step = config.layers(), config.size("sliding_window_pattern", "_sliding_window_pattern", default=_STEP)
    every = [FULL if (at + 1) % step == 0 else SLIDING for at in range(n_layers)]
    full = {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias}
    return assembled(
        found,
        {FULL: full, SLIDING: {**full, **window(config, default=None)}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size")}},
        [(kind, "dense") for kind in layer_kinds(config, n_layers, _KINDS) or every],
        rotated=words["head_dim"],
        norms=["input_layernorm"],
    )
