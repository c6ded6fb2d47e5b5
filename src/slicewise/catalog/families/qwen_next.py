"""Qwen 3 Next, 3.5 and 3.6: three layers of a gated delta net to each one of gated attention, dense or with experts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import (
    FULL,
    assembled,
    heads,
    layer_kinds,
    layer_numbers,
    nested,
    rotary_share,
    routed,
    shape,
)
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.families.qwen_moe import COUNTS
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.towers import qwen3_visual
from slicewise.errors import InputError
from slicewise.spec.precision import BYTES_PER_ELEMENT

DELTA = "delta"
_LAYER_TYPES = {"full_attention": FULL, "linear_attention": DELTA}
_STATE_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def qwen3_next(config: Config) -> ModelRecord:
    """Qwen 3 Next: a delta net's projections in are fused; layers of `mlp_only_layers` are dense."""
    n_layers, step = config.layers(), config.size("decoder_sparse_step", default=1)
    plain = layer_numbers(config, "mlp_only_layers", n_layers)
    feeds = ["experts" if (at + 1) % step == 0 and at not in plain else "dense" for at in range(n_layers)]
    return _record(config, feeds, fused=True)


def qwen3_5_text(config: Config) -> ModelRecord:
    """The language model of Qwen 3.5 and 3.6, dense."""
    record = _record(config, ["dense"] * config.layers(), fused=False)
    return drafted(config, record, layer_size(record, FULL, "dense", {FULL: _full(config)}), "mtp_num_hidden_layers")


def qwen3_5_moe_text(config: Config) -> ModelRecord:
    """The language model of Qwen 3.5 and 3.6, with experts in every layer."""
    record = _record(config, ["experts"] * config.layers(), fused=False)
    drafting = layer_size(record, FULL, "experts", {FULL: _full(config)})
    return drafted(config, record, drafting, "mtp_num_hidden_layers")


def qwen3_5(config: Config) -> ModelRecord:
    """Qwen 3.5 and 3.6, dense; the vision tower is not counted."""
    text = nested(config)
    return _without_tower(config, text, qwen3_5_text(text))


def qwen3_5_moe(config: Config) -> ModelRecord:
    """Qwen 3.5 and 3.6 with experts; the vision tower is not counted."""
    text = nested(config)
    return _without_tower(config, text, qwen3_5_moe_text(text))


def _without_tower(config: Config, text: Config, record: ModelRecord) -> ModelRecord:
    """As transformers counts the model for text alone."""
    text.done()
    config.ignore("language_model_only")
    vision = config.part("vision_config")
    if vision is None:
        return record
    size = qwen3_visual(vision)
    vision.done()
    return replace(
        record, left_out=[*record.left_out, f"vision_config: the tower's {size:,} parameters are not counted."]
    )


def _record(config: Config, feeds: list[str], *, fused: bool) -> ModelRecord:
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("use_sliding_window", "windows are not supported for this family")
    if not config.flag("attn_output_gate", default=True):
        raise InputError(f"{config.origin}: attn_output_gate must be true; the attention of this family is gated")
    config.listed("mlp_only_layers")
    config.ignore("output_gate_type", "mtp_use_dedicated_embeddings", "sliding_window", "max_window_layers")
    found, full = shape(config), _full(config)
    mixers = {FULL: full, DELTA: _delta(config, found, fused=fused)}
    d_ff = config.size("intermediate_size", default=None if "dense" in feeds else 1)
    forward: dict[str, dict[str, Any]] = {"dense": {"kind": "dense", "d_ff": d_ff}}
    if "experts" in feeds:
        forward["experts"] = _experts(config, found["d_model"])
    kinds = list(zip(_mixing(config, len(feeds)), feeds, strict=True))
    return assembled(found, mixers, forward, kinds, rotated=int(full["head_dim"] * rotary_share(config, default=0.25)))


def _full(config: Config) -> dict[str, Any]:
    """The arguments of layers that attend, of which a model may have none but in what drafts."""
    words, width, bias = heads(config, must_have_kv_heads=True), config.size("head_dim"), config.flag("attention_bias")
    norms = [["q_norm", width, "norm"], ["k_norm", width, "norm"]]
    return {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias, "gated": True, "more": norms}


def _mixing(config: Config, n_layers: int) -> list[str]:
    """The mixer of each layer: `layer_types` says it, or each `full_attention_interval`-th layer attends."""
    listed = layer_kinds(config, n_layers, _LAYER_TYPES)
    step = config.size("full_attention_interval", default=None if listed is None else 1)
    return listed or [FULL if (index + 1) % step == 0 else DELTA for index in range(n_layers)]


def _delta(config: Config, found: dict[str, Any], *, fused: bool) -> dict[str, Any]:
    """A gated delta net: a matrix of key by value a value head, and the last inputs of a short convolution.

    The state has the dtype of `mamba_ssm_dtype`, and that of the weights where it is missing, as vLLM has it.
    """
    d_model, kernel = found["d_model"], config.size("linear_conv_kernel_dim")
    n_keys, n_values = config.size("linear_num_key_heads"), config.size("linear_num_value_heads")
    key_dim, value_dim = config.size("linear_key_head_dim"), config.size("linear_value_head_dim")
    if n_values % n_keys:
        raise InputError(f"{config.origin}: linear_num_value_heads {n_values} do not divide over {n_keys} key heads")
    keys, values = n_keys * key_dim, n_values * value_dim
    convolved = 2 * keys + values
    stated = config.text("mamba_ssm_dtype", "", ("", *_STATE_DTYPES))
    separate = {"in_proj_qkv": convolved, "in_proj_z": values, "in_proj_b": n_values, "in_proj_a": n_values}
    projections = {"in_proj_qkvz": convolved + values, "in_proj_ba": 2 * n_values} if fused else separate
    return {
        "kind": "recurrence",
        "form": "linear",
        # Value heads are split with the key heads that they share.
        "n_heads": n_keys,
        "head_dim": key_dim,
        "state_elements": n_values * key_dim * value_dim,
        "conv_elements": convolved * (kernel - 1),
        "state_dtype_bytes": BYTES_PER_ELEMENT[_STATE_DTYPES[stated] if stated else found["checkpoint_dtype"]],
        "matrices": [[name, [d_model, size], "state_space"] for name, size in projections.items()],
        "out": ["out_proj", [values, d_model], "state_space"],
        "more": [
            ["conv1d", [convolved, kernel], "other"],
            ["dt_bias", n_values, "other"],
            ["A_log", n_values, "other"],
            ["norm", value_dim, "norm"],
        ],
    }


def _experts(config: Config, d_model: int) -> dict[str, Any]:
    """Routed experts, and a shared one with a gate of its own."""
    return {
        **routed(config, d_ff="moe_intermediate_size", count=COUNTS),
        "shared_d_ff": config.size("shared_expert_intermediate_size"),
        "shared_module": "shared_expert",
        "more": [["shared_expert_gate", [d_model, 1], "router"]],
    }
