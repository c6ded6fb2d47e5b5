"""MiMo V2 Flash: most layers slide, with KV heads and a sink of their own; values are narrower than keys."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, SLIDING, assembled, layer_kinds, rotary_share, shape, switches
from slicewise.catalog.families.deepseek import mixture
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError

_FEEDS = {"dense": "dense", "sparse": "experts"}


def mimo_v2_flash(config: Config) -> ModelRecord:
    """MiMo V2 Flash. A layer that slides reads one token more than its window, the newest, which is not counted."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("attention_bias", "biases of the attention are not supported for this family")
    config.ignore("attention_chunk_size", "attention_value_scale", "swa_rope_theta", "layernorm_epsilon")
    n_layers, full, sliding = config.layers(), _attention(config, ""), _attention(config, "swa_")
    kinds = layer_kinds(config, n_layers, {"full_attention": FULL, "sliding_attention": SLIDING})
    kinds = kinds or _switched(config, "hybrid_layer_pattern", n_layers, (FULL, SLIDING))
    listed = config.kinds("mlp_layer_types", n_layers, tuple(_FEEDS))
    feeds = [_FEEDS[word] for word in listed or ()] or _switched(
        config, "moe_layer_freq", n_layers, ("dense", "experts")
    )
    window = config.size("sliding_window", "sliding_window_size")
    return assembled(
        shape(config),
        {FULL: full, SLIDING: {**sliding, "window": window}},
        {
            "dense": {
                "kind": "dense",
                "d_ff": config.size("intermediate_size", default=None if "dense" in feeds else 1),
            },
            "experts": mixture(config),
        },
        list(zip(kinds, feeds, strict=True)),
        rotated=int(full["head_dim"] * rotary_share(config)),
    )


def _attention(config: Config, prefix: str) -> dict[str, Any]:
    """The arguments of one kind of attention: keys of layers that slide begin with a prefix."""
    n_heads = config.size(f"{prefix}num_attention_heads")
    sinks = config.flag(f"add_{prefix or 'full_'}attention_sink_bias", default=None)
    return {
        "kind": "attention",
        "n_heads": n_heads,
        "n_kv_heads": config.size(f"{prefix}num_key_value_heads"),
        "head_dim": config.size(f"{prefix}head_dim"),
        "value_dim": config.size(f"{prefix}v_head_dim"),
        "more": [["attention_sink_bias", n_heads, "other", ["heads"]]] if sinks else [],
    }


def _switched(config: Config, name: str, n_layers: int, words: tuple[str, str]) -> list[str]:
    """What each layer is, of a list of 0 and 1."""
    values = switches(config, name, n_layers)
    if values is None:
        raise InputError(f"{config.origin}: {name} is missing; a {config.family} config.json must give it")
    return [words[value] for value in values]
