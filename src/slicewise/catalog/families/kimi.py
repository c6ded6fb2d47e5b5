"""Kimi K2.5: Kimi K2 behind a vision tower."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import nested
from slicewise.catalog.families.deepseek import deepseek_v3
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.towers import moonvit
from slicewise.errors import InputError


def kimi_k25(config: Config) -> ModelRecord:
    """Kimi K2.5."""
    text = nested(config)
    text.ignore("quantization_config")
    record = deepseek_v3(text)
    text.done()
    config.ignore("use_unified_vision_chunk")
    vision = config.part("vision_config")
    if vision is None:
        raise InputError(f"{config.origin}: vision_config is missing; a {config.family} config.json must give it")
    tower, projector = moonvit(vision), _projector(vision, record.d_model)
    vision.done()
    return replace(record, towers={"vision_tower": tower}, more=[*record.more, *projector])


def _projector(config: Config, d_model: int) -> list[list[Any]]:
    """What merges patches and makes them as wide as the language model, of which it is counted a part."""
    config.text("mm_projector_type", "patchmerger", ("patchmerger",))
    config.ignore("projector_hidden_act", "projector_ln_eps")
    width, sides = config.size("mm_hidden_size", "vt_hidden_size"), config.listed("merge_kernel_size")
    if sides is None:
        raise InputError(f"{config.origin}: merge_kernel_size is missing; a {config.family} config.json must give it")
    merged = width * math.prod(config.whole(side, "merge_kernel_size") for side in sides)
    if config.size("text_hidden_size", default=d_model) != d_model:
        raise InputError(f"{config.origin}: text_hidden_size must be {d_model}, the width of the language model")
    return [
        ["mm_projector.pre_norm", [2, width], "norm"],
        ["mm_projector.in_proj", [merged + 1, merged], "other"],
        ["mm_projector.out_proj", [merged + 1, d_model], "other"],
    ]
