"""gpt-oss: layers that slide and layers that see all by turns, a sink for each head, and experts with biases."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, SLIDING, assembled, heads, layer_kinds, routed, shape
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError


def gpt_oss(config: Config) -> ModelRecord:
    """gpt-oss 20b and 120b."""
    config.text("hidden_act", "silu", ("silu",))
    config.ignore("initial_context_length", "experts_per_token", "swiglu_limit", "swiglu_alpha")
    kinds = layer_kinds(config, config.layers(), {"full_attention": FULL, "sliding_attention": SLIDING})
    if kinds is None:
        raise InputError(f"{config.origin}: layer_types is missing; a {config.family} config.json must give it")
    words, bias = heads(config, must_have_kv_heads=True), config.flag("attention_bias", default=True)
    config.size("head_dim")
    attention = {
        "kind": "attention",
        **words,
        "qkv_bias": bias,
        "out_bias": bias,
        "more": [["sinks", words["n_heads"], "other", ["heads"]]],
    }
    experts = routed(config, d_ff="intermediate_size", count=("num_local_experts", "num_experts"))
    return assembled(
        shape(config),
        {FULL: attention, SLIDING: {**attention, "window": config.size("sliding_window")}},
        {"experts": {**experts, "bias": True, "router_module": "router"}},
        [(kind, "experts") for kind in kinds],
        rotated=words["head_dim"],
    )
