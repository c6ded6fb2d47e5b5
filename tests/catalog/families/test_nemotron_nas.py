"""Llama Nemotron: blocks without attention or MLP, of many widths, or of one matrix."""

import json
from pathlib import Path
from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config, read_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

SUPER_49B = (
    Path(__file__).resolve().parents[3]
    / ".."
    / "shared/data/model_configs/nvidia__Llama-3_3-Nemotron-Super-49B-v1.json"
)
D_MODEL, D_FF, VOCAB = 1024, 2816, 32000
USUAL = {"n_heads_in_group": 4, "no_op": False, "replace_with_linear": False, "sparsify": None, "window_length": None}
WIDE = {"ffn_mult": 4.0, "no_op": False, "replace_with_linear": False, "sparsify": None}
NONE = {"no_op": True, "replace_with_linear": False, "ffn_mult": None, "n_heads_in_group": None}
LINEAR = {"no_op": False, "replace_with_linear": True}


def read(*blocks: tuple[dict[str, Any], dict[str, Any]], **changes: Any) -> Model:
    keys = {
        "model_type": "nemotron-nas",
        "block_configs": [{"attention": attention, "ffn": ffn} for attention, ffn in blocks],
        "hidden_act": "silu",
        "hidden_size": D_MODEL,
        "intermediate_size": None,
        "max_position_embeddings": 131072,
        "num_attention_heads": 8,
        "num_hidden_layers": len(blocks),
        "num_key_value_heads": None,
        "vocab_size": VOCAB,
    }
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def of_layers(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.layers)


def test_a_block_is_its_attention_its_mlp_and_their_norms() -> None:
    # Two of eight heads' keys and values are kept; 2/3 of 4 widths is 2,730, rounded up to whole tiles of 256.
    attention = 2 * D_MODEL**2 + 2 * D_MODEL * 2 * 128 + D_MODEL
    assert of_layers(read((USUAL, WIDE))) == attention + 3 * D_MODEL * D_FF + D_MODEL
    assert of_layers(read((USUAL, NONE))) == attention
    assert of_layers(read((NONE, WIDE))) == 3 * D_MODEL * D_FF + D_MODEL
    assert of_layers(read((NONE, NONE))) == 0


def test_one_matrix_may_stand_for_either() -> None:
    assert of_layers(read((LINEAR, LINEAR))) == 2 * (D_MODEL**2 + D_MODEL)
    model = read((LINEAR, WIDE), (USUAL, LINEAR))
    assert [cache.layers for cache in caches(model)] == [(1,)]
    assert model.layers_by_kind == {"linear map + dense": 1, "full + linear map": 1}


def test_only_layers_with_attention_keep_keys_and_values() -> None:
    model = read((USUAL, WIDE), (NONE, WIDE), ({**USUAL, "n_heads_in_group": 8}, WIDE))
    assert [(cache.layers, cache.elements_per_token) for cache in caches(model)] == [((0,), 512), ((2,), 256)]


def test_a_block_may_have_a_window() -> None:
    assert [cache.window for cache in caches(read(({**USUAL, "window_length": 512}, WIDE)))] == [512]


def test_an_mlp_may_say_its_width() -> None:
    assert read((USUAL, {"intermediate_size": 300})).d_ff == 300


@pytest.mark.skipif(not SUPER_49B.exists(), reason="../shared/data/model_configs is not there")
def test_super_49b_is_counted() -> None:
    # https://huggingface.co/nvidia/Llama-3_3-Nemotron-Super-49B-v1: 49.9B in its safetensors.
    model = read_config(SUPER_49B)
    n_params = sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)
    assert n_params == 49_867_145_216
    blocks = json.loads(SUPER_49B.read_text())["block_configs"]
    assert sum(not block["attention"]["no_op"] for block in blocks) == caches(model)[0].n_layers == 49


@pytest.mark.parametrize(
    ("attention", "ffn", "message"),
    [
        ({**USUAL, "n_heads_in_group": 3}, WIDE, r"block_configs\[0\]: attention: n_heads_in_group is 3"),
        ({**USUAL, "n_heads_in_group": None}, WIDE, "n_heads_in_group is missing"),
        ({**USUAL, "num_sink_tokens": 4}, WIDE, "num_sink_tokens"),
        ({**USUAL, "sparsify": {"a": 1}}, WIDE, "sparsify"),
        ({**USUAL, "n_experts": 4}, WIDE, "n_experts is not understood"),
        (USUAL, {**WIDE, "ffn_mult": "4"}, "ffn_mult is '4'"),
        (USUAL, {**WIDE, "ffn_mult": -1.0}, "ffn_mult is -1.0"),
        (USUAL, {**WIDE, "ffn_mult": 1e300}, "ffn_mult is 1e\\+300"),
        (USUAL, {"no_op": 0}, "no_op is 0; it must be true or false"),
    ],
)
def test_a_block_that_is_not_understood_is_refused_by_key(
    attention: dict[str, Any], ffn: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read((attention, ffn))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block_configs": None}, "block_configs must be a list of objects"),
        ({"block_configs": [1]}, "block_configs must be a list of objects"),
        ({"block_configs": []}, "block_configs has 0 entries for 1 layers"),
        ({"block_configs": [{"ffn": WIDE}]}, "attention is missing"),
        ({"block_configs": [{"attention": USUAL, "ffn": WIDE, "parallel_blocks": [{}]}]}, "parallel_blocks"),
    ],
)
def test_a_list_of_blocks_that_is_not_understood_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read((USUAL, WIDE), **changes)
