"""Nemotron-H and Nemotron 3: each layer is one thing, a Mamba 2, an attention, an MLP, or a mixture of experts."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, routed, shape
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.precision import BYTES_PER_ELEMENT

MAMBA = "mamba"
MODULE = "mixer"
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_LAYERS = {
    "mamba": (MAMBA, ""),
    "linear_attention": (MAMBA, ""),
    "attention": (FULL, ""),
    "full_attention": (FULL, ""),
    "mlp": ("", "dense"),
    "moe": ("", "experts"),
}
_STATE_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def nemotron_h(config: Config) -> ModelRecord:
    """Nemotron-H, and Nemotron 3 Nano, Super and Ultra. Its attention has no positions."""
    config.text("mlp_hidden_act", "relu2", ("relu2",))
    config.text("mamba_hidden_act", "silu", ("silu",))
    for name in ("attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias"):
        config.refuse(name, "biases of matrices are not supported for this family")
    config.refuse("sliding_window", "windows are not supported for this family")
    config.ignore(
        "expand", "chunk_size", "num_logits_to_keep", "time_step_rank", "use_mamba_kernels", "residual_in_fp32",
        "rescale_prenorm_residual", "moe_shared_expert_overlap", "n_group", "topk_group", "partial_rotary_factor",
        "mamba_dt_rank",
    )  # fmt: skip
    kinds, found = _kinds(config), shape(config)
    words = _heads(config)
    mixers = {FULL: {"kind": "attention", **words, "module": MODULE}, MAMBA: _mamba(config, found["d_model"])}
    feeds = {feed for _, feed in kinds}
    forward: dict[str, dict[str, Any]] = {}
    if "dense" in feeds:
        d_ff = config.size("intermediate_size")
        forward["dense"] = {"kind": "dense", "d_ff": d_ff, "gated": False, "module": MODULE}
    if "experts" in feeds:
        forward["experts"] = _experts(config)
    config.ignore(
        "intermediate_size", "moe_intermediate_size", "moe_latent_size", "moe_shared_expert_intermediate_size",
        "n_routed_experts", "n_shared_experts", "num_experts_per_tok",
    )  # fmt: skip
    record = assembled(found, mixers, forward, kinds, rotated=0, norms=["norm"])
    size = sum(layer_size(record, *kind) for kind in _drafting(config) if kind in kinds)
    return drafted(config, record, size, "num_nextn_predict_layers", about=True)


def _kinds(config: Config) -> list[tuple[str, str]]:
    """Mixer and feed-forward of each layer, one of them empty: by a list of words, or a letter a layer."""
    listed = _named(config, "layers_block_type") or _named(config, "layer_types")
    if not listed:
        listed = _spelt(config, config.text("hybrid_override_pattern"), "hybrid_override_pattern")
    config.ignore("hybrid_override_pattern")
    n_layers = config.layers(default=len(listed))
    if n_layers != len(listed):
        raise InputError(f"{config.origin}: num_hidden_layers is {n_layers}, and {len(listed)} layers are listed")
    return [_LAYERS[word] for word in listed]


def _drafting(config: Config) -> list[tuple[str, str]]:
    """The layers of one drafting step."""
    name = "mtp_hybrid_override_pattern"
    listed = _named(config, "mtp_layers_block_type") or _spelt(config, config.text(name, ""), name)
    return [_LAYERS[word] for word in listed]


def _named(config: Config, name: str) -> list[str]:
    return config.kinds(name, len(config.listed(name) or ()), tuple(_LAYERS)) or []


def _spelt(config: Config, pattern: str, name: str) -> list[str]:
    strange = set(pattern) - set(_LETTERS)
    if strange:
        raise UnsupportedModelError(
            f"{config.origin}: {name} holds {', '.join(sorted(strange))[:40]}, which is not supported for"
            f" {config.family}; supported: {' '.join(_LETTERS)}"
        )
    return [_LETTERS[letter] for letter in pattern]


def _heads(config: Config) -> dict[str, int]:
    width = config.size("head_dim", "attention_head_dim")
    return {**heads(config, must_have_kv_heads=True, head_dim=width), "head_dim": width}


def _mamba(config: Config, d_model: int) -> dict[str, Any]:
    """Mamba 2: a matrix of channel by state a head, and the last inputs of a short convolution.

    The state has the dtype of `mamba_ssm_cache_dtype`, and float32 where it is missing.

    Source: vLLM takes the same (vllm-project/vllm, pull request 39032)
    """
    n_heads, width = config.size("mamba_num_heads"), config.size("mamba_head_dim")
    state, groups, kernel = config.size("ssm_state_size"), config.size("n_groups"), config.size("conv_kernel")
    if n_heads % groups:
        raise InputError(f"{config.origin}: mamba_num_heads {n_heads} do not divide into n_groups of {groups}")
    inner = n_heads * width
    convolved = inner + 2 * groups * state
    dtype = _STATE_DTYPES[config.text("mamba_ssm_cache_dtype", "float32", tuple(_STATE_DTYPES))]
    bias = [["conv1d_bias", convolved, "bias"]] if config.flag("use_conv_bias", default=True) else []
    return {
        "kind": "recurrence",
        "form": "state-space",
        "n_heads": n_heads,
        "head_dim": width,
        "state_elements": inner * state,
        "conv_elements": convolved * (kernel - 1),
        "state_dtype_bytes": BYTES_PER_ELEMENT[dtype],
        "matrices": [["in_proj", [d_model, inner + convolved + n_heads], "state_space"]],
        "out": ["out_proj", [inner, d_model], "state_space"],
        "module": MODULE,
        "more": [
            ["conv1d", [convolved, kernel], "other"],
            *bias,
            ["dt_bias", n_heads, "other"],
            ["A_log", n_heads, "other"],
            ["D", n_heads, "other"],
            ["norm", inner, "norm"],
        ],
    }


def _experts(config: Config) -> dict[str, Any]:
    """Experts without gates, in a narrower width where the config has one; the shared one is as wide as the model."""
    shared = config.size("moe_shared_expert_intermediate_size") * config.size("n_shared_experts", default=1, least=0)
    return {
        **routed(config, d_ff="moe_intermediate_size", count=("n_routed_experts", "num_local_experts")),
        "shared_d_ff": shared,
        "gated": False,
        "latent_dim": config.size("moe_latent_size", default=0),
        "module": MODULE,
    }
