"""Qwen 3 VL: a Qwen 3 language model, dense or of experts, behind a vision tower."""

from __future__ import annotations

from dataclasses import replace

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import nested
from slicewise.catalog.families.llama import qwen3
from slicewise.catalog.families.qwen_moe import qwen3_moe
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.towers import qwen3_visual
from slicewise.errors import InputError


def qwen3_vl(config: Config) -> ModelRecord:
    """Qwen 3 VL, dense."""
    text = nested(config)
    record = qwen3(text)
    text.done()
    return _seeing(config, record)


def qwen3_vl_moe(config: Config) -> ModelRecord:
    """Qwen 3 VL with experts."""
    text = nested(config)
    record = qwen3_moe(text)
    text.done()
    return _seeing(config, record)


def _seeing(config: Config, record: ModelRecord) -> ModelRecord:
    vision = config.part("vision_config")
    if vision is None:
        raise InputError(f"{config.origin}: vision_config is missing; a {config.family} config.json must give it")
    tower = qwen3_visual(vision)
    vision.done()
    return replace(record, towers={"visual": tower})
