"""Kimi Linear and Kimi K3: delta attention in most layers, latent attention in the rest, experts after the first.

K3 adds to Kimi Linear gates as wide as the heads, experts in a narrower width, and residuals that attend to earlier
blocks of layers. Its arrays are those of its checkpoint, as several engines load them; transformers has no K3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import assembled, first_dense, nested, routed, shape
from slicewise.catalog.families.deepseek import latent
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError

DELTA, LATENT = "delta", "latent"
_PLACES = {
    "gate": "w1", "up": "w3", "down": "w2", "in": "routed_expert_down_proj", "out": "routed_expert_up_proj",
}  # fmt: skip
_NEW = ("attn_res_block_size", "latent_moe_use_norm", "mla_use_output_gate", "routed_expert_hidden_size")
_NEW_OF_LINEAR = ("use_full_rank_gate",)
"""Keys that a Kimi Linear config leaves out, and a K3 config gives."""


def kimi_linear(config: Config) -> ModelRecord:
    """Kimi Linear."""
    config.text("hidden_act", "silu", ("silu", "situ"))
    config.ignore("moe_renormalize", "mla_use_nope", "num_expert_group", "use_grouped_topk")
    config.ignore("activation_situ_beta", "activation_situ_linear_beta")
    config.refuse("num_nextn_predict_layers", "layers that draft tokens are not supported for this family")
    config.refuse("moe_layer_freq", "dense layers between those of experts are not supported for this family", but=1)
    config.text("moe_router_activation_func", "sigmoid", ("sigmoid", "softmax"))
    n_layers, found = config.layers(), shape(config)
    feeds = first_dense(n_layers, config.size("first_k_dense_replace", least=0))
    mixing, delta = _linear(config, n_layers, found["d_model"])
    attention = {**latent(config), "gated": config.flag("mla_use_output_gate")}
    return assembled(
        found,
        {DELTA: delta, LATENT: attention},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size")}, "experts": _experts(config)},
        list(zip(mixing, feeds, strict=True)),
        rotated=0,
        **_residuals(config, found["d_model"]),
    )


def kimi_k3(config: Config) -> ModelRecord:
    """Kimi K3: its vision tower is not counted, for no published code gives the arrays of its projector."""
    text = nested(config)
    text.ignore("quantization_config")
    for part, names in ((text, _NEW), (text.part("linear_attn_config"), _NEW_OF_LINEAR)):
        for name in names:
            if part and not part.has(name):
                raise InputError(f"{part.origin}: {name} is missing; a {config.family} config.json must give it")
    record = kimi_linear(text)
    text.done()
    config.ignore("vision_config")
    return replace(record, left_out=[*record.left_out, "vision_config: the vision tower is not counted."])


def _linear(config: Config, n_layers: int, d_model: int) -> tuple[list[str], dict[str, Any]]:
    """The mixer of each layer, and the arguments of delta attention. Lists of layers count from 1."""
    part = config.part("linear_attn_config")
    if part is None:
        raise InputError(f"{config.origin}: linear_attn_config is missing; a {config.family} config.json must give it")
    kinds = {}
    for name, kind in (("kda_layers", DELTA), ("full_attn_layers", LATENT)):
        kinds.update({part.whole(number, name): kind for number in part.listed(name) or ()})
    if sorted(kinds) != list(range(1, n_layers + 1)):
        raise InputError(f"{part.origin}: kda_layers and full_attn_layers must name each of {n_layers} layers, from 1")
    n_heads, width, kernel = part.size("num_heads"), part.size("head_dim"), part.size("short_conv_kernel_size")
    whole = n_heads * width
    full_rank = part.flag("use_full_rank_gate")
    part.ignore("gate_lower_bound")
    part.done()
    gate = [["g_proj", [d_model, whole], "state_space"]] if full_rank else [["g_b_proj", [width, whole], "state_space"]]
    words = {
        "kind": "recurrence",
        "form": "linear",
        "n_heads": n_heads,
        "head_dim": width,
        "state_elements": n_heads * width * width,
        "conv_elements": 3 * whole * (kernel - 1),
        "matrices": [
            *([f"{name}_proj", [d_model, whole], "state_space"] for name in "qkv"),
            ["f_b_proj", [width, whole], "state_space"],
            ["b_proj", [d_model, n_heads], "state_space"],
            *gate,
        ],
        "out": ["o_proj", [whole, d_model], "state_space"],
        "module": "self_attn",
        "more": [
            ["f_a_proj", [d_model, width], "state_space"],
            *([] if full_rank else [["g_a_proj", [d_model, width], "state_space"]]),
            *([f"{name}_conv1d", [whole, kernel], "other"] for name in "qkv"),
            ["A_log", n_heads, "other"],
            ["dt_bias", whole, "other"],
            ["o_norm", width, "norm"],
        ],
    }
    return [kinds[number] for number in range(1, n_layers + 1)], words


def _experts(config: Config) -> dict[str, Any]:
    words = routed(config, d_ff="moe_intermediate_size", active="num_experts_per_token")
    shared = words["d_ff"] * config.size("num_shared_experts", least=0)
    narrow = config.size("routed_expert_hidden_size", default=0)
    norm = [["routed_expert_norm", narrow, "norm"]] if narrow and config.flag("latent_moe_use_norm") else []
    config.ignore("latent_moe_use_norm", "topk_group", "topk_method")
    places = {"module": "block_sparse_moe", "places": _PLACES}
    return {**words, "shared_d_ff": shared, "latent_dim": narrow, **places, "more": norm}


def _residuals(config: Config, d_model: int) -> dict[str, Any]:
    """A norm and a score for what each residual reads of the blocks before, twice a layer and once at the end."""
    if not config.size("attn_res_block_size", default=0):
        return {}

    def pair(part: str) -> list[list[Any]]:
        return [[f"{part}_res_norm", d_model, "norm"], [f"{part}_res_proj", [d_model, 1], "other"]]

    return {"layer_more": pair("self_attention") + pair("mlp"), "more": pair("output_attn")}
