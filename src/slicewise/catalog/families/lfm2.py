"""LFM 2: most layers a short convolution between two gates, the others attention; dense, or experts after the first."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, first_dense, heads, layer_kinds, routed, shape
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import UnsupportedModelError

CONV = "conv"
_KINDS = {"full_attention": FULL, "conv": CONV}
_MODULE = "feed_forward"
_PLACES = {"gate": "w1", "up": "w3", "down": "w2"}
_NORMS = ["operator_norm", "ffn_norm"]
_MULTIPLE = 256


def lfm2(config: Config) -> ModelRecord:
    """LFM 2, dense: the width of its MLP is two thirds of what is stated, rounded up, unless that is switched off."""
    config.ignore(
        "block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu",
        "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "num_heads", "theta",
        "use_pos_enc",
    )  # fmt: skip
    found, n_layers = _shape(config), config.layers()
    kinds = layer_kinds(config, n_layers, _KINDS) or _numbered(config, n_layers)
    config.ignore("full_attn_idxs")
    feed = {"kind": "dense", "d_ff": _width(config), "module": _MODULE, "places": _PLACES}
    return _model(config, found, kinds, ["dense"] * n_layers, {"dense": feed})


def lfm2_moe(config: Config) -> ModelRecord:
    """LFM 2 8B and 24B of experts."""
    found, n_layers = _shape(config), config.layers()
    kinds = layer_kinds(config, n_layers, _KINDS)
    if kinds is None:
        raise config.missing("layer_types")
    config.ignore("use_expert_bias")
    experts = routed(config, d_ff="moe_intermediate_size", count=("num_experts", "num_local_experts"))
    feeds = first_dense(n_layers, config.size("num_dense_layers", least=0))
    d_ff = config.size("intermediate_size", default=None if "dense" in feeds else 1)
    forward = {"dense": {"kind": "dense", "d_ff": d_ff}, "experts": experts}
    places = {"module": _MODULE, "places": _PLACES}
    return _model(config, found, kinds, feeds, {name: {**words, **places} for name, words in forward.items()})


def _shape(config: Config) -> dict[str, Any]:
    """What every config says; `tie_embedding` wins over the usual key."""
    found = shape(config, tied=True)
    return {**found, "tied_embeddings": config.flag("tie_embedding", default=found["tied_embeddings"])}


def _numbered(config: Config, n_layers: int) -> list[str]:
    """The mixer of each layer, by the numbers of those that attend."""
    if not config.has("full_attn_idxs"):
        raise config.missing("layer_types", "it or full_attn_idxs says which layers attend")
    listed = {config.whole(at, "full_attn_idxs", least=0) for at in config.listed("full_attn_idxs") or ()}
    if any(at >= n_layers for at in listed):
        raise UnsupportedModelError(f"{config.origin}: full_attn_idxs holds {max(listed)}, of {n_layers} layers")
    return [FULL if at in listed else CONV for at in range(n_layers)]


def _width(config: Config) -> int:
    """The width of the MLP."""
    d_ff = config.size("block_ff_dim", "intermediate_size")
    config.ignore("intermediate_size")
    if not config.flag("block_auto_adjust_ff_dim", default=True):
        config.ignore("block_ffn_dim_multiplier", "block_multiple_of")
        return d_ff
    multiple = config.size("block_multiple_of", default=_MULTIPLE)
    narrow = int(config.number("block_ffn_dim_multiplier", default=1.0) * int(2 * d_ff / 3))
    return -(-narrow // multiple) * multiple


def _model(
    config: Config,
    found: dict[str, Any],
    kinds: list[str],
    feeds: list[str],
    forward: dict[str, dict[str, Any]],
) -> ModelRecord:
    words = heads(config, must_have_kv_heads=True)
    width = words["head_dim"]
    norms = [["q_layernorm", width, "norm"], ["k_layernorm", width, "norm"]]
    return assembled(
        found,
        {FULL: {"kind": "attention", **words, "places": {"o": "out_proj"}, "more": norms}, CONV: _conv(config, found)},
        forward,
        list(zip(kinds, feeds, strict=True)),
        rotated=width,
        norms=_NORMS,
    )


def _conv(config: Config, found: dict[str, Any]) -> dict[str, Any]:
    """A short convolution, channel by channel: it keeps one input less than it is wide, as vLLM has it."""
    d_model, kernel = found["d_model"], config.size("conv_L_cache")
    biases = [["conv_bias", d_model, "bias"], ["in_proj_bias", 3 * d_model, "bias"], ["out_proj_bias", d_model, "bias"]]
    return {
        "kind": "recurrence",
        "form": "convolution",
        "n_heads": d_model,
        "head_dim": 1,
        "state_elements": 0,
        "conv_elements": d_model * (kernel - 1),
        "matrices": [["in_proj", [d_model, 3 * d_model], "state_space"]],
        "out": ["out_proj", [d_model, d_model], "state_space"],
        "module": "conv",
        "more": [["conv", [d_model, kernel], "other"], *(biases if config.flag("conv_bias") else [])],
    }
