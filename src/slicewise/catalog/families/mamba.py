"""Mamba 1 and 2, by themselves and as parts of others: their arrays, and the state that a layer keeps.

A state has the dtype of the weights, and the short convolution keeps one input less than it is wide, as vLLM has both.

Source: `mamba_utils.py` of vLLM, with `mamba_ssm_cache_dtype` left at auto
"""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import assembled, shape
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError
from slicewise.spec.precision import BYTES_PER_ELEMENT

MAMBA = "mamba"
_RANK_SHARE = 16
"""Where the rank of the time step is "auto", it is the model's width over this."""
_TRAINING = (
    "time_step_scale", "time_step_min", "time_step_max", "time_step_init_scheme", "time_step_floor", "time_step_limit",
    "rescale_prenorm_residual", "residual_in_fp32", "use_mambapy", "use_associative_scan", "use_falcon_mambapy",
    "chunk_size", "fused_add_norm", "rms_norm", "pad_vocab_size_multiple", "ssm_cfg", "d_inner", "d_model", "n_layer",
    "intermediate_size", "mixer_rms_eps", "num_logits_to_keep",
)  # fmt: skip


def mamba(config: Config) -> ModelRecord:
    """Mamba: every layer a Mamba 1 behind one norm."""
    found = _shape(config, tied=True)
    return _of(config, found, _first_words(config, found))


def falcon_mamba(config: Config) -> ModelRecord:
    """Falcon Mamba: Mamba with further norms, which have no weights."""
    return mamba(config)


def mamba2(config: Config) -> ModelRecord:
    """Mamba 2, and Codestral Mamba."""
    found = _shape(config, tied=False)
    return _of(config, found, _second_words(config, found))


def _shape(config: Config, *, tied: bool) -> dict[str, Any]:
    config.text("hidden_act", "silu", ("silu",))
    config.ignore(*_TRAINING)
    return shape(config, tied=tied)


def _of(config: Config, found: dict[str, Any], words: dict[str, Any]) -> ModelRecord:
    """A model whose layers are all one Mamba, behind one norm."""
    return assembled(found, {MAMBA: words}, {}, [(MAMBA, "")] * config.layers(), rotated=0, norms=["norm"])


def _second_words(config: Config, found: dict[str, Any]) -> dict[str, Any]:
    config.ignore("time_step_rank")
    n_heads, head_dim = config.size("num_heads"), config.size("head_dim")
    if n_heads * head_dim != config.size("expand", default=2) * found["d_model"]:
        raise InputError(f"{config.origin}: num_heads times head_dim must be expand times hidden_size")
    bias = config.flag("use_bias")
    return second(
        found,
        inner=n_heads * head_dim,
        n_heads=n_heads,
        groups=config.size("n_groups"),
        state=config.size("state_size"),
        kernel=config.size("conv_kernel"),
        conv_bias=config.flag("use_conv_bias", default=True),
        bias=bias,
        out_bias=bias,
        module="mixer",
    )


def _first_words(config: Config, found: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a Mamba 1, by the keys of Mamba's own configs."""
    rank = found["d_model"] if config.keys.get("time_step_rank") == "auto" else 0
    if rank:
        config.text("time_step_rank")
    return first(
        found,
        inner=int(config.number("expand", default=2.0) * found["d_model"]),
        state=config.size("state_size"),
        kernel=config.size("conv_kernel"),
        rank=-(-rank // _RANK_SHARE) or config.size("time_step_rank"),
        conv_bias=config.flag("use_conv_bias", default=True),
        bias=config.flag("use_bias"),
        module="mixer",
    )


def first(
    found: dict[str, Any],
    *,
    inner: int,
    state: int,
    kernel: int,
    rank: int,
    conv_bias: bool,
    bias: bool,
    module: str,
    norms: tuple[tuple[str, int], ...] = (),
) -> dict[str, Any]:
    """The arguments of a Mamba 1: each channel has a state of its own, so any cut of the channels is a cut.

    Args:
        found: what `shape` found.
        inner: channels.
        state: width of the state of a channel.
        kernel: width of the short convolution.
        rank: of the time step.
        conv_bias: the convolution has a bias.
        bias: the projections in and out have.
        module: where it is in a checkpoint, below the layer.
        norms: (name, width) of norms between its projections.
    """
    d_model = found["d_model"]
    biases = [["in_proj_bias", 2 * inner, "bias"], ["out_proj_bias", d_model, "bias"]] if bias else []
    if conv_bias:
        biases.append(["conv1d_bias", inner, "bias"])
    return {
        "kind": "recurrence",
        "form": "state-space",
        "n_heads": inner,
        "head_dim": 1,
        "state_elements": inner * state,
        "conv_elements": inner * (kernel - 1),
        "state_dtype_bytes": BYTES_PER_ELEMENT[found["checkpoint_dtype"]],
        "matrices": [["in_proj", [d_model, 2 * inner], "state_space"]],
        "out": ["out_proj", [inner, d_model], "state_space"],
        "module": module,
        "more": [
            ["x_proj", [inner, rank + 2 * state], "state_space", ["heads", ""]],
            ["dt_proj", [rank, inner], "state_space", ["", "heads"]],
            ["dt_proj_bias", inner, "bias", ["heads"]],
            ["conv1d", [inner, kernel], "other", ["heads", ""]],
            ["A_log", [inner, state], "other", ["heads", ""]],
            ["D", inner, "other", ["heads"]],
            *biases,
            *([name, width, "norm"] for name, width in norms),
        ],
    }


def second(
    found: dict[str, Any],
    *,
    inner: int,
    n_heads: int,
    groups: int,
    state: int,
    kernel: int,
    conv_bias: bool,
    bias: bool,
    out_bias: bool,
    module: str,
    norm: bool = True,
) -> dict[str, Any]:
    """The arguments of a Mamba 2: a matrix of channel by state a head.

    Args:
        found: what `shape` found.
        inner: channels, of all heads.
        n_heads: heads.
        groups: groups of heads that share the projections to the state.
        state: width of the state of a channel.
        kernel: width of the short convolution.
        conv_bias: the convolution has a bias.
        bias: the projection in has.
        out_bias: the projection out has.
        module: where it is in a checkpoint, below the layer.
        norm: what leaves the state is normed.

    Raises:
        InputError: heads do not divide into groups, or channels over heads.
    """
    if n_heads % groups or inner % n_heads:
        raise InputError(
            f"{inner} channels and {groups} groups do not divide over {n_heads} heads of a Mamba 2; check the file"
        )
    d_model, convolved = found["d_model"], inner + 2 * groups * state
    projected = inner + convolved + n_heads
    extra = [
        (conv_bias, ["conv1d_bias", convolved, "bias"]),
        (bias, ["in_proj_bias", projected, "bias"]),
        (out_bias, ["out_proj_bias", d_model, "bias"]),
        (norm, ["norm", inner, "norm"]),
    ]
    return {
        "kind": "recurrence",
        "form": "state-space",
        "n_heads": n_heads,
        "head_dim": inner // n_heads,
        "state_elements": inner * state,
        "conv_elements": convolved * (kernel - 1),
        "state_dtype_bytes": BYTES_PER_ELEMENT[found["checkpoint_dtype"]],
        "matrices": [["in_proj", [d_model, projected], "state_space"]],
        "out": ["out_proj", [inner, d_model], "state_space"],
        "module": module,
        "more": [
            ["conv1d", [convolved, kernel], "other"],
            *([name, n_heads, "other"] for name in ("dt_bias", "A_log", "D")),
            *(array for there, array in extra if there),
        ],
    }
