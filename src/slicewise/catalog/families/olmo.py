"""OLMo 1, OLMo 3 and OLMoE; OLMo 2 is in `llama_kin`."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import (
    FULL,
    LAYER_TYPES,
    SLIDING,
    assembled,
    heads,
    layer_kinds,
    routed,
    shape,
    stack,
    window,
)
from slicewise.catalog.model_record import ModelRecord

_KINDS = {word: kind for word, kind in LAYER_TYPES.items() if kind in (FULL, SLIDING)}
_STEP = 4


def olmo(config: Config) -> ModelRecord:
    """OLMo 1: norms without weights."""
    config.text("hidden_act", "silu", ("silu",))
    bias = config.flag("attention_bias")
    return stack(config, attention={"qkv_bias": bias, "out_bias": bias}, norms=[], final_norm=False)


def olmo3(config: Config) -> ModelRecord:
    """OLMo 3: OLMo 2, and every fourth layer sees all; only those stretch their positions, so there are two tables."""
    words, n_layers = _attention(config), config.layers()
    every = [FULL if (at + 1) % _STEP == 0 else SLIDING for at in range(n_layers)]
    return assembled(
        shape(config),
        {FULL: words, SLIDING: {**words, **window(config, default=None)}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size")}},
        [(kind, "dense") for kind in layer_kinds(config, n_layers, _KINDS) or every],
        rotated=2 * words["head_dim"],
        norms=["post_attention_layernorm", "post_feedforward_layernorm"],
    )


def olmoe(config: Config) -> ModelRecord:
    """OLMoE: experts in every layer."""
    words = _attention(config)
    return assembled(
        shape(config),
        {FULL: words},
        {"experts": routed(config, d_ff="intermediate_size", count=("num_experts", "num_local_experts"))},
        [(FULL, "experts")] * config.layers(),
        rotated=words["head_dim"],
    )


def _attention(config: Config) -> dict[str, Any]:
    """Attention with norms of queries and keys over all heads."""
    config.text("hidden_act", "silu", ("silu",))
    words, bias = heads(config), config.flag("attention_bias")
    sides = {"q_norm": words["n_heads"], "k_norm": words["n_kv_heads"]}
    norms = [[name, count * words["head_dim"], "norm"] for name, count in sides.items()]
    return {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias, "more": norms}
