"""Feasibility: a verdict with a reason. Nothing here raises, and nothing is timed that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slicewise.costs.memory import HALF_BYTE
from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.units import show, show_gib

WEIGHTS = "weights do not fit"
SEQUENCE = "not even one sequence fits beside the weights"
BATCH = "the batch does not fit"
PARAM_LOAD = "parameter loading alone exceeds the TPOT limit"
TPOT = "no batch meets the TPOT limit"
TTFT = "prefill exceeds the TTFT limit"
PRICE = "no price is known"
COMPUTE = "the chip has no such compute dtype"
LAYOUT = "no such layout is legal there"

_UNEVEN = 0.005
"""A fullest chip that holds so little more than an even share is not worth a word."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a candidate may be taken.

    Attributes:
        reason: the kind of refusal, by which candidates are counted; "" where it fits.
        detail: one sentence with the numbers; "" where it fits.
    """

    reason: str = ""
    detail: str = ""

    @property
    def fits(self) -> bool:
        """Nothing speaks against it."""
        return not self.reason


FITS = Verdict()


def memory_verdict(
    deployment: Deployment, ledger: Mapping[str, Any], batch: int, held_tokens: float | None = None
) -> Verdict:
    """Whether weights, cache and activations of a batch fit, and the ledger line that breaks.

    Args:
        deployment: what was evaluated.
        ledger: its quantities at the batch.
        batch: sequences.
        held_tokens: tokens of a sequence in the cache, where they are not the deployment's own.
    """
    held = float(deployment.value("kv_held_tokens")) if held_tokens is None else held_tokens
    granted, weights = float(ledger["hbm_bytes"]), float(ledger["weight_bytes"])
    where = f"what {deployment.slice.name} grants ({granting(deployment)})"
    if weights > granted + HALF_BYTE:
        detail = (
            f"{show_gib(weights)} of {deployment.precision.weights} weights do not fit {show_gib(granted)}, {where}"
        )
        return Verdict(reason=WEIGHTS, detail=detail)
    if float(ledger["free_bytes"]) >= -HALF_BYTE:
        return FITS
    over, full = float(ledger["total_bytes"]) - granted, float(ledger["kv_replication"])
    # Every chip is counted as the fullest: what it holds more than an even share counts on all of them.
    uneven = f", {full:.3g} times an even share on the fullest chip," if full > 1 + _UNEVEN else ""
    detail = (
        f"{show_gib(float(ledger['total_bytes']))} do not fit {show_gib(granted)}, {where}: the KV cache of"
        f" {batch:,} × {held:,.0f} tokens takes"
        f" {show_gib(float(ledger['kv_bytes']))}{uneven} beside {show_gib(weights)} of weights;"
        f" over by {show(over, 'B')};"
        f" at most {int(ledger['max_batch']):,} sequences fit"
    )
    return Verdict(reason=BATCH if batch > 1 else SEQUENCE, detail=detail)


def refuse_times(derivation: Derivation, reason: str) -> None:
    """Refuse to derive a time, a rate or a price, or what rests on one, for what does not fit.

    Raises:
        InputError: the derivation holds a computed time, rate or price.
    """
    if derivation.formula and derivation.unit in ("s", "1/s", "USD"):
        raise InputError(f"{derivation.name} has no value for what does not fit: {reason}")
    for part in derivation.parts:
        refuse_times(part, reason)


def granting(deployment: Deployment) -> str:
    """How a slice's memory comes about, in words."""
    n_chips, share = deployment.slice.n_chips, deployment.conventions.memory_fraction
    chips = f"{n_chips} chip{'s' if n_chips > 1 else ''} × {show_gib(deployment.hbm_bytes_per_chip)}"
    granted = chips if share == 1 else f"{chips} × memory fraction {share:g}"
    kept = deployment.conventions.reserve_bytes_per_chip
    return f"{granted}, less {show_gib(kept)} a chip that the engine keeps" if kept else granted
