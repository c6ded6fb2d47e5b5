"""Mistral Small 3.1 and 3.2 behind a Pixtral tower, and Ministral, whose layers may slide or not."""

from __future__ import annotations

from dataclasses import replace

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
    window,
)
from slicewise.catalog.families.llama import mistral
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.rotary_towers import pixtral, pixtral_projector
from slicewise.errors import InputError

_KINDS = {word: kind for word, kind in LAYER_TYPES.items() if kind in (FULL, SLIDING)}
_HEAD_DIM = 128


def ministral(config: Config) -> ModelRecord:
    """Ministral: layers of `layer_types` slide or see all; without it, all slide where there is a window."""
    config.text("hidden_act", "silu", ("silu",))
    n_layers, sliding = config.layers(), window(config)
    kinds = layer_kinds(config, n_layers, _KINDS) or [SLIDING if sliding else FULL] * n_layers
    if SLIDING in kinds and not config.size("sliding_window", default=0):
        raise config.missing("sliding_window", "layer_types has layers that slide")
    found, words = shape(config), heads(config, must_have_kv_heads=True)
    return assembled(
        found,
        {FULL: {"kind": "attention", **words}, SLIDING: {"kind": "attention", **words, **sliding}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size")}},
        [(kind, "dense") for kind in kinds],
        rotated=words["head_dim"],
    )


def ministral3(config: Config) -> ModelRecord:
    """Ministral 3: Mistral with a window in every layer or in none, and heads of 128 where nothing else is said."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("layer_types", "a Ministral 3 model has layers of one kind; remove it")
    found = shape(config)
    words = heads(config, must_have_kv_heads=True, head_dim=_HEAD_DIM)
    return assembled(
        found,
        {FULL: {"kind": "attention", **words, **window(config)}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size")}},
        [(FULL, "dense")] * config.layers(),
        rotated=words["head_dim"],
    )


def mistral3(config: Config) -> ModelRecord:
    """Mistral Small 3.1 and 3.2, and Ministral 3 with its tower.

    Where nothing says whether embeddings are tied, they are not: the published checkpoints hold an LM head.
    """
    text = nested(config)
    kind = text.text("model_type", "mistral", tuple(_LANGUAGE))
    record = _LANGUAGE[kind](text)
    text.done()
    vision = config.part("vision_config")
    if vision is None:
        raise InputError(f"{config.origin}: vision_config is missing; a {config.family} config.json must give it")
    vision.text("model_type", "pixtral", ("pixtral",))
    tower = pixtral(vision)
    projector = pixtral_projector(config, vision.size("hidden_size"), record.d_model)
    vision.done()
    return replace(record, towers={"vision_tower": tower, "multi_modal_projector": projector})


_LANGUAGE = {"mistral": mistral, "ministral": ministral, "ministral3": ministral3}
"""The language models that there are behind a tower."""
