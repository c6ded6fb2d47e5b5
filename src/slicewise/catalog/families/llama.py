"""Llama 1 to 3, Mistral, and Qwen 1.5 to 3: dense, gated, grouped-query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, SLIDING, layer_kinds, layers_of, stack
from slicewise.catalog.model_record import ModelRecord

_MISTRAL_WINDOW = 4096


def llama(config: Config) -> ModelRecord:
    """Llama, Yi, CodeLlama: biases only where the config says so."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("sliding_window", "is no key of a llama model; remove it for full attention")
    bias = config.flag("attention_bias")
    return stack(config, attention={"qkv_bias": bias, "out_bias": bias}, feed_forward={"bias": config.flag("mlp_bias")})


def mistral(config: Config) -> ModelRecord:
    """Mistral: every layer looks back as far as `sliding_window`, which is 4,096 where the key is missing."""
    config.text("hidden_act", "silu", ("silu",))
    missing = "sliding_window" not in config.keys and "sliding_window_size" not in config.keys
    window = config.size("sliding_window", "sliding_window_size", default=_MISTRAL_WINDOW if missing else 0)
    return stack(config, attention={"window": window} if window else {}, must_have_kv_heads=True)


def qwen2(config: Config) -> ModelRecord:
    """Qwen 1.5, 2 and 2.5: biases on queries, keys and values."""
    config.text("hidden_act", "silu", ("silu",))
    config.ignore("attention_bias")
    return with_windows(config, stack(config, attention={"qkv_bias": True}, must_have_kv_heads=True))


def qwen3(config: Config) -> ModelRecord:
    """Qwen 3: norms of queries and keys instead of biases."""
    config.text("hidden_act", "silu", ("silu",))
    return with_windows(config, stack(config, attention=qwen3_attention(config), must_have_kv_heads=True))


def qwen3_attention(config: Config) -> dict[str, Any]:
    """What the attention of Qwen 3 has beyond heads: their width of 128, and norms of queries and keys."""
    head_dim, bias = config.size("head_dim", default=128), config.flag("attention_bias")
    norms = [["q_norm", head_dim, "norm"], ["k_norm", head_dim, "norm"]]
    return {"head_dim": head_dim, "qkv_bias": bias, "out_bias": bias, "more": norms}


def with_windows(config: Config, record: ModelRecord) -> ModelRecord:
    """Qwen's windows: layers from `max_window_layers` on slide, where `use_sliding_window` says so."""
    n_layers = config.layers()
    window, first = (
        config.size("sliding_window", default=0, least=0),
        config.size("max_window_layers", default=0, least=0),
    )
    listed = layer_kinds(config, n_layers)
    if not config.flag("use_sliding_window") or not window:
        return record
    kinds = listed or [SLIDING if index >= first else FULL for index in range(n_layers)]
    (feed, *_), full = record.feed_forwards, record.mixers[FULL]
    return replace(
        record,
        mixers={FULL: full, SLIDING: {**full, "window": window}},
        layers=layers_of(kinds, [feed] * n_layers),
    )
