"""Qwen 3 VL: the language model is Qwen 3, and the tower is counted beside it."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import weight_tensors

# https://huggingface.co/Qwen/Qwen3-VL-2B-Instruct config.json; the count is that of its safetensors.
TEXT = {
    "dtype": "bfloat16",
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "max_position_embeddings": 262144,
    "model_type": "qwen3_vl_text",
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 8,
    "tie_word_embeddings": True,
    "vocab_size": 151936,
}
VISION = {
    "deepstack_visual_indexes": [5, 11, 17],
    "depth": 24,
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1024,
    "in_channels": 3,
    "intermediate_size": 4096,
    "model_type": "qwen3_vl",
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "out_hidden_size": 2048,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}
QWEN = {
    "model_type": "qwen3_vl",
    "image_token_id": 151655,
    "text_config": TEXT,
    "tie_word_embeddings": True,
    "vision_config": VISION,
}
EXPERTS = {"decoder_sparse_step": 1, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8}


def read(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> Model:
    parts = {"text_config": {**TEXT, **(text or {})}, "vision_config": {**VISION, **(vision or {})}}
    return model_from_config({**QWEN, **parts, **changes}, "a-model", "config.json")


def test_tower_and_text_are_counted() -> None:
    tensors = [tensor for tensor in weight_tensors(read()) if tensor.stored]
    assert sum(tensor.size for tensor in tensors) == 2_127_532_032
    assert read().towers == {"visual": 2_127_532_032 - 1_720_574_976}


def test_the_whole_says_whether_embeddings_are_tied() -> None:
    untied = read({"tie_word_embeddings": None}, tie_word_embeddings=False)
    assert not untied.tied_embeddings
    assert read({"tie_word_embeddings": None}).tied_embeddings
    assert read(tie_word_embeddings=None).tied_embeddings


def test_experts_are_read_from_the_text_part() -> None:
    model = read(EXPERTS, model_type="qwen3_vl_moe")
    assert model.layers_by_kind == {"full + experts": 28}
    assert (model.n_experts, model.n_active) == (128, 8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text_config": None}, "text_config is missing"),
        ({"text_config": [1]}, r"text_config is \[1\]; it must be an object"),
        ({"vision_config": None}, "vision_config is missing"),
        ({"text": {"num_experts": 8}}, "text_config: num_experts is not understood"),
        ({"vision": {"depth": 2000}}, "vision_config: depth is 2,000"),
        ({"vision": {"hidden_act": "silu"}}, "vision_config: hidden_act silu is not supported"),
        ({"vision": {"num_experts": 8}}, "vision_config: num_experts is not understood"),
        ({"vision": {"patch_size": "16"}}, "vision_config: patch_size is '16'"),
    ],
)
def test_what_is_not_understood_is_refused_by_part_and_key(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(**changes)
