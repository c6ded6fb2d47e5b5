"""Vision towers with rotary positions: what each part adds, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.config import Config
from slicewise.catalog.rotary_towers import pixtral, pixtral_projector, qwen2_5_visual, qwen2_visual
from slicewise.errors import InputError

QWEN2: dict[str, Any] = {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "num_heads": 16}
QWEN2 |= {"in_channels": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
QWEN2_5: dict[str, Any] = {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 3584}
QWEN2_5 |= {"num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
PIXTRAL: dict[str, Any] = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16}
PIXTRAL |= {"num_hidden_layers": 24, "patch_size": 14, "image_size": 1540, "head_dim": 64}


def part(keys: dict[str, Any], **changes: Any) -> Config:
    return Config({**keys, **changes}, "config.json: vision_config", "a family")


def test_towers_of_qwen_2_and_2_5() -> None:
    """Counted by making each with transformers 5.24 on the meta device."""
    assert qwen2_visual(part(QWEN2)) == 675_759_104
    assert qwen2_5_visual(part(QWEN2_5)) == 676_550_144


def test_a_merger_gets_wider_with_the_patches_it_merges() -> None:
    wide, narrow = (qwen2_visual(part(QWEN2, spatial_merge_size=size)) for size in (2, 1))
    assert wide - narrow == (5120**2 + 5120) - (1280**2 + 1280) + (5120 - 1280) * 3584


def test_pixtral_has_no_biases() -> None:
    block = 2 * 1024 + 4 * 1024**2 + 3 * 1024 * 4096
    assert pixtral(part(PIXTRAL)) == 3 * 14**2 * 1024 + 1024 + 24 * block


def test_its_projector_may_have_them() -> None:
    plain = pixtral_projector(part({}), 1024, 5120)
    assert plain == 1024 + 4 * 1024**2 + 1024 * 5120 + 5120**2
    assert pixtral_projector(part({"multimodal_projector_bias": True}), 1024, 5120) - plain == 2 * 5120


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (QWEN2, {"embed_dim": None}, "embed_dim is missing"),
        (QWEN2, {"hidden_act": "relu"}, "hidden_act relu"),
        (QWEN2_5, {"out_hidden_size": None}, "out_hidden_size is missing"),
        (QWEN2_5, {"depth": 0}, "depth is 0"),
        (PIXTRAL, {"head_dim": 32}, "head_dim is not hidden_size 1024 over 16 heads"),
        (PIXTRAL, {"patch_size": None}, "patch_size is missing"),
    ],
)
def test_what_is_missing_or_unknown_is_refused_by_key(
    keys: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    count = {id(QWEN2): qwen2_visual, id(QWEN2_5): qwen2_5_visual, id(PIXTRAL): pixtral}[id(keys)]
    with pytest.raises(InputError, match=message):
        count(part(keys, **changes))
