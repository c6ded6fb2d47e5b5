"""OLMo 2, InternLM 2, MiMo, Cohere and StarCoder 2: counts, what sets each apart, and what is refused."""

from typing import Any

import pytest

from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.spec.tensors import caches, weight_tensors

# The keys of each config.json on huggingface.co that matter here.
BASE = {"hidden_act": "silu", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8}
OLMO2 = {**BASE, "model_type": "olmo2", "hidden_size": 5120, "num_attention_heads": 40, "intermediate_size": 27648}
OLMO2 |= {"num_hidden_layers": 64, "max_position_embeddings": 4096, "vocab_size": 100352}
INTERNLM2 = {**BASE, "model_type": "internlm2", "bias": False, "intermediate_size": 14336, "num_hidden_layers": 32}
INTERNLM2 |= {"max_position_embeddings": 32768, "rope_scaling": {"type": "dynamic", "factor": 2.0}, "vocab_size": 92544}
MIMO = {**BASE, "model_type": "mimo", "attention_bias": True, "head_dim": 128, "intermediate_size": 11008}
MIMO |= {"num_hidden_layers": 36, "max_position_embeddings": 32768, "num_nextn_predict_layers": 1}
MIMO |= {"sliding_window": 32768, "max_window_layers": 32, "use_sliding_window": False, "vocab_size": 151680}
COHERE = {**BASE, "model_type": "cohere", "attention_bias": False, "intermediate_size": 14336, "num_hidden_layers": 32}
COHERE |= {"logit_scale": 0.0625, "max_position_embeddings": 8192, "use_qk_norm": False, "vocab_size": 256000}
STARCODER2 = {**BASE, "model_type": "starcoder2", "hidden_act": "gelu_pytorch_tanh", "hidden_size": 4608}
STARCODER2 |= {"activation_function": "gelu", "intermediate_size": 18432, "max_position_embeddings": 16384}
STARCODER2 |= {"mlp_type": "default", "norm_type": "layer_norm", "num_attention_heads": 36, "num_hidden_layers": 32}
STARCODER2 |= {"num_key_value_heads": 4, "sliding_window": 4096, "use_bias": True, "vocab_size": 49152}


def read(keys: dict[str, Any], **changes: Any) -> Model:
    return model_from_config({**keys, **changes}, "a-model", "config.json")


def n_params(model: Model) -> int:
    return sum(tensor.size for tensor in weight_tensors(model) if tensor.stored)


@pytest.mark.parametrize(
    ("keys", "count"),
    [
        # Counted by making each with transformers 5.24 on the meta device, MiMo as the Qwen 2 that it extends;
        # InternLM 2.5 is not in transformers, its count is that of its safetensors.
        pytest.param(OLMO2, 32_234_279_936, id="olmo-2-32b"),
        pytest.param(INTERNLM2, 7_737_708_544, id="internlm2.5-7b"),
        pytest.param(MIMO, 7_622_619_136, id="mimo-7b"),
        pytest.param(COHERE, 8_028_033_024, id="aya-23-8b"),
        pytest.param(STARCODER2, 7_173_923_840, id="starcoder2-7b"),
    ],
)
def test_every_parameter_is_counted(keys: dict[str, Any], count: int) -> None:
    assert n_params(read(keys)) == count


def test_mimo_says_what_its_drafting_layer_would_add() -> None:
    (said,) = read(MIMO).left_out
    assert said.startswith("num_nextn_predict_layers: 1 layer")
    # A layer like the others, a matrix that joins two states, and three norms.
    layer = sum(tensor.size for tensor in read(MIMO).layers[0].weights)
    assert f"{layer + 2 * 4096**2 + 3 * 4096:,} parameters" in said
    assert read(MIMO, num_nextn_predict_layers=0).left_out == ()


def test_olmo_2_has_norms_over_all_heads() -> None:
    sizes = {tensor.name: tensor.size // 64 for tensor in weight_tensors(read(OLMO2)) if tensor.role == "norm"}
    assert (sizes["q_norm"], sizes["k_norm"]) == (40 * 128, 8 * 128)


def test_internlm_2_has_its_own_names() -> None:
    places = {tensor.name: tensor.module for tensor in weight_tensors(read(INTERNLM2))}
    assert (places["wq"], places["wv"], places["wo"]) == ("attention.wqkv", "attention.wqkv", "attention.wo")
    assert places["w_gate"] == "feed_forward.w1"
    assert n_params(read(INTERNLM2, bias=True)) - n_params(read(INTERNLM2)) == 32 * (4096 + 2 * 1024 + 4096)


def test_cohere_ties_its_embeddings_and_may_have_norms_of_heads() -> None:
    assert read(COHERE).tied_embeddings
    assert n_params(read(COHERE, use_qk_norm=True)) - n_params(read(COHERE)) == 32 * (32 + 8) * 128


def test_starcoder_2_slides_in_every_layer() -> None:
    (cache,) = caches(read(STARCODER2))
    assert (cache.window, cache.n_layers) == (4096, 32)
    assert [cache.window for cache in caches(read(STARCODER2, sliding_window=None))] == [float("inf")]


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        (INTERNLM2, {"bias": None}, "bias is missing"),
        (INTERNLM2, {"bias": "no"}, "bias is 'no'; it must be true or false"),
        (OLMO2, {"clip_qkv": 8, "qk_layers": 3}, "qk_layers is not understood"),
        (COHERE, {"hidden_act": "gelu"}, "hidden_act gelu"),
        (STARCODER2, {"norm_type": "rms"}, "norm_type rms"),
        (STARCODER2, {"mlp_type": "gated"}, "mlp_type gated"),
        (STARCODER2, {"hidden_act": "silu"}, "hidden_act silu"),
        (MIMO, {"num_nextn_predict_layers": -1}, "num_nextn_predict_layers is -1"),
    ],
)
def test_what_is_not_understood_is_refused_by_key(keys: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(keys, **changes)
