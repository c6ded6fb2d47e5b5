"""Gemma 1 to 3: tied embeddings, wide heads, and from Gemma 2 on layers that slide between layers that see all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import (
    FULL,
    LAYER_TYPES,
    SLIDING,
    assembled,
    heads,
    layer_kinds,
    nested,
    shape,
    stack,
    window,
)
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.towers import GELU, siglip

HEAD_DIM = 256
"""What transformers takes where `head_dim` is missing, for every Gemma."""
NORMS = ["input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"]
"""The norms of a layer from Gemma 2 on: before and after attention and MLP."""
KINDS = {word: kind for word, kind in LAYER_TYPES.items() if kind in (FULL, SLIDING)}
_GEMMA_2_STEP, _GEMMA_3_STEP = 2, 6


def gemma(config: Config) -> ModelRecord:
    """Gemma 1: every layer attends to all tokens."""
    one_way(config)
    words = {**heads(config, must_have_kv_heads=True, head_dim=HEAD_DIM), **biases(config)}
    return stack(config, attention=words, tied=True)


def gemma2(config: Config) -> ModelRecord:
    """Gemma 2: every second layer slides, the first one too."""
    words = {**heads(config, must_have_kv_heads=True, head_dim=HEAD_DIM), **biases(config)}
    return _sliding(config, shape(config, tied=True), words, step=_GEMMA_2_STEP, tables=1)


def gemma3_text(config: Config) -> ModelRecord:
    """Gemma 3 without a tower: five layers slide, then one sees all."""
    return _gemma3(config, shape(config, tied=True), heads(config, must_have_kv_heads=True, head_dim=HEAD_DIM))


def gemma3(config: Config) -> ModelRecord:
    """Gemma 3 with its tower; its `text_config` leaves out what transformers takes anyhow."""
    text = nested(config)
    found = shape(text, tied=True, vocab_size=262208, max_context=131072)
    record = _gemma3(text, found, heads(text, head_dim=HEAD_DIM, n_heads=8, n_kv_heads=4))
    text.done()
    vision = config.part("vision_config")
    if vision is None:
        return replace(record, left_out=["The vision tower, which the config does not describe, is not counted."])
    tower = siglip(vision, record.d_model)
    vision.done()
    return replace(record, towers={"vision_tower": tower})


def one_way(config: Config) -> None:
    """Refuse what no decoder has: an unknown activation, and attention in both directions.

    Raises:
        UnsupportedModelError: it has.
    """
    for key in ("hidden_act", "hidden_activation"):
        config.text(key, GELU[0], GELU)
    config.refuse("use_bidirectional_attention", "a model that attends in both directions does not decode")


def biases(config: Config) -> dict[str, bool]:
    """Biases of the attention, as its arguments."""
    bias = config.flag("attention_bias")
    return {"qkv_bias": bias, "out_bias": bias}


def _gemma3(config: Config, found: dict[str, Any], words: dict[str, Any]) -> ModelRecord:
    norms = [["q_norm", words["head_dim"], "norm"], ["k_norm", words["head_dim"], "norm"]]
    return _sliding(config, found, {**words, **biases(config), "more": norms}, step=_GEMMA_3_STEP, tables=2)


def _sliding(config: Config, found: dict[str, Any], words: dict[str, Any], *, step: int, tables: int) -> ModelRecord:
    """Every `step`-th layer sees all; sliding layers may have a rotary table of their own, of another base."""
    one_way(config)
    n_layers = config.layers()
    step = config.size("sliding_window_pattern", "_sliding_window_pattern", default=step)
    every = [FULL if (index + 1) % step == 0 else SLIDING for index in range(n_layers)]
    kinds = layer_kinds(config, n_layers, KINDS) or every
    full = {"kind": "attention", **words}
    return assembled(
        found,
        {FULL: full, SLIDING: {**full, **window(config, "sliding_window", "sliding_window_size", default=None)}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size")}},
        [(kind, "dense") for kind in kinds],
        rotated=tables * words["head_dim"],
        norms=NORMS,
    )
