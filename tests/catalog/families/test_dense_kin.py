"""Seed OSS, SmolLM 3, StableLM, Nemotron, AFM, Apertus and Helium: counts, and what sets each apart."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
SEED: dict[str, Any] = {
    "model_type": "seed_oss",
    "hidden_size": 5120,
    "intermediate_size": 27648,
    "num_hidden_layers": 64,
    "num_attention_heads": 80,
    "num_key_value_heads": 8,
    "vocab_size": 155136,
    "max_position_embeddings": 524288,
    "head_dim": 128,
    "attention_bias": True,
    "attention_out_bias": False,
    "mlp_bias": False,
}
SMOLLM: dict[str, Any] = {
    "model_type": "smollm3",
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 128256,
    "max_position_embeddings": 65536,
    "no_rope_layer_interval": 4,
    "no_rope_layers": [1, 1, 1, 0] * 9,
    "layer_types": ["full_attention"] * 36,
    "max_window_layers": 28,
    "sliding_window": None,
    "use_sliding_window": False,
}
STABLELM_3B: dict[str, Any] = {
    "model_type": "stablelm",
    "hidden_act": "silu",
    "hidden_size": 2560,
    "intermediate_size": 6912,
    "max_position_embeddings": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "partial_rotary_factor": 0.25,
    "tie_word_embeddings": False,
    "use_qkv_bias": False,
    "vocab_size": 50304,
}
STABLELM_12B: dict[str, Any] = {
    "model_type": "stablelm",
    "hidden_size": 5120,
    "intermediate_size": 13824,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 100352,
    "max_position_embeddings": 4096,
    "qk_layernorm": True,
    "use_parallel_residual": True,
    "use_qkv_bias": False,
    "partial_rotary_factor": 0.25,
}
MINITRON: dict[str, Any] = {
    "model_type": "nemotron",
    "hidden_size": 4096,
    "intermediate_size": 16384,
    "num_hidden_layers": 32,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "vocab_size": 256000,
    "max_position_embeddings": 4096,
    "head_dim": 128,
    "hidden_act": "relu2",
    "attention_bias": False,
    "mlp_bias": False,
    "partial_rotary_factor": 0.5,
}
NEMOTRON_340B: dict[str, Any] = {
    "model_type": "nemotron",
    "hidden_size": 18432,
    "intermediate_size": 73728,
    "num_hidden_layers": 96,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "vocab_size": 256000,
    "max_position_embeddings": 4096,
    "head_dim": 192,
    "hidden_act": "relu2",
}
AFM: dict[str, Any] = {
    "model_type": "arcee",
    "hidden_size": 2560,
    "intermediate_size": 18432,
    "num_hidden_layers": 36,
    "num_attention_heads": 20,
    "num_key_value_heads": 4,
    "vocab_size": 128004,
    "max_position_embeddings": 65536,
    "head_dim": 128,
    "hidden_act": "relu2",
}
APERTUS: dict[str, Any] = {
    "model_type": "apertus",
    "hidden_size": 4096,
    "intermediate_size": 21504,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 131072,
    "max_position_embeddings": 65536,
    "hidden_act": "xielu",
    "qk_norm": True,
    "post_norm": False,
    "mlp_bias": False,
}
HELIUM: dict[str, Any] = {
    "model_type": "helium",
    "hidden_size": 2560,
    "intermediate_size": 7040,
    "num_hidden_layers": 24,
    "num_attention_heads": 20,
    "num_key_value_heads": 20,
    "vocab_size": 48000,
    "max_position_embeddings": 4096,
    "head_dim": 128,
}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


# Counted by making each with transformers 5.24 on the meta device, without its buffers.
@pytest.mark.parametrize(
    ("keys", "count"),
    [
        pytest.param(SEED, 36_151_104_512, id="seed"),
        pytest.param(SMOLLM, 3_075_098_624, id="smollm"),
        pytest.param(STABLELM_3B, 2_795_443_200, id="stablelm-3b"),
        pytest.param(STABLELM_12B, 12_143_185_920, id="stablelm-12b"),
        pytest.param(MINITRON, 8_271_699_968, id="minitron"),
        pytest.param(NEMOTRON_340B, 341_029_195_776, id="nemotron-340b"),
        pytest.param(AFM, 4_619_184_640, id="afm"),
        pytest.param(APERTUS, 8_053_338_176, id="apertus"),
        pytest.param(HELIUM, 2_172_643_840, id="helium"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(SEED, [(64, 2048, None, 0)], id="seed"),
        pytest.param(SMOLLM, [(36, 1024, None, 0)], id="smollm"),
        pytest.param(STABLELM_3B, [(32, 5120, None, 0)], id="stablelm-3b"),
        pytest.param(STABLELM_12B, [(40, 2560, None, 0)], id="stablelm-12b"),
        pytest.param(MINITRON, [(32, 2048, None, 0)], id="minitron"),
        pytest.param(NEMOTRON_340B, [(96, 3072, None, 0)], id="nemotron-340b"),
        pytest.param(AFM, [(36, 1024, None, 0)], id="afm"),
        pytest.param(APERTUS, [(32, 2048, None, 0)], id="apertus"),
        pytest.param(HELIUM, [(24, 5120, None, 0)], id="helium"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_smollm_slides_where_it_has_no_positions() -> None:
    sliding = {name: value for name, value in SMOLLM.items() if name != "layer_types"}
    model = read({**sliding, "use_sliding_window": True, "sliding_window": 512})
    assert model.layers_by_kind == {"full + dense": 27, "sliding + dense": 9}
    assert next(cache for cache in caches(model) if cache.window == 512).layers == tuple(range(3, 36, 4))


def test_a_part_of_a_head_is_rotated() -> None:
    assert (read(STABLELM_3B).rope_table, read(MINITRON).rope_table) == ((4096, 20), (4096, 64))


def test_seed_has_biases_where_the_config_says_so() -> None:
    assert n_params(read(SEED)) - n_params(read(SEED, attention_bias=False)) == 64 * (80 + 2 * 8) * 128
    assert n_params(read(SEED, attention_out_bias=True)) - n_params(read(SEED)) == 64 * 5120


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (SEED, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (SEED, {"num_key_value_heads": 9}, "do not divide over 9"),
        (SMOLLM, {"layer_types": ["sliding_attention"] * 36}, "use_sliding_window and sliding_window"),
        (SMOLLM, {"no_rope_layers": [2] * 36}, "no_rope_layers must hold 0 or 1"),
        (STABLELM_3B, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (STABLELM_12B, {"partial_rotary_factor": 0}, "partial_rotary_factor is 0"),
        (MINITRON, {"hidden_act": "silu"}, "hidden_act silu"),
        (MINITRON, {"num_key_value_heads": 7}, "do not divide over 7"),
        (AFM, {"hidden_act": "silu"}, "hidden_act silu"),
        (APERTUS, {"qk_norm": False}, "qk_norm must be true"),
        (APERTUS, {"post_norm": True}, "post_norm"),
        (APERTUS, {"mlp_bias": True}, "mlp_bias"),
        (HELIUM, {"head_dim": 64}, "num_attention_heads times head_dim"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
