"""Qwen 2 VL and Qwen 2.5 VL: a Qwen 2 language model behind a vision tower, its keys flat or in `text_config`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import nested
from slicewise.catalog.families.llama import qwen2
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.rotary_towers import qwen2_5_visual, qwen2_visual
from slicewise.errors import InputError


def qwen2_vl(config: Config) -> ModelRecord:
    """Qwen 2 VL."""
    return _seeing(config, qwen2_visual)


def qwen2_5_vl(config: Config) -> ModelRecord:
    """Qwen 2.5 VL."""
    return _seeing(config, qwen2_5_visual)


def _seeing(config: Config, counted: Callable[[Config], int]) -> ModelRecord:
    """Configs of the makers are flat; those that transformers has saved again nest the language model."""
    text = nested(config) if config.has("text_config") else config
    record = qwen2(text)
    if text is not config:
        text.done()
        # What newer configs nest, some still repeat outside.
        config.ignore(*text.keys)
    vision = config.part("vision_config")
    if vision is None:
        raise InputError(f"{config.origin}: vision_config is missing; a {config.family} config.json must give it")
    tower = counted(vision)
    vision.done()
    return replace(record, towers={"visual": tower})
