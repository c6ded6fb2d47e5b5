"""Nemotron-H and Nemotron 3: counts, states held to what engines print, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys that matter here of nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, -Super-120B-A12B and Nemotron-H-56B-Base-8K.
NANO: dict[str, Any] = {
    "model_type": "nemotron_h",
    "chunk_size": 128,
    "conv_kernel": 4,
    "expand": 2,
    "head_dim": 128,
    "hidden_size": 2688,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "intermediate_size": 1856,
    "mamba_head_dim": 64,
    "mamba_hidden_act": "silu",
    "mamba_num_heads": 64,
    "mamba_ssm_cache_dtype": "float32",
    "max_position_embeddings": 262144,
    "mlp_hidden_act": "relu2",
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "n_groups": 8,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_attention_heads": 32,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 52,
    "num_key_value_heads": 2,
    "ssm_state_size": 128,
    "use_conv_bias": True,
    "vocab_size": 131072,
}
SUPER = {
    **NANO,
    "hidden_size": 4096,
    "hybrid_override_pattern": (
        "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME"
    ),
    "mamba_num_heads": 128,
    "moe_intermediate_size": 2688,
    "moe_latent_size": 1024,
    "moe_shared_expert_intermediate_size": 5376,
    "mtp_hybrid_override_pattern": "*E",
    "n_routed_experts": 512,
    "num_experts_per_tok": 22,
    "num_hidden_layers": 88,
    "num_nextn_predict_layers": 1,
}
DENSE = {
    **{
        name: value for name, value in NANO.items() if not name.startswith(("moe_", "n_routed", "n_shared", "head_dim"))
    },
    "attention_head_dim": 128,
    "hidden_size": 8192,
    "hybrid_override_pattern": "M-M-M-M*-" + "M-M-M-M-M*-" * 9 + "M-M-M-M-M-",
    "intermediate_size": 32768,
    "mamba_num_heads": 256,
    "num_attention_heads": 64,
    "num_hidden_layers": 118,
    "num_key_value_heads": 8,
    "ssm_state_size": 256,
}
WORDS = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}


def _model(keys: dict[str, Any]) -> Model:
    return model_from_config(keys, "model", "config.json")


def _total(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


@pytest.mark.parametrize(
    ("keys", "n_params"),
    [(NANO, 31_577_937_344), (SUPER, 120_668_687_360), (DENSE, 56_324_350_464)],
    ids=["nano", "super", "56b"],
)
def test_counts_are_those_of_transformers(keys, n_params):
    assert _total(_model(keys)) == n_params


def test_a_few_layers_keep_tokens():
    # SGLang's log of Nemotron 3 Nano on 4 ranks: 3,075 B a token on each, of one of its 2 heads.
    state, heads = caches(_model(NANO))
    assert (heads.layers, heads.n_heads) == ((5, 12, 19, 26, 33, 42), 2)
    assert 2 * heads.n_layers * heads.elements_per_token / 2 == 3_072
    assert (state.n_layers, state.n_heads) == (23, 64)


def test_the_state_of_a_layer_makes_the_blocks_of_vllm():
    # vLLM gives a block as many tokens, by sixteens, as make it no smaller than the state of a layer: 4,176 in fp8.
    state, heads = caches(_model(NANO))
    assert state.state_bytes == 64 * 64 * 128 * 4 + (64 * 64 + 2 * 8 * 128) * 3 * 2
    assert -(-state.state_bytes // heads.elements_per_token // 16) * 16 == 4_176


def test_a_state_has_the_dtype_that_the_config_says_or_float32():
    wide = caches(_model(NANO))[0].state_bytes
    unsaid = {name: value for name, value in NANO.items() if name != "mamba_ssm_cache_dtype"}
    assert caches(_model(unsaid))[0].state_bytes == wide
    narrow = caches(_model({**NANO, "mamba_ssm_cache_dtype": "bfloat16"}))[0].state_bytes
    assert wide - narrow == 64 * 64 * 128 * 2


@pytest.mark.parametrize("key", ["layers_block_type", "layer_types"])
def test_layers_are_found_by_their_names_too(key):
    keys = {name: value for name, value in NANO.items() if name not in {"hybrid_override_pattern", "num_hidden_layers"}}
    named = {**keys, key: [WORDS[letter] for letter in NANO["hybrid_override_pattern"]]}
    assert _model(named).layers == _model(NANO).layers


def test_a_layer_is_one_thing_with_one_norm():
    assert _model(NANO).layers_by_kind == {"state-space": 23, "experts": 23, "full": 6}
    norms = [tensor for layer in _model(NANO).layers for tensor in layer.norms]
    assert len(norms) == 52


def test_what_drafts_is_said():
    assert "num_nextn_predict_layers: 1 layer" in _model(SUPER).left_out[0]
    assert not _model(NANO).left_out


@pytest.mark.parametrize(
    ("change", "kind", "key"),
    [
        ({"hybrid_override_pattern": None}, InputError, "hybrid_override_pattern"),
        ({"hybrid_override_pattern": "MX" * 26}, UnsupportedModelError, "hybrid_override_pattern"),
        ({"hybrid_override_pattern": "ME"}, InputError, "num_hidden_layers"),
        ({"layers_block_type": ["conv"] * 52}, UnsupportedModelError, "layers_block_type"),
        ({"mlp_hidden_act": "silu"}, UnsupportedModelError, "mlp_hidden_act"),
        ({"mamba_ssm_cache_dtype": "int8"}, UnsupportedModelError, "mamba_ssm_cache_dtype"),
        ({"use_bias": True}, UnsupportedModelError, "use_bias"),
        ({"mlp_bias": True}, UnsupportedModelError, "mlp_bias"),
        ({"sliding_window": 512}, UnsupportedModelError, "sliding_window"),
        ({"head_dim": None}, InputError, "head_dim"),
        ({"ssm_state_size": None}, InputError, "ssm_state_size"),
        ({"n_groups": 5}, InputError, "n_groups"),
        ({"moe_shared_expert_intermediate_size": None}, InputError, "moe_shared_expert_intermediate_size"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(change, kind, key):
    with pytest.raises(kind, match=key):
        _model({**NANO, **change})
