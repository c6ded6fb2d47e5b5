"""Phi 3.5 MoE: norms with biases, and experts in every layer."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, routed, shape, window
from slicewise.catalog.families.mixtral import MODULE, PLACES
from slicewise.catalog.model_record import ModelRecord


def phimoe(config: Config) -> ModelRecord:
    """Phi 3.5 MoE; its LM head may have a bias."""
    config.text("hidden_act", "silu", ("silu",))
    config.ignore("input_jitter_noise", "router_jitter_noise")
    found, words, bias = shape(config), heads(config, must_have_kv_heads=True), config.flag("attention_bias")
    head = [["lm_head_bias", found["vocab_size"], "bias"]] if config.flag("lm_head_bias") else []
    experts = routed(config, d_ff="intermediate_size", count=("num_local_experts",))
    return assembled(
        found,
        {FULL: {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias, **window(config)}},
        {"experts": {**experts, "module": MODULE, "places": PLACES}},
        [(FULL, "experts")] * config.layers(),
        rotated=words["head_dim"],
        norm_bias=True,
        more=head,
    )
