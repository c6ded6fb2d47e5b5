"""Jamba, Bamba and Falcon H1: counts, what each layer keeps, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
JAMBA: dict[str, Any] = {
    "model_type": "jamba",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 65536,
    "max_position_embeddings": 262144,
    "attn_layer_period": 8,
    "attn_layer_offset": 4,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "mamba_d_state": 16,
    "mamba_dt_rank": 256,
    "sliding_window": None,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
}
BAMBA: dict[str, Any] = {
    "model_type": "bamba",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 4096,
    "attn_layer_indices": [9, 18, 27],
    "attn_rotary_emb": 64,
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
}
FALCON: dict[str, Any] = {
    "model_type": "falcon_h1",
    "hidden_size": 5120,
    "intermediate_size": 21504,
    "num_hidden_layers": 72,
    "num_attention_heads": 20,
    "num_key_value_heads": 4,
    "vocab_size": 261120,
    "max_position_embeddings": 262144,
    "head_dim": 128,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
    "mamba_d_ssm": 4096,
    "mamba_n_heads": 32,
    "mamba_d_head": 128,
    "mamba_n_groups": 2,
    "mamba_d_state": 256,
    "mamba_rms_norm": False,
    "mamba_norm_before_gate": False,
    "mamba_use_mlp": True,
    "mamba_chunk_size": 128,
    "projectors_bias": False,
    "attention_bias": False,
    "mlp_bias": False,
    "attn_layer_indices": None,
    "mlp_expansion_factor": 8,
    "key_multiplier": 0.01,
    "ssm_multipliers": [0.35, 0.25, 0.18, 0.5, 0.35],
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(JAMBA, 51_570_323_328, id="jamba"),
        pytest.param(BAMBA, 9_780_235_392, id="bamba"),
        pytest.param(FALCON, 33_642_221_312, id="falcon"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(JAMBA, [(28, 0, None, 311296), (4, 2048, None, 0)], id="jamba"),
        pytest.param(BAMBA, [(29, 0, None, 2147840), (3, 2048, None, 0)], id="bamba"),
        pytest.param(FALCON, [(72, 1024, None, 0), (72, 0, None, 2127872)], id="falcon"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_jamba_attends_in_one_layer_of_eight_and_has_experts_in_every_second() -> None:
    kinds = {"state-space + dense": 12, "state-space + experts": 16, "full + dense": 4}
    assert read(JAMBA).layers_by_kind == kinds
    assert all("experts" in layer.kind for layer in read(JAMBA).layers[1::2])


def test_falcon_keeps_tokens_and_a_state_in_every_layer() -> None:
    heads, state = caches(read(FALCON))
    assert heads.layers == state.layers == tuple(range(72))
    assert state.state_bytes == 2 * 4096 * 256 + 2 * 3 * (4096 + 2 * 2 * 256)
    assert read(FALCON).layers_by_kind == {"full beside state-space + dense": 72}


def test_a_width_of_mamba_may_be_left_to_the_model() -> None:
    wide = {name: value for name, value in FALCON.items() if name != "mamba_d_ssm"}
    assert caches(read({**wide, "mamba_n_heads": 80}))[1].state_bytes > caches(read(FALCON))[1].state_bytes


def test_a_head_width_may_be_left_open() -> None:
    assert read(BAMBA, mamba_d_head="auto") == read(BAMBA)
    assert read(JAMBA, mamba_dt_rank="auto") == read(JAMBA)


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (JAMBA, {"attn_layer_offset": 8}, "attn_layer_offset is 8"),
        (JAMBA, {"expert_layer_period": None}, "expert_layer_period is missing"),
        (JAMBA, {"mamba_inner_layernorms": False}, "mamba_inner_layernorms"),
        (JAMBA, {"sliding_window": 512}, "sliding_window"),
        (JAMBA, {"mamba_d_state": None}, "mamba_d_state is missing"),
        (JAMBA, {"num_experts": 1}, "num_experts_per_tok is 2, of 1"),
        (BAMBA, {"attn_layer_indices": [32]}, "attn_layer_indices holds 32"),
        (BAMBA, {"mamba_n_heads": 100}, "mamba_d_head times mamba_n_heads"),
        (BAMBA, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (FALCON, {"mamba_d_head": 64}, "mamba_d_head times mamba_n_heads"),
        (FALCON, {"attn_layer_indices": [3]}, "attn_layer_indices"),
        (FALCON, {"mamba_use_mlp": False}, "mamba_use_mlp"),
        (FALCON, {"num_key_value_heads": 9}, "do not divide over 9"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
