"""What an engine keeps of a chip beside weights and cache: a range, for it cannot be told from a config.

Activations of the largest batch, the sampler's logits, compiled graphs and collectives' buffers share it. Logs of
vLLM show 2 to 6 GiB on a chip, and 9 to 11 for MoE models over eight, less with MLA; SGLang and
tpu-inference leave it outside their fraction.

Source: engine-logs
"""

from __future__ import annotations

from dataclasses import dataclass

from slicewise.planner.engines import SGLANG, VLLM, Engine
from slicewise.spec.model import Model
from slicewise.spec.ranks import Ranks
from slicewise.units import parse

MANY_RANKS = 8
_LOGGED = {
    "most models": ("2 GiB", "6 GiB"),
    f"MoE models over {MANY_RANKS} tensor ranks": ("9 GiB", "11 GiB"),
    f"MoE models with MLA over {MANY_RANKS} tensor ranks": ("2.8 GiB", "9.1 GiB"),
}
"""Least and most that logs show, by kind of model."""
_GRAPHS = ("0.2 GiB", "1.9 GiB")
_BUFFERS = ("0.1 GiB", "1.5 GiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """What an engine keeps of one chip.

    Attributes:
        low_bytes: the least that was logged. [B]
        high_bytes: the most. [B]
        why: where the range comes from.
    """

    low_bytes: float
    high_bytes: float
    why: str

    @property
    def typical_bytes(self) -> float:
        """The middle of the range, which plans count. [B]"""
        return (self.low_bytes + self.high_bytes) / 2


def reserve(engine: Engine, model: Model, ranks: Ranks | None) -> Reserve:
    """What an engine keeps of one chip, as logs of its kind show."""
    if engine.name != VLLM:
        why = (
            "its static fraction covers weights and cache alone; the rest of the chip is for activations"
            if engine.name == SGLANG
            else "its pool is what the fraction leaves beside the weights; programs use the rest of the chip"
        )
        return Reserve(low_bytes=0.0, high_bytes=0.0, why=why)
    kind = _kind(model, ranks)
    low, high = (parse(size, "B") for size in _LOGGED[kind])
    return Reserve(low_bytes=low, high_bytes=high, why=f"logs of {engine.name} show it for {kind}; versions differ")


def _kind(model: Model, ranks: Ranks | None) -> str:
    """What kind of model it is, of those that logs tell apart."""
    most, mixtures, latent = _LOGGED
    if not model.n_experts or ranks is None or ranks.tp < MANY_RANKS:
        return most
    return latent if any(cache.name == "latent" for mixer in model.mixers for cache in mixer.caches) else mixtures


def graphs() -> tuple[float, float]:
    """Compiled graphs of a chip, as logged: from the least to the most. [B]"""
    return parse(_GRAPHS[0], "B"), parse(_GRAPHS[1], "B")


def buffers(n_ranks: int) -> tuple[float, float]:
    """Collectives' buffers of a chip, as logged: none where nothing is collected. [B]"""
    return (parse(_BUFFERS[0], "B"), parse(_BUFFERS[1], "B")) if n_ranks > 1 else (0.0, 0.0)
