"""Qwen 1.5 and 2 with experts: biases on queries, keys and values, and a shared expert with a gate of its own."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, layer_numbers, routed, shape
from slicewise.catalog.model_record import ModelRecord


def qwen2_moe(config: Config) -> ModelRecord:
    """Qwen 1.5 MoE and Qwen 2 57B: layers of `mlp_only_layers`, and those between every so many, are dense."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("use_sliding_window", "windows of a Qwen 2 MoE model are not supported")
    for unused in ("sliding_window", "max_window_layers"):
        config.size(unused, default=0, least=0)
    n_layers, step = config.layers(), config.size("decoder_sparse_step", default=1)
    plain = layer_numbers(config, "mlp_only_layers", n_layers)
    feeds = ["experts" if (at + 1) % step == 0 and at not in plain else "dense" for at in range(n_layers)]
    config.kinds("layer_types", n_layers, ("full_attention",))
    found, words = shape(config), heads(config, must_have_kv_heads=True)
    experts = {
        **routed(config, d_ff="moe_intermediate_size", count=("num_experts", "num_local_experts")),
        "shared_d_ff": config.size("shared_expert_intermediate_size"),
        "shared_module": "shared_expert",
        "more": [["shared_expert_gate", [found["d_model"], 1], "router"]],
    }
    d_ff = config.size("intermediate_size", default=None if "dense" in feeds else 1)
    return assembled(
        found,
        {FULL: {"kind": "attention", **words, "qkv_bias": config.flag("qkv_bias", default=True)}},
        {"dense": {"kind": "dense", "d_ff": d_ff}, "experts": experts},
        [(FULL, feed) for feed in feeds],
        rotated=words["head_dim"],
    )
