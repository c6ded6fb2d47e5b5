"""Dense families near to Llama: Seed OSS, SmolLM 3, StableLM, Nemotron 3 and 4, Arcee, Apertus, Helium."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import (
    FULL,
    LAYER_TYPES,
    SLIDING,
    assembled,
    heads,
    layer_kinds,
    rotary_share,
    shape,
    stack,
    switches,
    window,
)
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError, UnsupportedModelError

_KINDS = {word: kind for word, kind in LAYER_TYPES.items() if kind in (FULL, SLIDING)}
_HEAD_DIM = 128
_NOPE_STEP = 4
_STABLELM_SHARE, _NEMOTRON_SHARE = 0.25, 0.5


def seed_oss(config: Config) -> ModelRecord:
    """Seed OSS: biases on queries, keys and values, and heads wider than the model over their count."""
    config.text("hidden_act", "silu", ("silu",))
    words = heads(config, must_have_kv_heads=True, head_dim=_HEAD_DIM)
    bias, out = config.flag("attention_bias", default=True), config.flag("attention_out_bias")
    return stack(
        config,
        attention={**words, "qkv_bias": bias, "out_bias": out},
        feed_forward={"bias": config.flag("mlp_bias")},
    )


def smollm3(config: Config) -> ModelRecord:
    """SmolLM 3: every fourth layer has no positions, and slides where windows are switched on."""
    config.text("hidden_act", "silu", ("silu",))
    found, words, n_layers = shape(config, tied=True), heads(config, must_have_kv_heads=True), config.layers()
    bias = config.flag("attention_bias")
    step = config.size("no_rope_layer_interval", default=_NOPE_STEP)
    rotates = switches(config, "no_rope_layers", n_layers) or [(at + 1) % step != 0 for at in range(n_layers)]
    slides = config.flag("use_sliding_window") and config.size("sliding_window", default=0) > 0
    config.ignore("sliding_window", "max_window_layers")
    every = [SLIDING if slides and not rotated else FULL for rotated in rotates]
    full = {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias}
    kinds = layer_kinds(config, n_layers, _KINDS) or every
    if SLIDING in kinds and not slides:
        raise InputError(f"{config.origin}: layer_types has layers that slide; use_sliding_window and sliding_window"
                         " must say so")  # fmt: skip
    return assembled(
        found,
        {FULL: full, SLIDING: {**full, **(window(config) if slides else {})}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size"), "bias": config.flag("mlp_bias")}},
        [(kind, "dense") for kind in kinds],
        rotated=words["head_dim"],
    )


def stablelm(config: Config) -> ModelRecord:
    """StableLM: norms with biases, a norm for each head where there are any, and one a layer where it is parallel."""
    config.text("hidden_act", "silu", ("silu",))
    config.ignore("rotary_scaling_factor")
    words, share = heads(config, must_have_kv_heads=True), rotary_share(config, _STABLELM_SHARE)
    sides = {"q_layernorm": words["n_heads"], "k_layernorm": words["n_kv_heads"]}
    norms = [[f"{name}.norms", [count, words["head_dim"]], "norm"] for name, count in sides.items()]
    more = norms if config.flag("qk_layernorm") else []
    parallel = config.flag("use_parallel_residual")
    rotated = config.number("rope_pct", default=share, most=1.0)
    return assembled(
        shape(config),
        {FULL: {"kind": "attention", **words, "qkv_bias": config.flag("use_qkv_bias"), "more": more}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size")}},
        [(FULL, "dense")] * config.layers(),
        rotated=int(words["head_dim"] * rotated),
        norms=["input_layernorm"] if parallel else ["input_layernorm", "post_attention_layernorm"],
        norm_bias=True,
    )


def nemotron(config: Config) -> ModelRecord:
    """Nemotron 3 and 4 and Minitron: an MLP of squares without a gate, and norms with biases."""
    config.text("hidden_act", "relu2", ("relu2",))
    words, bias = heads(config, must_have_kv_heads=True), config.flag("attention_bias")
    share = rotary_share(config, _NEMOTRON_SHARE)
    share = config.number("rope_percent", default=share, most=1.0)
    return assembled(
        shape(config),
        {FULL: {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias}},
        {
            "dense": {
                "kind": "dense",
                "d_ff": config.size("intermediate_size"),
                "gated": False,
                "bias": config.flag("mlp_bias"),
            }
        },
        [(FULL, "dense")] * config.layers(),
        rotated=int(words["head_dim"] * share),
        norm_bias=True,
    )


def arcee(config: Config) -> ModelRecord:
    """AFM: Llama with an MLP of squares, without a gate."""
    config.text("hidden_act", "relu2", ("relu2",))
    bias = config.flag("attention_bias")
    return stack(
        config,
        attention={"qkv_bias": bias, "out_bias": bias},
        feed_forward={"gated": False, "bias": config.flag("mlp_bias")},
        must_have_kv_heads=True,
    )


def apertus(config: Config) -> ModelRecord:
    """Apertus: no gate, an activation of two numbers a layer that are learned, and norms of queries and keys."""
    config.text("hidden_act", "xielu", ("xielu",))
    config.refuse("mlp_bias", "biases of the MLP are not supported for this family")
    config.refuse("post_norm", "norms after attention and MLP are not supported for this family")
    if not config.flag("qk_norm", default=True):
        raise UnsupportedModelError(f"{config.origin}: qk_norm must be true for this family")
    words, bias = heads(config, must_have_kv_heads=True), config.flag("attention_bias")
    norms = [["q_norm", words["head_dim"], "norm"], ["k_norm", words["head_dim"], "norm"]]
    activation = [["act_fn.alpha_p", 1, "other"], ["act_fn.alpha_n", 1, "other"]]
    return stack(
        config,
        attention={"qkv_bias": bias, "out_bias": bias, "more": norms},
        feed_forward={"gated": False, "more": activation},
        norms=["attention_layernorm", "feedforward_layernorm"],
    )


def helium(config: Config) -> ModelRecord:
    """Helium: the projection out of attention has no bias, and is square."""
    config.text("hidden_act", "silu", ("silu",))
    words = heads(config, must_have_kv_heads=True)
    if words["n_heads"] * words["head_dim"] != config.size("hidden_size"):
        raise InputError(f"{config.origin}: num_attention_heads times head_dim must be hidden_size for this family")
    return stack(
        config,
        attention={**words, "qkv_bias": config.flag("attention_bias")},
        feed_forward={"bias": config.flag("mlp_bias")},
    )
