"""Gemma 3n: layers that slide, later ones with an earlier one's keys and values, and four streams mixed in each layer.

Its vision tower is named by its architecture alone, so the towers are not counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, SLIDING, assembled, heads, layer_kinds, nested, shape, window
from slicewise.catalog.families.gemma import HEAD_DIM, KINDS, NORMS, biases, one_way
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError

_EARLIER = "_earlier"


def gemma3n(config: Config) -> ModelRecord:
    """Gemma 3n with its towers, which are not counted."""
    text = nested(config)
    record = gemma3n_text(text)
    text.done()
    towers = [name for name in ("vision_config", "audio_config") if config.has(name)]
    config.ignore(*towers, "audio_soft_tokens_per_image", "vision_soft_tokens_per_image")
    said = [f"{name}: the tower, whose arrays the config does not describe, is not counted." for name in towers]
    return replace(record, left_out=[*record.left_out, *said])


def gemma3n_text(config: Config) -> ModelRecord:
    """Gemma 3n without towers."""
    one_way(config)
    config.ignore("activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip", "altup_lr_multiplier")
    if not config.flag("altup_correct_scale", default=True):
        raise InputError(f"{config.origin}: altup_correct_scale must be true; each layer scales what it corrects")
    found, n_layers = shape(config, tied=True), config.layers()
    words = {**heads(config, must_have_kv_heads=True, head_dim=HEAD_DIM), **biases(config)}
    norms = [["q_norm", words["head_dim"], "norm"], ["k_norm", words["head_dim"], "norm"]]
    full = {"kind": "attention", **words, "more": norms}
    mixers: dict[str, dict[str, Any]] = {FULL: full, SLIDING: {**full, **window(config, default=None)}}
    for name, mixer in tuple(mixers.items()):
        mixers[name + _EARLIER] = {**mixer, "earlier_kv": True, "more": norms[:1]}
    widths = _widths(config, n_layers)
    return assembled(
        found,
        mixers,
        {f"dense-{width}": {"kind": "dense", "d_ff": width} for width in sorted(set(widths))},
        [(kind, f"dense-{width}") for kind, width in zip(_kinds(config, n_layers), widths, strict=True)],
        rotated=2 * words["head_dim"],
        norms=NORMS,
        **_streams(config, found["d_model"], n_layers),
    )


def _widths(config: Config, n_layers: int) -> list[int]:
    """The width of each MLP: one for all, or a list."""
    if not isinstance(config.keys.get("intermediate_size"), list):
        return [config.size("intermediate_size")] * n_layers
    return [config.whole(width, "intermediate_size") for width in config.listed("intermediate_size", n_layers) or ()]


def _kinds(config: Config, n_layers: int) -> list[str]:
    """The mixer of each layer, of which the last ones reread."""
    kinds = layer_kinds(config, n_layers, KINDS)
    if kinds is None:
        raise config.missing("layer_types")
    n_own = max(0, n_layers - config.size("num_kv_shared_layers", least=0))
    if not set(kinds[n_own:]) <= set(kinds[:n_own]):
        raise InputError(
            f"{config.origin}: num_kv_shared_layers leaves {n_own} of {n_layers} layers with keys of their own;"
            " a layer of each kind must come before those that use its keys and values"
        )
    return kinds[:n_own] + [kind + _EARLIER for kind in kinds[n_own:]]


def _streams(config: Config, d_model: int, n_layers: int) -> dict[str, Any]:
    """What makes and mixes the streams, the low-rank path beside attention, and the embeddings of each layer."""
    streams, rank = config.size("altup_num_inputs"), config.size("laurel_rank")
    narrow = config.size("hidden_size_per_layer_input")
    table = [config.size("vocab_size_per_layer_input"), n_layers * narrow]
    sides = [f"altup_{side}projections.{at}" for side in ("", "unembed_") for at in range(streams - 1)]
    return {
        "more": [
            ["embed_tokens_per_layer", table, "embedding", ["vocab", "embed"]],
            ["per_layer_model_projection", [d_model, n_layers * narrow], "mlp"],
            ["per_layer_projection_norm", narrow, "norm"],
            *([name, [d_model, d_model], "mlp"] for name in sides),
        ],
        "layer_more": [
            ["altup.correct_output_scale", d_model, "other"],
            ["altup.correction_coefs", [streams, streams], "mlp"],
            ["altup.prediction_coefs", [streams, streams**2], "mlp"],
            ["altup.modality_router", [d_model, streams], "mlp"],
            ["altup.router_norm", d_model, "norm"],
            ["laurel.linear_left", [d_model, rank], "mlp"],
            ["laurel.linear_right", [rank, d_model], "mlp"],
            ["laurel.post_laurel_norm", d_model, "norm"],
            ["per_layer_input_gate", [d_model, narrow], "mlp"],
            ["per_layer_projection", [narrow, d_model], "mlp"],
            ["post_per_layer_input_norm", d_model, "norm"],
        ],
    }
