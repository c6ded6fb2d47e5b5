"""dots.llm1, DeepSeek MoE and MiniCPM 3: counts, caches, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
DOTS: dict[str, Any] = {
    "model_type": "dots1",
    "hidden_size": 4096,
    "intermediate_size": 10944,
    "num_hidden_layers": 62,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "attention_bias": False,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 1408,
    "moe_layer_freq": 1,
    "n_routed_experts": 128,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "n_group": 1,
    "topk_group": 1,
    "sliding_window": None,
    "max_window_layers": 62,
}
MINICPM: dict[str, Any] = {
    "model_type": "minicpm3",
    "hidden_act": "silu",
    "hidden_size": 2560,
    "num_hidden_layers": 62,
    "intermediate_size": 6400,
    "max_position_embeddings": 32768,
    "num_attention_heads": 40,
    "num_key_value_heads": 40,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "q_lora_rank": 768,
    "kv_lora_rank": 256,
    "vocab_size": 73448,
    "scale_emb": 12,
    "dim_model_base": 256,
    "scale_depth": 1.4,
}
DEEPSEEK: dict[str, Any] = {
    "model_type": "deepseek",
    "attention_bias": False,
    "first_k_dense_replace": 1,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "max_position_embeddings": 4096,
    "moe_intermediate_size": 1408,
    "moe_layer_freq": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_attention_heads": 16,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 28,
    "num_key_value_heads": 16,
    "pretraining_tp": 1,
    "scoring_func": "softmax",
    "tie_word_embeddings": False,
    "vocab_size": 102400,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers; where it has no class, the one
# that has the same arrays.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(DOTS, 142_774_373_888, id="dots"),
        pytest.param(MINICPM, 4_073_875_968, id="minicpm"),
        pytest.param(DEEPSEEK, 16_375_728_128, id="deepseek"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(DOTS, [(62, 8192, None, 0)], id="dots"),
        pytest.param(MINICPM, [(62, 288, None, 0)], id="minicpm"),
        pytest.param(DEEPSEEK, [(28, 4096, None, 0)], id="deepseek"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_later_layers_slide_where_there_is_a_window() -> None:
    model = read(DOTS, sliding_window=4096, max_window_layers=60)
    assert [(cache.window, cache.n_layers) for cache in caches(model)] == [(float("inf"), 60), (4096, 2)]


def test_a_stated_width_of_values_is_taken() -> None:
    assert read(MINICPM, v_head_dim=64) == read(MINICPM)
    assert n_params(read(MINICPM)) - n_params(read(MINICPM, v_head_dim=32)) == 62 * 40 * 32 * (256 + 2560)


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (DOTS, {"first_k_dense_replace": None}, "first_k_dense_replace is missing"),
        (DOTS, {"moe_layer_freq": 2}, "moe_layer_freq"),
        (DOTS, {"layer_types": ["sliding_attention"] * 62}, "sliding_window is missing"),
        (DOTS, {"n_routed_experts": None}, "n_routed_experts is missing"),
        (DOTS, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (DEEPSEEK, {"moe_layer_freq": 2}, "moe_layer_freq"),
        (DEEPSEEK, {"first_k_dense_replace": None}, "first_k_dense_replace is missing"),
        (DEEPSEEK, {"sliding_window": 512}, "sliding_window"),
        (MINICPM, {"kv_lora_rank": None}, "kv_lora_rank is missing"),
        (MINICPM, {"hidden_size": 2561}, "v_head_dim is missing"),
        (MINICPM, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (MINICPM, {"num_experts": 8}, "num_experts is not understood"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
