"""EXAONE 3 and 4, and K-EXAONE: counts, windows by list, by pattern and by step, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
EXAONE3: dict[str, Any] = {
    "model_type": "exaone",
    "activation_function": "silu",
    "embed_dropout": 0.0,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_layers": 32,
    "tie_word_embeddings": False,
    "vocab_size": 102400,
}
EXAONE4_32B: dict[str, Any] = {
    "model_type": "exaone4",
    "hidden_size": 5120,
    "intermediate_size": 27392,
    "num_hidden_layers": 64,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "vocab_size": 102400,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
    "sliding_window_pattern": "LLLG",
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"] * 16,
}
EXAONE4_1_2B: dict[str, Any] = {
    "model_type": "exaone4",
    "hidden_size": 2048,
    "intermediate_size": 4096,
    "num_hidden_layers": 30,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 102400,
    "max_position_embeddings": 65536,
    "head_dim": 64,
    "tie_word_embeddings": True,
    "sliding_window": None,
    "layer_types": ["full_attention"] * 30,
}
K_EXAONE: dict[str, Any] = {
    "model_type": "exaone_moe",
    "hidden_size": 6144,
    "intermediate_size": 18432,
    "num_hidden_layers": 48,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 153600,
    "max_position_embeddings": 262144,
    "head_dim": 128,
    "sliding_window": 128,
    "sliding_window_pattern": "LLLG",
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"] * 12,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 2048,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "num_nextn_predict_layers": 1,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(EXAONE3, 7_818_448_896, id="exaone3"),
        pytest.param(EXAONE4_32B, 32_003_216_384, id="exaone4-32b"),
        pytest.param(EXAONE4_1_2B, 1_279_391_488, id="exaone4-1.2b"),
        pytest.param(K_EXAONE, 236_571_150_336, id="k-exaone"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(EXAONE3, [(32, 2048, None, 0)], id="exaone3"),
        pytest.param(EXAONE4_32B, [(48, 2048, 4096, 0), (16, 2048, None, 0)], id="exaone4-32b"),
        pytest.param(EXAONE4_1_2B, [(30, 1024, None, 0)], id="exaone4-1.2b"),
        pytest.param(K_EXAONE, [(36, 2048, 128, 0), (12, 2048, None, 0)], id="k-exaone"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


@pytest.mark.parametrize("pattern", ["LLLG", 4])
def test_a_pattern_repeats_over_the_layers(pattern: object) -> None:
    unlisted = {name: value for name, value in EXAONE4_32B.items() if name != "layer_types"}
    assert read({**unlisted, "sliding_window_pattern": pattern}) == read(EXAONE4_32B)


def test_no_window_no_pattern() -> None:
    unlisted = {name: value for name, value in EXAONE4_1_2B.items() if name != "layer_types"}
    assert read(unlisted) == read(EXAONE4_1_2B)


def test_k_exaone_lists_its_experts_or_numbers_what_is_dense() -> None:
    listed = read(K_EXAONE, mlp_layer_types=["dense"] + ["sparse"] * 47, first_k_dense_replace=None)
    assert listed.layers == read(K_EXAONE).layers
    assert "num_nextn_predict_layers: 1 layer" in read(K_EXAONE).left_out[0]


def test_exaone_3_has_its_own_names() -> None:
    places = {tensor.name: tensor.module for tensor in weight_tensors(read(EXAONE3))}
    assert (places["wq"], places["wo"]) == ("attn.attention.q_proj", "attn.attention.out_proj")
    assert (places["w_gate"], places["w_down"]) == ("mlp.c_fc_0", "mlp.c_proj")


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (EXAONE3, {"activation_function": "gelu"}, "activation_function gelu"),
        (EXAONE3, {"num_layers": None}, "num_layers is missing"),
        (EXAONE3, {"num_key_value_heads": 9}, "do not divide over 9"),
        (EXAONE4_32B, {"sliding_window": None}, "sliding_window is missing"),
        (EXAONE4_32B, {"layer_types": None, "sliding_window_pattern": "LLX"}, "sliding_window_pattern LLX"),
        (EXAONE4_32B, {"layer_types": None, "sliding_window_pattern": None}, "sliding_window_pattern is missing"),
        (EXAONE4_32B, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (K_EXAONE, {"num_shared_experts": None}, "num_shared_experts is missing"),
        (K_EXAONE, {"first_k_dense_replace": None}, "first_k_dense_replace is missing"),
        (K_EXAONE, {"mlp_layer_types": ["moe"] * 48}, "mlp_layer_types holds"),
        (K_EXAONE, {"num_experts_per_tok": 129}, "num_experts_per_tok is 129"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
