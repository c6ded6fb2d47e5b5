"""Phi: parallel attention and MLP with biases up to Phi 2, and near to Llama, with fused matrices, from Phi 3 on."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, rotary_share, shape, stack, window
from slicewise.catalog.model_record import ModelRecord

FUSED_QKV = {"q": "qkv_proj", "k": "qkv_proj", "v": "qkv_proj"}
FUSED_MLP = {"gate": "gate_up_proj", "up": "gate_up_proj"}
_GELU = ("gelu_new", "gelu", "gelu_pytorch_tanh")
_PHI_SHARE = 0.5
_PHI_MLP = 4


def phi3(config: Config) -> ModelRecord:
    """Phi 3, 3.5 and 4, and Phi 4 mini, which rotates a part of each head."""
    config.text("hidden_act", "silu", ("silu",))
    for key in ("attention_bias", "mlp_bias", "lm_head_bias"):
        config.refuse(key, "a Phi 3 model has no biases")
    return stack(config, attention={"places": FUSED_QKV, **window(config)}, feed_forward={"places": FUSED_MLP})


def phi(config: Config) -> ModelRecord:
    """Phi 1, 1.5 and 2, in their own words (`n_embd`, `n_head`, `n_layer`, `rotary_dim`) or those of transformers."""
    for key in ("hidden_act", "activation_function"):
        config.text(key, _GELU[0], _GELU)
    config.ignore("flash_attn", "flash_rotary", "fused_dense")
    config.refuse("img_processor", "a vision tower of a Phi model is not supported")
    found, n_layers = shape(config), config.layers("num_hidden_layers", "n_layer")
    words = heads(config)
    words["n_kv_heads"] = config.size("num_key_value_heads", "n_head_kv", default=words["n_heads"])
    norms = [
        [f"{side}_layernorm{end}", words["head_dim"], role]
        for side in ("q", "k")
        for end, role in (("", "norm"), ("_bias", "bias"))
    ]
    more = norms if config.flag("qk_layernorm") else []
    d_ff = config.size("intermediate_size", "n_inner", default=_PHI_MLP * found["d_model"])
    share = rotary_share(config, _PHI_SHARE)
    return assembled(
        found,
        {
            FULL: {
                "kind": "attention",
                **words,
                "qkv_bias": True,
                "out_bias": True,
                "places": {"o": "dense"},
                "more": more,
            }
        },
        {
            "dense": {
                "kind": "dense",
                "d_ff": d_ff,
                "gated": False,
                "bias": True,
                "places": {"up": "fc1", "down": "fc2"},
            }
        },
        [(FULL, "dense")] * n_layers,
        rotated=config.size("rotary_dim", default=int(words["head_dim"] * share)),
        norms=["input_layernorm"],
        norm_bias=True,
        more=[["lm_head_bias", found["vocab_size"], "bias"]],
    )
