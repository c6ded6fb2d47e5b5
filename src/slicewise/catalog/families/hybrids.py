"""Jamba, Bamba and Falcon H1: attention in some layers and a Mamba in the others, or both side by side in each."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, layer_numbers, rotary_share, routed, shape
from slicewise.catalog.families.granite import mamba_words
from slicewise.catalog.families.mamba import MAMBA, first
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError, UnsupportedModelError

BOTH = "both"
_MODULE = "feed_forward"
_RANK_SHARE = 16
_BAMBA_SHARE = 0.5


def jamba(config: Config) -> ModelRecord:
    """Jamba: one layer of a period attends, the others are a Mamba 1; every so many have experts. No positions."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("sliding_window", "windows are not supported for this family")
    if not config.flag("mamba_inner_layernorms", default=True):
        raise UnsupportedModelError(f"{config.origin}: mamba_inner_layernorms must be true for this family")
    config.ignore("use_mamba_kernels", "use_mambapy", "use_associative_scan", "num_logits_to_keep")
    config.ignore("calc_logits_for_entire_prompt")
    found, n_layers = shape(config), config.layers()
    attends, routes = _every(config, "attn_layer", n_layers), _every(config, "expert_layer", n_layers)
    many = config.size("num_experts") > 1
    experts = routed(config, d_ff="intermediate_size")
    kinds = [(FULL if attends[at] else MAMBA, "experts" if many and routes[at] else "dense") for at in range(n_layers)]
    return assembled(
        found,
        {FULL: {"kind": "attention", **heads(config, must_have_kv_heads=True)}, MAMBA: _first(config, found)},
        {
            "dense": {"kind": "dense", "d_ff": experts["d_ff"], "module": _MODULE},
            "experts": {**experts, "module": _MODULE, "router_module": "router"},
        },
        kinds,
        rotated=0,
    )


def bamba(config: Config) -> ModelRecord:
    """Bamba: layers of `attn_layer_indices` attend, the others are a Mamba 2; all have a dense MLP."""
    found, words, feed = _parts(config)
    config.ignore("z_loss_coefficient", "attn_rotary_emb")
    attending = layer_numbers(config, "attn_layer_indices", config.layers())
    share = rotary_share(config, _BAMBA_SHARE)
    return assembled(
        found,
        {
            FULL: {"kind": "attention", **words},
            MAMBA: mamba_words(config, found, config.size("mamba_expand") * found["d_model"], module="mamba"),
        },
        {"dense": feed},
        [(FULL if at in attending else MAMBA, "dense") for at in range(config.layers())],
        rotated=int(words["head_dim"] * share),
    )


def falcon_h1(config: Config) -> ModelRecord:
    """Falcon H1: attention and a Mamba 2 side by side in every layer; its multipliers change no array."""
    found, words, feed = _parts(config)
    config.ignore(*(name for name in config.keys if name.endswith(("_multiplier", "_multipliers"))))
    config.refuse("attn_layer_indices", "every layer of this family attends; remove it")
    if not config.flag("mamba_use_mlp", default=True):
        raise UnsupportedModelError(f"{config.origin}: mamba_use_mlp must be true for this family")
    config.ignore("mlp_expansion_factor", "mamba_norm_before_gate")
    expanded = config.size("mamba_expand", default=2) * found["d_model"]
    state = mamba_words(
        config,
        found,
        config.size("mamba_d_ssm", default=expanded),
        module="mamba",
        norm=config.flag("mamba_rms_norm"),
        out_bias=config.flag("projectors_bias"),
    )
    both = {"kind": "side_by_side", "attention": words, "recurrence": {k: v for k, v in state.items() if k != "kind"}}
    return assembled(
        found, {BOTH: both}, {"dense": feed}, [(BOTH, "dense")] * config.layers(), rotated=words["head_dim"]
    )


def _parts(config: Config) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Shape, attention and MLP of a hybrid with Mamba 2."""
    config.text("hidden_act", "silu", ("silu",))
    config.ignore("num_logits_to_keep")
    bias = config.flag("attention_bias")
    words = {**heads(config, must_have_kv_heads=True), "qkv_bias": bias, "out_bias": bias}
    d_ff = config.size("intermediate_size")
    feed = {"kind": "dense", "d_ff": d_ff, "bias": config.flag("mlp_bias"), "module": _MODULE}
    return shape(config), words, feed


def _every(config: Config, name: str, n_layers: int) -> list[bool]:
    """Whether each layer is the one of its period.

    Raises:
        InputError: the offset is not within the period.
    """
    period, offset = config.size(f"{name}_period"), config.size(f"{name}_offset", least=0)
    if offset >= period:
        raise InputError(f"{config.origin}: {name}_offset is {offset}; it must be below {name}_period, {period}")
    return [at % period == offset for at in range(n_layers)]


def _first(config: Config, found: dict[str, Any]) -> dict[str, Any]:
    """The Mamba 1 of Jamba, with norms of the time step and of both projections to the state."""
    state = config.size("mamba_d_state")
    is_auto = config.keys.get("mamba_dt_rank") == "auto"
    rank = -(-found["d_model"] // _RANK_SHARE) if is_auto else config.size("mamba_dt_rank")
    if is_auto:
        config.text("mamba_dt_rank")
    return first(
        found,
        inner=config.size("mamba_expand") * found["d_model"],
        state=state,
        kernel=config.size("mamba_d_conv"),
        rank=rank,
        conv_bias=config.flag("mamba_conv_bias", default=True),
        bias=config.flag("mamba_proj_bias"),
        module="mamba",
        norms=(("dt_layernorm", rank), ("b_layernorm", state), ("c_layernorm", state)),
    )
