"""Phi: old names and new, fused matrices, partly rotated heads, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The config.json of microsoft/phi-2 in its first form, and the keys of Phi-4-mini-instruct and phi-4 that matter here.
PHI_2 = {
    "model_type": "phi-msft",
    "activation_function": "gelu_new",
    "flash_attn": False,
    "flash_rotary": False,
    "fused_dense": False,
    "img_processor": None,
    "n_embd": 2560,
    "n_head": 32,
    "n_head_kv": None,
    "n_inner": None,
    "n_layer": 32,
    "n_positions": 2048,
    "rotary_dim": 32,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "vocab_size": 51200,
}
PHI_2_RENAMED = {
    "model_type": "phi",
    "hidden_act": "gelu_new",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "max_position_embeddings": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "partial_rotary_factor": 0.4,
    "qk_layernorm": False,
    "vocab_size": 51200,
}
PHI_4_MINI = {
    "model_type": "phi3",
    "attention_bias": False,
    "full_attn_mod": 1,
    "hidden_act": "silu",
    "hidden_size": 3072,
    "interpolate_factor": 1,
    "intermediate_size": 8192,
    "lm_head_bias": False,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "num_attention_heads": 24,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "original_max_position_embeddings": 4096,
    "partial_rotary_factor": 0.75,
    "rope_scaling": {"long_factor": [1.0], "short_factor": [1.0], "type": "longrope"},
    "sliding_window": 262144,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "vocab_size": 200064,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


@pytest.mark.parametrize(
    ("keys", "n_params"),
    [
        # The safetensors of each model on huggingface.co/microsoft.
        pytest.param(PHI_2, 2_779_683_840, id="phi-2"),
        pytest.param(PHI_2_RENAMED, 2_779_683_840, id="phi-2-renamed"),
        pytest.param(PHI_4_MINI, 3_836_021_760, id="phi-4-mini"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], n_params: int) -> None:
    assert sum(tensor.size for tensor in weight_tensors(read(keys)) if tensor.stored) == n_params


def test_old_names_and_new_say_the_same() -> None:
    old, new = read(PHI_2), read(PHI_2_RENAMED)
    assert caches(old) == caches(new)
    assert old.rope_table == new.rope_table == (2048, 32)
    assert (old.checkpoint_dtype, new.checkpoint_dtype) == ("fp16", "bf16")


def test_a_part_of_each_head_is_rotated() -> None:
    assert read(PHI_4_MINI).rope_table == (131072, 96)
    moved = {**{key: value for key, value in PHI_4_MINI.items() if key != "partial_rotary_factor"}}
    assert read(moved, rope_parameters={"partial_rotary_factor": 0.5}).rope_table == (131072, 64)
    assert read(moved).rope_table == (131072, 128)


def test_a_window_longer_than_the_limit_is_none() -> None:
    assert read(PHI_4_MINI).layers_by_kind == {"full + dense": 32}
    assert [cache.window for cache in caches(read(PHI_4_MINI, sliding_window=2047))] == [2047]


def test_matrices_are_where_the_checkpoint_has_them() -> None:
    places = {tensor.name: tensor.module for tensor in weight_tensors(read(PHI_4_MINI))}
    assert {places[name] for name in ("wq", "wk", "wv")} == {"self_attn.qkv_proj"}
    assert {places[name] for name in ("w_gate", "w_up")} == {"mlp.gate_up_proj"}
    assert (places["wo"], places["w_down"]) == ("self_attn.o_proj", "mlp.down_proj")


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (PHI_2, {"img_processor": "clip"}, "img_processor"),
        (PHI_2, {"activation_function": "swiglu"}, "activation_function swiglu"),
        (PHI_2, {"n_layer": 4000}, "n_layer is 4,000"),
        (PHI_2, {"n_head": "32"}, "n_head is '32'"),
        (PHI_4_MINI, {"attention_bias": True}, "attention_bias"),
        (PHI_4_MINI, {"partial_rotary_factor": 1.5}, "partial_rotary_factor is 1.5"),
        (PHI_4_MINI, {"partial_rotary_factor": "0.75"}, "partial_rotary_factor is '0.75'"),
        (PHI_4_MINI, {"full_attn_mod": 2}, "full_attn_mod is not understood"),
        (PHI_4_MINI, {"sliding_window": 1.0}, "sliding_window is 1.0"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
