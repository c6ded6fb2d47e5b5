"""Near to Llama, from code that came with checkpoints: Yi, Aquila 2, InternLM 1 and 3, Baichuan, Qwen 1, MiniCPM.

Source: the modeling files of 01-ai/Yi-6B, BAAI/Aquila2-7B, internlm/internlm-7b, internlm/internlm3-8b-instruct,
baichuan-inc/Baichuan2-7B-Base, Qwen/Qwen-7B and openbmb/MiniCPM-2B-sft-bf16
"""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, shape, stack
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import UnsupportedModelError

_PACKED = dict.fromkeys("qkv", "W_pack")
_QWEN_QKV = {**dict.fromkeys("qkv", "c_attn"), "o": "c_proj"}
_QWEN_MLP = {"gate": "w2", "up": "w1", "down": "c_proj"}


def yi(config: Config) -> ModelRecord:
    """Yi and Aquila 2: Llama without biases."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("attention_bias", "biases are not supported for this family")
    return stack(config)


def internlm(config: Config) -> ModelRecord:
    """InternLM 1: one key says whether all matrices of attention have biases."""
    config.text("hidden_act", "silu", ("silu",))
    bias = config.flag("bias", default=None)
    return stack(config, attention={"qkv_bias": bias, "out_bias": bias})


def internlm3(config: Config) -> ModelRecord:
    """InternLM 3: biases on queries, keys and values by one key, on all other matrices by another."""
    config.text("hidden_act", "silu", ("silu",))
    config.size("head_dim")
    qkv, rest = config.flag("qkv_bias", "attention_bias"), config.flag("bias", "mlp_bias")
    return stack(
        config,
        attention={"qkv_bias": qkv, "out_bias": rest},
        feed_forward={"bias": rest},
        must_have_kv_heads=True,
    )


def baichuan(config: Config) -> ModelRecord:
    """Baichuan 1 and 2: queries, keys and values in one matrix; 13B has slopes in place of positions."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("num_key_value_heads", "a Baichuan model has one KV head for each query head")
    config.ignore("gradient_checkpointing", "z_loss_weight")
    found, words = shape(config), heads(config)
    return assembled(
        found,
        {FULL: {"kind": "attention", **words, "places": _PACKED}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size")}},
        [(FULL, "dense")] * config.layers(),
        # Only those with positions say how many there are; the others say how long prompts may be.
        rotated=words["head_dim"] if config.has("max_position_embeddings") else 0,
    )


def qwen(config: Config) -> ModelRecord:
    """Qwen 1: biases on queries, keys and values; each matrix of the MLP has half of `intermediate_size`."""
    if not config.flag("no_bias", default=None):
        raise UnsupportedModelError(f"{config.origin}: no_bias must be true; other biases are not supported")
    config.refuse("visual", "a vision tower of a Qwen 1 model is not supported")
    config.ignore("use_dynamic_ntk", "use_logn_attn", "softmax_in_fp32", "rotary_emb_base", "attn_dropout_prob")
    config.ignore("use_cache_quantization", "use_cache_kernel", "emb_dropout_prob", "onnx_safe", "rotary_pct")
    found, words = shape(config), heads(config)
    width = config.size("kv_channels")
    if width != words["head_dim"]:
        raise UnsupportedModelError(f"{config.origin}: kv_channels must be hidden_size over num_attention_heads")
    return assembled(
        found,
        {FULL: {"kind": "attention", **words, "qkv_bias": True, "module": "attn", "places": _QWEN_QKV}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size") // 2, "places": _QWEN_MLP}},
        [(FULL, "dense")] * config.layers(),
        rotated=width,
    )


def minicpm(config: Config) -> ModelRecord:
    """MiniCPM 1 and 2, dense: Llama whose scales change no array. Whether embeddings are tied must be said."""
    config.text("hidden_act", "silu", ("silu",))
    config.flag("tie_word_embeddings", default=None)
    for key in ("attention_bias", "num_experts", "sparse_config", "mixture"):
        config.refuse(key, "is not supported for this family")
    config.ignore("scale_emb", "scale_depth", "dim_model_base", "num_experts_per_tok")
    return stack(config, must_have_kv_heads=True)
