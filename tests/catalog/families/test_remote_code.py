"""Yi, Aquila, InternLM, Baichuan, Qwen 1 and MiniCPM: counts, their own names, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
INTERNLM: dict[str, Any] = {
    "model_type": "internlm",
    "bias": True,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "max_position_embeddings": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "tie_word_embeddings": False,
    "vocab_size": 103168,
}
BAICHUAN: dict[str, Any] = {
    "model_type": "baichuan",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "max_position_embeddings": 4096,
    "model_max_length": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "tie_word_embeddings": False,
    "vocab_size": 125696,
}
QWEN: dict[str, Any] = {
    "model_type": "qwen",
    "attn_dropout_prob": 0.0,
    "emb_dropout_prob": 0.0,
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "kv_channels": 128,
    "max_position_embeddings": 32768,
    "no_bias": True,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "rotary_emb_base": 10000,
    "rotary_pct": 1.0,
    "scale_attn_weights": True,
    "seq_length": 8192,
    "tie_word_embeddings": False,
    "use_dynamic_ntk": True,
    "use_logn_attn": True,
    "vocab_size": 151936,
}
MINICPM: dict[str, Any] = {
    "model_type": "minicpm",
    "hidden_act": "silu",
    "hidden_size": 2304,
    "intermediate_size": 5760,
    "max_position_embeddings": 4096,
    "num_attention_heads": 36,
    "num_hidden_layers": 40,
    "num_key_value_heads": 36,
    "tie_word_embeddings": True,
    "vocab_size": 122753,
    "scale_emb": 12,
    "dim_model_base": 256,
    "scale_depth": 1.4,
}
INTERNLM3: dict[str, Any] = {
    "model_type": "internlm3",
    "hidden_size": 4096,
    "intermediate_size": 10240,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "vocab_size": 128512,
    "max_position_embeddings": 32768,
    "head_dim": 128,
    "bias": False,
    "qkv_bias": False,
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
        pytest.param(INTERNLM, 7_321_948_160, id="internlm"),
        pytest.param(BAICHUAN, 7_505_973_248, id="baichuan"),
        pytest.param(QWEN, 7_721_324_544, id="qwen"),
        pytest.param(MINICPM, 2_724_880_896, id="minicpm"),
        pytest.param(INTERNLM3, 8_804_241_408, id="internlm3"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(INTERNLM, [(32, 8192, None, 0)], id="internlm"),
        pytest.param(BAICHUAN, [(32, 8192, None, 0)], id="baichuan"),
        pytest.param(QWEN, [(32, 8192, None, 0)], id="qwen"),
        pytest.param(MINICPM, [(40, 4608, None, 0)], id="minicpm"),
        pytest.param(INTERNLM3, [(48, 512, None, 0)], id="internlm3"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


YI: dict[str, Any] = {
    "model_type": "Yi",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "vocab_size": 64000,
    "max_position_embeddings": 4096,
}


@pytest.mark.parametrize("name", ["Yi", "aquila"])
def test_yi_and_aquila_are_llama_without_biases(name: str) -> None:
    assert n_params(read(YI, model_type=name)) == n_params(read(YI, model_type="llama")) == 6_061_035_520
    with pytest.raises(InputError, match="attention_bias"):
        read(YI, model_type=name, attention_bias=True)


def test_only_models_with_positions_have_a_rotary_table() -> None:
    assert read(BAICHUAN).rope_table == (4096, 128)
    assert read(BAICHUAN, max_position_embeddings=None).rope_table == (0, 0)


def test_names_are_those_of_the_checkpoints() -> None:
    places = {tensor.name: tensor.module for tensor in weight_tensors(read(QWEN))}
    assert (places["wk"], places["wo"], places["w_gate"]) == ("attn.c_attn", "attn.c_proj", "mlp.w2")
    assert {tensor.name: tensor.module for tensor in weight_tensors(read(BAICHUAN))}["wv"] == "self_attn.W_pack"


def test_internlm_3_has_two_kinds_of_biases() -> None:
    plain = n_params(read(INTERNLM3))
    assert n_params(read(INTERNLM3, qkv_bias=True)) - plain == 48 * (32 + 2 * 2) * 128
    assert n_params(read(INTERNLM3, bias=True)) - plain == 48 * (4096 + 2 * 10240 + 4096)


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (INTERNLM, {"bias": None}, "bias is missing"),
        (INTERNLM, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (BAICHUAN, {"num_key_value_heads": 8}, "num_key_value_heads"),
        (BAICHUAN, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (QWEN, {"no_bias": False}, "no_bias must be true"),
        (QWEN, {"no_bias": None}, "no_bias is missing"),
        (QWEN, {"kv_channels": 64}, "kv_channels must be"),
        (QWEN, {"visual": {"width": 1664}}, "visual"),
        (MINICPM, {"tie_word_embeddings": None}, "tie_word_embeddings is missing"),
        (MINICPM, {"num_experts": 8}, "num_experts"),
        (MINICPM, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (INTERNLM3, {"head_dim": None}, "head_dim is missing"),
        (INTERNLM3, {"num_key_value_heads": 9}, "do not divide over 9"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
