"""dots.llm1, DeepSeek MoE and MiniCPM 3: DeepSeek's experts without its latents, and its latents without experts."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import (
    FULL,
    LAYER_TYPES,
    SLIDING,
    assembled,
    first_dense,
    heads,
    layer_kinds,
    shape,
    window,
)
from slicewise.catalog.families.deepseek import LATENT, latent, mixture
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError

_KINDS = {word: kind for word, kind in LAYER_TYPES.items() if kind in (FULL, SLIDING)}


def dots1(config: Config) -> ModelRecord:
    """dots.llm1: norms of queries and keys; layers from `max_window_layers` on slide, where there is a window."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("moe_layer_freq", "dense layers between those of experts are not supported for this family", but=1)
    found, words, n_layers = shape(config), heads(config, must_have_kv_heads=True), config.layers()
    width, bias = words["head_dim"], config.flag("attention_bias")
    norms = [["q_norm", width, "norm"], ["k_norm", width, "norm"]]
    full = {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias, "more": norms}
    size = config.size("sliding_window", default=0)
    first = config.size("max_window_layers", default=n_layers, least=0)
    every = [SLIDING if size and at >= first else FULL for at in range(n_layers)]
    kinds = layer_kinds(config, n_layers, _KINDS) or every
    if SLIDING in kinds and not size:
        raise config.missing("sliding_window", "layer_types has layers that slide")
    feeds = first_dense(n_layers, config.size("first_k_dense_replace", least=0))
    d_ff = config.size("intermediate_size", default=None if "dense" in feeds else 1)
    return assembled(
        found,
        {FULL: full, SLIDING: {**full, **window(config)}},
        {"dense": {"kind": "dense", "d_ff": d_ff}, "experts": mixture(config)},
        list(zip(kinds, feeds, strict=True)),
        rotated=width,
    )


def deepseek(config: Config) -> ModelRecord:
    """DeepSeek MoE 16B: plain attention, and experts after the first layer.

    Source: `modeling_deepseek.py` of deepseek-ai/deepseek-moe-16b-base
    """
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("moe_layer_freq", "dense layers between those of experts are not supported for this family", but=1)
    words, bias = heads(config, must_have_kv_heads=True), config.flag("attention_bias")
    feeds = first_dense(config.layers(), config.size("first_k_dense_replace", least=0))
    d_ff = config.size("intermediate_size", default=None if "dense" in feeds else 1)
    return assembled(
        shape(config),
        {FULL: {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias}},
        {"dense": {"kind": "dense", "d_ff": d_ff}, "experts": mixture(config)},
        [(FULL, feed) for feed in feeds],
        rotated=words["head_dim"],
    )


def minicpm3(config: Config) -> ModelRecord:
    """MiniCPM 3: latent attention and a dense MLP; values are as wide as the model over its heads, if nothing is said.

    Some engines, vLLM among them, keep the keys and values of every head of this family instead of the latent.
    """
    if config.has("v_head_dim"):
        return _minicpm3(config)
    d_model, n_heads = config.size("hidden_size"), config.size("num_attention_heads")
    if d_model % n_heads:
        raise InputError(
            f"{config.origin}: v_head_dim is missing and hidden_size {d_model} does not divide by its heads"
        )
    stated = Config({**config.keys, "v_head_dim": d_model // n_heads}, config.origin, config.family)
    record = _minicpm3(stated)
    stated.done()
    config.ignore(*config.keys)
    return record


def _minicpm3(config: Config) -> ModelRecord:
    config.text("hidden_act", "silu", ("silu",))
    config.ignore("scale_emb", "scale_depth", "dim_model_base")
    words = latent(config)
    feed = {"kind": "dense", "d_ff": config.size("intermediate_size"), "bias": config.flag("mlp_bias")}
    return assembled(
        shape(config, tied=True),
        {LATENT: words},
        {"dense": feed},
        [(LATENT, "dense")] * config.layers(),
        rotated=words["qk_rope_head_dim"],
    )
