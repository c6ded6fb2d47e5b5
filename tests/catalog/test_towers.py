"""Towers: their parameters are those that transformers makes."""

from typing import Any

import pytest

from slicewise.catalog import towers
from slicewise.catalog.config import Config
from slicewise.errors import InputError

QWEN3_VL = {"deepstack_visual_indexes": [8, 16, 24], "depth": 27, "hidden_act": "gelu_pytorch_tanh"}
QWEN3_VL |= {"hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "num_heads": 16}
QWEN3_VL |= {"num_position_embeddings": 2304, "out_hidden_size": 5120, "patch_size": 16, "spatial_merge_size": 2}
QWEN3_VL |= {"temporal_patch_size": 2}
SIGLIP = {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16}
SIGLIP |= {"num_hidden_layers": 27, "patch_size": 14, "vision_use_head": False}
GEMMA4_VISION = {"head_dim": 72, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152}
GEMMA4_VISION |= {"intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27}
GEMMA4_VISION |= {"num_key_value_heads": 16, "patch_size": 16, "position_embedding_size": 10240}
GEMMA4_AUDIO = {"conv_kernel_size": 5, "hidden_act": "silu", "hidden_size": 1024, "num_attention_heads": 8}
GEMMA4_AUDIO |= {"num_hidden_layers": 12, "output_proj_dims": 1536, "subsampling_conv_channels": [128, 32]}


def part(keys: dict[str, Any]) -> Config:
    return Config(keys, "config.json: vision_config", "a-family")


# Each count is the towers' and the projectors' modules made with transformers 5.24 on the meta device.
def test_qwen3_visual() -> None:
    assert towers.qwen3_visual(part(QWEN3_VL)) == 33_357_390_064 - 32_762_123_264


def test_siglip() -> None:
    assert towers.siglip(part(SIGLIP), 5376) == 27_432_062_576 - 27_009_002_240


def test_gemma4_vision() -> None:
    assert towers.gemma4_vision(part(GEMMA4_VISION), 2816) == 25_805_933_872 - 25_233_141_760


def test_gemma4_audio() -> None:
    assert towers.gemma4_audio(part(GEMMA4_AUDIO), 2560) == 308_756_768


@pytest.mark.parametrize("channels", [None, [128], [128, "32"], [128, 0], 128])
def test_channels_are_two_counts(channels: Any) -> None:
    with pytest.raises(InputError, match="subsampling_conv_channels"):
        towers.gemma4_audio(part({**GEMMA4_AUDIO, "subsampling_conv_channels": channels}), 2560)
