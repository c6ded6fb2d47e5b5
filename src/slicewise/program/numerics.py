"""What a model's shapes do not say and its numbers need: the norms' epsilon and the rotary frequencies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.errors import InputError

PLAIN: dict[str, Any] = {"hidden_act": "silu", "partial_rotary_factor": 1.0}
"""Keys whose other values mean other arithmetic."""

LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
HF_NORM_EPS = 1e-06
"""What transformers takes where a config does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryScaling:
    """How LLaMA 3.1 stretches the rotary embedding: long waves by `factor`, short ones not, those between in part.

    Attributes:
        factor: by how much long waves are stretched.
        low_freq_factor: waves longer than the original context over this are stretched wholly.
        high_freq_factor: waves shorter than the original context over this are not.
        original_context_tokens: context of the training before the stretch.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerics:
    """Constants of the arithmetic.

    Attributes:
        norm_eps: added to the mean square in RMS norms.
        rope_theta: base of the rotary frequencies.
        rope_scaling: how they are stretched; None where they are not.
    """

    norm_eps: float = 1e-5
    rope_theta: float = 5e5
    rope_scaling: RotaryScaling | None = None


def numerics_of(config: Mapping[str, Any]) -> Numerics:
    """The constants that a Hugging Face config states, with transformers' defaults.

    Raises:
        InputError: rotary embeddings or an activation of a kind that is not understood.
    """
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", "llama3"):
        raise InputError(f"rope_scaling: {kind!r} is not understood; default and llama3 are")
    for key, plain in PLAIN.items():
        if config.get(key, rope.get(key, plain)) != plain:
            raise InputError(f"{key}: only {plain} is understood")
    scaling = None
    if kind == "llama3":
        missing = [key for key in LLAMA3 if key not in rope]
        if missing:
            raise InputError(f"rope_scaling: llama3 has no {', '.join(missing)}; give it")
        scaling = RotaryScaling(
            factor=rope["factor"],
            low_freq_factor=rope["low_freq_factor"],
            high_freq_factor=rope["high_freq_factor"],
            original_context_tokens=rope["original_max_position_embeddings"],
        )
    return Numerics(
        norm_eps=config.get("rms_norm_eps", HF_NORM_EPS),
        rope_theta=rope.get("rope_theta", config.get("rope_theta", 1e4)),
        rope_scaling=scaling,
    )


def rotary_frequencies(numerics: Numerics, head_dim: int) -> NDArray[np.float32]:
    """Radians a token of each pair of channels, shape (head_dim / 2,)."""
    frequencies = numerics.rope_theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    scaling = numerics.rope_scaling
    if scaling is not None:
        turns = scaling.original_context_tokens * frequencies / (2 * math.pi)
        span = scaling.high_freq_factor - scaling.low_freq_factor
        kept = np.clip((turns - scaling.low_freq_factor) / span, 0, 1)
        frequencies = frequencies * (kept + (1 - kept) / scaling.factor)
    return frequencies.astype(np.float32)
