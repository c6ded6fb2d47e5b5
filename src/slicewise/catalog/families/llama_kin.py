"""Dense families near to Llama, with other norms, biases or names: OLMo 2, InternLM 2, MiMo, Cohere, StarCoder 2."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, heads, stack, window
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.families.llama import qwen2
from slicewise.catalog.model_record import ModelRecord

_INTERNLM2_QKV = {"q": "wqkv", "k": "wqkv", "v": "wqkv", "o": "wo"}
_INTERNLM2_MLP = {"gate": "w1", "up": "w3", "down": "w2"}


def olmo2(config: Config) -> ModelRecord:
    """OLMo 2: norms after attention and MLP, and norms of queries and keys over all heads."""
    config.text("hidden_act", "silu", ("silu",))
    words, bias = heads(config), config.flag("attention_bias")
    sides = {"q_norm": words["n_heads"], "k_norm": words["n_kv_heads"]}
    norms = [[name, count * words["head_dim"], "norm"] for name, count in sides.items()]
    return stack(
        config,
        attention={"qkv_bias": bias, "out_bias": bias, "more": norms},
        norms=["post_attention_layernorm", "post_feedforward_layernorm"],
    )


def internlm2(config: Config) -> ModelRecord:
    """InternLM 2 and 2.5: Llama with a fused matrix of queries, keys and values."""
    config.text("hidden_act", "silu", ("silu",))
    bias = config.flag("bias", default=None)
    return stack(
        config,
        attention={"qkv_bias": bias, "out_bias": bias, "module": "attention", "places": _INTERNLM2_QKV},
        feed_forward={"module": "feed_forward", "places": _INTERNLM2_MLP},
    )


def mimo(config: Config) -> ModelRecord:
    """MiMo: Qwen 2 with layers that predict further tokens."""
    record = qwen2(config)
    return drafted(config, record, layer_size(record, FULL, "dense"), "num_nextn_predict_layers")


def cohere(config: Config) -> ModelRecord:
    """Command R and Aya 23: attention and MLP side by side behind one norm."""
    config.text("hidden_act", "silu", ("silu",))
    words, bias = heads(config), config.flag("attention_bias")
    more: list[list[Any]] = []
    if config.flag("use_qk_norm"):
        sizes = {"q_norm": words["n_heads"], "k_norm": words["n_kv_heads"]}
        more = [[name, [count, words["head_dim"]], "norm"] for name, count in sizes.items()]
    return stack(
        config,
        attention={"qkv_bias": bias, "out_bias": bias, "more": more},
        tied=True,
        norms=["input_layernorm"],
    )


def starcoder2(config: Config) -> ModelRecord:
    """StarCoder 2: an MLP without a gate, norms with biases, and a window in every layer."""
    config.text("hidden_act", "gelu_pytorch_tanh", ("gelu_pytorch_tanh", "gelu"))
    config.text("norm_type", "layer_norm", ("layer_norm",))
    config.text("mlp_type", "default", ("default",))
    config.ignore("activation_function")
    bias = config.flag("use_bias", default=True)
    places = {"up": "c_fc", "down": "c_proj"}
    return stack(
        config,
        attention={"qkv_bias": bias, "out_bias": bias, **window(config)},
        feed_forward={"gated": False, "bias": bias, "places": places},
        must_have_kv_heads=True,
        tied=True,
        norm_bias=True,
    )
