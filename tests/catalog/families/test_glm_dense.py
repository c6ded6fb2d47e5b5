"""GLM 4, dense, by both names, and GLM 4.7 Flash: counts, caches, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# Keys of a config.json that matter here, by the size of a model of the family.
CHATGLM: dict[str, Any] = {
    "model_type": "chatglm",
    "add_bias_linear": False,
    "add_qkv_bias": True,
    "apply_query_key_layer_scaling": True,
    "apply_residual_connection_post_layernorm": False,
    "attention_softmax_in_fp32": True,
    "bias_dropout_fusion": True,
    "ffn_hidden_size": 13696,
    "fp32_residual_connection": False,
    "hidden_size": 4096,
    "kv_channels": 128,
    "layernorm_epsilon": 1.5625e-07,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "num_attention_heads": 32,
    "num_layers": 40,
    "original_rope": True,
    "padded_vocab_size": 151552,
    "post_layer_norm": True,
    "rmsnorm": True,
    "seq_length": 8192,
    "tie_word_embeddings": False,
}
CHATGLM3: dict[str, Any] = {
    "model_type": "chatglm",
    "add_bias_linear": False,
    "add_qkv_bias": True,
    "apply_query_key_layer_scaling": True,
    "apply_residual_connection_post_layernorm": False,
    "attention_softmax_in_fp32": True,
    "bias_dropout_fusion": True,
    "ffn_hidden_size": 13696,
    "fp32_residual_connection": False,
    "hidden_size": 4096,
    "kv_channels": 128,
    "layernorm_epsilon": 1e-05,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "num_attention_heads": 32,
    "num_layers": 28,
    "original_rope": True,
    "padded_vocab_size": 65024,
    "post_layer_norm": True,
    "rmsnorm": True,
    "seq_length": 8192,
    "tie_word_embeddings": False,
}
GLM: dict[str, Any] = {
    "model_type": "glm",
    "hidden_size": 4096,
    "intermediate_size": 13696,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "vocab_size": 151552,
    "max_position_embeddings": 131072,
    "attention_bias": True,
    "head_dim": 128,
    "partial_rotary_factor": 0.5,
}
GLM4: dict[str, Any] = {
    "model_type": "glm4",
    "hidden_size": 6144,
    "intermediate_size": 23040,
    "num_hidden_layers": 61,
    "num_attention_heads": 48,
    "num_key_value_heads": 2,
    "vocab_size": 151552,
    "max_position_embeddings": 32768,
    "attention_bias": False,
    "head_dim": 128,
    "partial_rotary_factor": 0.5,
}
FLASH: dict[str, Any] = {
    "model_type": "glm4_moe_lite",
    "num_hidden_layers": 47,
    "hidden_size": 2048,
    "num_attention_heads": 20,
    "num_key_value_heads": 20,
    "head_dim": 64,
    "intermediate_size": 10240,
    "vocab_size": 154880,
    "max_position_embeddings": 202752,
    "n_routed_experts": 64,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1536,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": 768,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "routed_scaling_factor": 1.8,
    "tie_word_embeddings": False,
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
        pytest.param(CHATGLM, 9_399_951_360, id="chatglm"),
        pytest.param(CHATGLM3, 6_243_584_000, id="chatglm3"),
        pytest.param(GLM, 9_399_951_360, id="glm"),
        pytest.param(GLM4, 32_566_081_536, id="glm4"),
        pytest.param(FLASH, 29_943_390_976, id="flash"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param(CHATGLM, [(40, 512, None, 0)], id="chatglm"),
        pytest.param(CHATGLM3, [(28, 512, None, 0)], id="chatglm3"),
        pytest.param(GLM, [(40, 512, None, 0)], id="glm"),
        pytest.param(GLM4, [(61, 512, None, 0)], id="glm4"),
        pytest.param(FLASH, [(47, 576, None, 0)], id="flash"),
    ],
)
def test_layers_keep_so_much(keys: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    """Layers, elements a token of one, its window, and bytes of its state."""
    found = caches(read(keys))
    windows = [None if cache.window == float("inf") else cache.window for cache in found]
    sizes = [(cache.n_layers, cache.elements_per_token, cache.state_bytes) for cache in found]
    assert [(*size[:2], window, size[2]) for size, window in zip(sizes, windows, strict=True)] == kept


def test_both_names_are_one_model() -> None:
    assert n_params(read(CHATGLM)) == n_params(read(GLM))


def test_half_of_a_head_is_rotated() -> None:
    assert read(CHATGLM).rope_table == (8192, 64)
    assert read(GLM4).rope_table == (32768, 64)


def test_a_list_wins_over_the_number_of_dense_layers() -> None:
    listed = read(FLASH, mlp_layer_types=["dense"] * 3 + ["sparse"] * 44, first_k_dense_replace=1)
    assert listed.layers_by_kind == {"latent + dense": 3, "latent + experts": 44}


def test_what_drafts_is_said() -> None:
    (said,) = read(FLASH, num_nextn_predict_layers=1).left_out
    assert said.startswith("num_nextn_predict_layers: 1 layer")


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (CHATGLM, {"multi_query_group_num": None}, "multi_query_group_num is missing"),
        (CHATGLM, {"multi_query_group_num": 3}, "divide over multi_query_group_num 3"),
        (CHATGLM, {"kv_channels": 64}, "kv_channels 64"),
        (CHATGLM, {"add_bias_linear": True}, "add_bias_linear"),
        (CHATGLM, {"rmsnorm": False}, "rmsnorm must be true"),
        (CHATGLM, {"vision_config": {"depth": 2}}, "vision_config"),
        (CHATGLM, {"pre_seq_len": 128}, "pre_seq_len"),
        (GLM, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (GLM4, {"num_key_value_heads": 9}, "do not divide over 9"),
        (GLM4, {"partial_rotary_factor": 2.0}, "partial_rotary_factor is 2.0"),
        (FLASH, {"q_lora_rank": "x"}, "q_lora_rank"),
        (FLASH, {"mlp_layer_types": ["moe"] * 47}, "mlp_layer_types holds"),
        (FLASH, {"n_shared_experts": "one"}, "n_shared_experts"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
