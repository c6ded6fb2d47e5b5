"""Gemma 4: heads of one width where layers slide and of another where they see all, experts, and shared caches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import (
    FULL,
    SLIDING,
    assembled,
    heads,
    layer_kinds,
    nested,
    routed,
    shape,
    window,
)
from slicewise.catalog.families.gemma import HEAD_DIM, KINDS, NORMS, biases
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.towers import GELU, gemma4_audio, gemma4_vision
from slicewise.errors import InputError

_STEP = 6
_GLOBAL_HEAD_DIM = 512
_EARLIER = "-of-an-earlier-layer"


def gemma4(config: Config) -> ModelRecord:
    """Gemma 4 with the towers that its config describes."""
    text = nested(config)
    record = gemma4_text(text)
    text.done()
    towers = {}
    for key, name, count in (
        ("vision_config", "vision_tower", gemma4_vision),
        ("audio_config", "audio_tower", gemma4_audio),
    ):
        part = config.part(key)
        if part is not None:
            towers[name] = count(part, record.d_model)
            part.done()
    config.ignore("vision_soft_tokens_per_image")
    return replace(record, towers=towers)


def gemma4_text(config: Config) -> ModelRecord:
    """Gemma 4 without towers."""
    config.text("hidden_activation", GELU[0], GELU)
    config.text("use_bidirectional_attention", "vision", ("vision",))
    found = shape(config, tied=True)
    n_layers = config.layers()
    kinds = _kinds(config, n_layers)
    double = config.flag("use_double_wide_mlp")
    feeds = ["wide" if double and kind.endswith(_EARLIER) else "usual" for kind in kinds]
    mixers = _mixers(config)
    inputs = config.size("hidden_size_per_layer_input", least=0)
    config.ignore("vocab_size_per_layer_input")
    return assembled(
        found,
        mixers,
        _feed_forwards(config, found["d_model"]),
        list(zip(kinds, feeds, strict=True)),
        # A proportional rotary table is as wide as the head, whatever part of it is rotated.
        rotated=mixers[FULL]["head_dim"] + mixers[SLIDING]["head_dim"],
        norms=NORMS,
        **(_per_layer_inputs(config, found["d_model"], n_layers, inputs) if inputs else {}),
    )


def _kinds(config: Config, n_layers: int) -> list[str]:
    """The mixer of each layer: every sixth sees all where nothing is said, and the last one always does."""
    every = [FULL if (index + 1) % _STEP == 0 else SLIDING for index in range(n_layers)]
    kinds = [*(layer_kinds(config, n_layers, KINDS) or every)[:-1], FULL]
    n_shared = config.size("num_kv_shared_layers", default=0, least=0)
    own, shared = kinds[: max(0, n_layers - n_shared)], kinds[max(0, n_layers - n_shared) :]
    if not set(shared) <= set(own):
        raise InputError(
            f"{config.origin}: num_kv_shared_layers is {n_shared} of {n_layers} layers;"
            " a layer of each kind must come before those that use its keys and values"
        )
    return own + [kind + _EARLIER for kind in shared]


def _mixers(config: Config) -> dict[str, dict[str, Any]]:
    words = heads(config, must_have_kv_heads=True, head_dim=HEAD_DIM)
    same, own = config.flag("attention_k_eq_v"), words["n_kv_heads"]
    n_global = config.size("num_global_key_value_heads", default=own)
    width = config.size("global_head_dim", default=_GLOBAL_HEAD_DIM)
    kinds: dict[str, dict[str, Any]] = {
        FULL: {**words, "head_dim": width, "n_kv_heads": n_global if same else own, "shared_kv": same},
        SLIDING: {**words, **window(config, default=None)},
    }
    found = {}
    for name, kind in kinds.items():
        norms = [[f"{side}_norm", kind["head_dim"], "norm"] for side in ("q", "k")]
        found[name] = {"kind": "attention", **kind, **biases(config), "more": norms}
        found[name + _EARLIER] = {**found[name], "earlier_kv": True, "more": norms[:1]}
    return found


def _feed_forwards(config: Config, d_model: int) -> dict[str, dict[str, Any]]:
    """The MLP, of the usual width and of twice that, and the experts beside it, if there are any."""
    d_ff = config.size("intermediate_size")
    widths = {"usual": d_ff, "wide": 2 * d_ff}
    config.ignore("num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size")
    if not config.flag("enable_moe_block"):
        return {name: {"kind": "dense", "d_ff": width} for name, width in widths.items()}
    experts = routed(config, d_ff="moe_intermediate_size", active="top_k_experts")
    norms = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
    more = [
        *([name, d_model, "norm"] for name in norms),
        ["router.scale", d_model, "other"],
        ["router.per_expert_scale", experts["n_experts"], "other"],
    ]
    places = {"module": "", "router_module": "router.proj", "shared_module": "mlp"}
    return {name: {**experts, "shared_d_ff": width, **places, "more": more} for name, width in widths.items()}


def _per_layer_inputs(config: Config, d_model: int, n_layers: int, width: int) -> dict[str, Any]:
    """A second, narrow embedding of each token for each layer, and what mixes it in."""
    table = [config.size("vocab_size_per_layer_input"), n_layers * width]
    return {
        "more": [
            ["embed_tokens_per_layer", table, "embedding", ["vocab", "embed"]],
            ["per_layer_model_projection", [d_model, n_layers * width], "mlp"],
            ["per_layer_projection_norm", width, "norm"],
        ],
        "layer_more": [
            ["per_layer_input_gate", [d_model, width], "mlp"],
            ["per_layer_projection", [width, d_model], "mlp"],
            ["post_per_layer_input_norm", d_model, "norm"],
        ],
    }
