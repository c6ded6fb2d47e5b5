"""Llama 4: layers that attend within a chunk between layers that see all, and experts in all layers or every second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import (
    CHUNKED,
    FULL,
    LAYER_TYPES,
    assembled,
    heads,
    layer_kinds,
    layer_numbers,
    nested,
    routed,
    shape,
)
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.towers import llama4_vision
from slicewise.errors import InputError

KINDS = {word: kind for word, kind in LAYER_TYPES.items() if kind in (FULL, CHUNKED)}
MODULE = "feed_forward"
_INTERVAL = 4


def llama4(config: Config) -> ModelRecord:
    """Llama 4, without its vision tower."""
    text = nested(config)
    record = llama4_text(text)
    text.done()
    vision, size = config.part("vision_config"), "which the config does not describe"
    if vision is not None:
        size = f"{llama4_vision(vision, record.d_model):,} parameters with its projector"
        vision.done()
    return replace(record, left_out=[f"The vision tower, {size}, is not counted."])


def llama4_text(config: Config) -> ModelRecord:
    """The language model of Llama 4; it normalises queries and keys without weights."""
    config.text("hidden_act", "silu", ("silu",))
    config.ignore("use_qk_norm", "attn_temperature_tuning", "attn_scale", "floor_scale")
    n_layers, bias = config.layers(), config.flag("attention_bias")
    words = {**heads(config, must_have_kv_heads=True), "qkv_bias": bias, "out_bias": bias}
    full = {"kind": "attention", **words}
    experts = routed(config, d_ff="intermediate_size", count=("num_local_experts", "num_experts"))
    shared = {"shared_d_ff": experts["d_ff"], "shared_module": "shared_expert"}
    dense = {"kind": "dense", "d_ff": config.size("intermediate_size_mlp"), "module": MODULE}
    return assembled(
        shape(config),
        {FULL: full, CHUNKED: {**full, **_chunk(config)}},
        {"dense": dense, "experts": {**experts, **shared, "module": MODULE, "router_module": "router"}},
        list(zip(_mixers(config, n_layers), _feed_forwards(config, n_layers), strict=True)),
        rotated=words["head_dim"],
    )


def _chunk(config: Config) -> dict[str, Any]:
    """The chunk of layers that have one; null says that they see all, and a missing key nothing.

    Raises:
        InputError: it is missing.
    """
    if "attention_chunk_size" not in config.keys:
        raise InputError(
            f"{config.origin}: attention_chunk_size is missing; a {config.family} config.json must give it"
        )
    size = config.size("attention_chunk_size", default=0)
    return {"window": size, "chunked": True} if size else {}


def _mixers(config: Config, n_layers: int) -> list[str]:
    """Layers with rotary positions attend within a chunk; every fourth has none and sees all, where nothing is said."""
    interval = config.size("no_rope_layer_interval", default=_INTERVAL)
    rotary = config.listed("no_rope_layers") or [int((index + 1) % interval != 0) for index in range(n_layers)]
    if len(rotary) != n_layers or any(flag not in (0, 1) for flag in rotary):
        raise InputError(f"{config.origin}: no_rope_layers must hold a 0 or a 1 for each of {n_layers} layers")
    return layer_kinds(config, n_layers, KINDS) or [CHUNKED if flag else FULL for flag in rotary]


def _feed_forwards(config: Config, n_layers: int) -> list[str]:
    """Layers of `moe_layers` have experts; every `interleave_moe_layer_step`-th where the list is missing."""
    if config.has("moe_layers"):
        listed = layer_numbers(config, "moe_layers", n_layers)
        config.ignore("interleave_moe_layer_step")
    else:
        step = config.size("interleave_moe_layer_step")
        listed = set(range(step - 1, n_layers, step))
    return ["experts" if index in listed else "dense" for index in range(n_layers)]
