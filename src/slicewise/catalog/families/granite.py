"""Granite 3 and 4: dense, of experts, and with Mamba 2 in most layers. Its multipliers change no array."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, layer_kinds, routed, shape, stack
from slicewise.catalog.families.mamba import MAMBA, second
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError

MODULE = "block_sparse_moe"
_KINDS = {"mamba": MAMBA, "linear_attention": MAMBA, "attention": FULL, "full_attention": FULL}
_POSITIONS = ("rope", "nope")


def granite(config: Config) -> ModelRecord:
    """Granite 3, dense."""
    bias = _plain(config)
    return stack(
        config,
        attention=bias,
        feed_forward={"bias": config.flag("mlp_bias")},
        must_have_kv_heads=True,
    )


def granitemoe(config: Config) -> ModelRecord:
    """Granite 3 of experts, without a shared one."""
    config.refuse("shared_intermediate_size", "is no key of a granitemoe model; its model_type is granitemoeshared")
    return _of_experts(config, 0)


def granitemoeshared(config: Config) -> ModelRecord:
    """Granite of experts, with a shared one of its own width."""
    return _of_experts(config, config.size("shared_intermediate_size", least=0))


def granitemoehybrid(config: Config) -> ModelRecord:
    """Granite 4: an MLP that every token passes through, beside experts where there are any; few layers attend."""
    bias = _plain(config)
    config.ignore("mamba_chunk_size", "init_method", "normalization_function", "mlp_bias", "time_step_limit")
    position = config.text("position_embedding_type", "nope", _POSITIONS)
    found, words, n_layers = shape(config), heads(config, must_have_kv_heads=True), config.layers()
    kinds = layer_kinds(config, n_layers, _KINDS) or config.kinds("layers_block_type", n_layers, tuple(_KINDS))
    if kinds is None:
        raise config.missing("layer_types")
    mixing = [_KINDS.get(kind, kind) for kind in kinds]
    mixers: dict[str, dict[str, Any]] = {FULL: {"kind": "attention", **words, **bias}}
    if MAMBA in mixing:
        mixers[MAMBA] = mamba_words(config, found, config.size("mamba_expand") * found["d_model"], module="mamba")
    else:
        config.ignore(*(name for name in config.keys if name.startswith("mamba_")))
    feed, name = _hybrid_feed(config)
    rotated = words["head_dim"] if position == "rope" else 0
    return assembled(found, mixers, {name: feed}, [(mixer, name) for mixer in mixing], rotated=rotated)


def mamba_words(
    config: Config, found: dict[str, Any], inner: int, *, module: str, norm: bool = True, out_bias: bool | None = None
) -> dict[str, Any]:
    """The arguments of a Mamba 2 by the keys that start with `mamba_`, as Granite, Bamba and Falcon H1 have them.

    Args:
        config: the config.
        found: what `shape` found.
        inner: channels of all heads.
        module: where it is in a checkpoint, below the layer.
        norm: what leaves the state is normed.
        out_bias: the projection out has a bias; None where it has one if the projection in has.

    Raises:
        InputError: the width of a head is not that of the channels over the heads.
    """
    config.ignore("mamba_chunk_size", "time_step_limit", "time_step_min", "time_step_max", "time_step_floor")
    n_heads, bias = config.size("mamba_n_heads"), config.flag("mamba_proj_bias")
    if config.keys.get("mamba_d_head") == "auto":
        config.text("mamba_d_head")
    elif config.size("mamba_d_head", default=inner // n_heads) * n_heads != inner:
        raise InputError(f"{config.origin}: mamba_d_head times mamba_n_heads must be {inner}, the channels of a Mamba")
    return second(
        found,
        inner=inner,
        n_heads=n_heads,
        groups=config.size("mamba_n_groups"),
        state=config.size("mamba_d_state"),
        kernel=config.size("mamba_d_conv"),
        conv_bias=config.flag("mamba_conv_bias", default=True),
        bias=bias,
        out_bias=bias if out_bias is None else out_bias,
        module=module,
        norm=norm,
    )


def _plain(config: Config) -> dict[str, bool]:
    """What every Granite has: an activation, and factors that are no arrays. Returns the biases of the attention."""
    config.text("hidden_act", "silu", ("silu",))
    config.ignore("attention_multiplier", "embedding_multiplier", "residual_multiplier", "logits_scaling")
    bias = config.flag("attention_bias")
    return {"qkv_bias": bias, "out_bias": bias}


def _of_experts(config: Config, shared: int) -> ModelRecord:
    bias, words = _plain(config), heads(config, must_have_kv_heads=True)
    config.refuse("mlp_bias", "biases of experts are not supported for this family")
    return assembled(
        shape(config),
        {FULL: {"kind": "attention", **words, **bias}},
        {"experts": _experts(config, shared)},
        [(FULL, "experts")] * config.layers(),
        rotated=words["head_dim"],
    )


def _experts(config: Config, shared: int) -> dict[str, Any]:
    return {
        **routed(config, d_ff="intermediate_size", count=("num_local_experts",)),
        "shared_d_ff": shared,
        "module": "",
        "router_module": f"{MODULE}.router.layer",
        "expert_module": f"{MODULE}.experts.{{expert}}",
        "shared_module": "shared_mlp",
    }


def _hybrid_feed(config: Config) -> tuple[dict[str, Any], str]:
    shared = config.size("shared_intermediate_size")
    if config.size("num_local_experts", least=0):
        return _experts(config, shared), "experts"
    config.ignore("num_experts_per_tok", "intermediate_size")
    return {"kind": "dense", "d_ff": shared, "module": "shared_mlp"}, "dense"
