"""Memory: the ledger, and on which slices a model fits with how many sequences of which length."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from slicewise.derive import Derivation
from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import memory_verdict
from slicewise.planner.question import Flags, ask
from slicewise.planner.record import record
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import LEDGER, Step, step_of
from slicewise.spec.model import Model
from slicewise.units import plain


@dataclass(frozen=True, kw_only=True)
class SliceMemory:
    """One slice's row. Bytes are of the whole slice.

    Attributes:
        fits: the batch asked for (one sequence when none was) fits.
        max_batch: most sequences at the context.
        max_context_tokens: longest context at the batch; None where an attention window bounds the cache first.
        reason: what breaks; None where it fits.
    """

    slice: str
    n_chips: int
    weight_dtype: str
    kv_dtype: str
    fits: bool
    max_batch: int
    max_context_tokens: int | None
    total_bytes: float
    total_bytes_per_chip: float
    hbm_bytes: float
    free_bytes: float
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The answer of `memory`: the ledger of one slice, and a row for each slice."""

    ledger: Step
    max_context_tokens: int | None
    matmul_params: float
    kv_bytes_per_sequence: float
    smallest: str | None
    slice_is_given: bool
    slices: tuple[SliceMemory, ...]

    @property
    def fits(self) -> bool:
        """Whether the slice of the ledger holds the batch."""
        return self.ledger.fits

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        kept = {name: value for name, value in self.ledger.to_dict().items() if name in _LEDGER_KEYS}
        own = {
            "matmul_params": plain(self.matmul_params),
            "kv_bytes_per_sequence": plain(self.kv_bytes_per_sequence),
            "max_context_tokens": self.max_context_tokens,
            "smallest": self.smallest,
        }
        return {**kept, **own, "slices": [row.to_dict() for row in self.slices]}

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number; of the total when none is named.

        Raises:
            UnknownNameError: no such number.
        """
        return self.ledger.explain(name or "total_bytes")


_LEDGER_KEYS = {
    "model", "slice", "n_chips", "batch", "context_tokens", "capacity_context_tokens", "weight_dtype", "kv_dtype",
    "compute_dtype", *LEDGER, "fits", "reason", "assumptions",
}  # fmt: skip


def memory(model: str | Path | Model, **flags: Unpack[Flags]) -> Memory:
    """What a model needs and where it fits.

    Without `slice` every standard slice of the chips is listed, and the ledger is that of the smallest that fits.

    Raises:
        InputError: a word is off.
    """
    question = ask(model, flags)
    batch = question.batch or 1
    rows = tuple(
        _row(question.deployment(slice_, precision), batch)
        for precision in question.precisions
        for slice_ in question.slices
    )
    first = question.precisions[0]
    fitting = [row for row in rows if row.fits and (row.weight_dtype, row.kv_dtype) == (first.weights, first.kv)]
    smallest = min(fitting, key=lambda row: row.n_chips, default=None)
    named = {slice_.name: slice_ for slice_ in question.slices}
    deployment = question.deployment(named[smallest.slice]) if smallest else default_deployment(question, several=True)
    ledger = step_of(deployment, batch)
    return Memory(
        ledger=ledger,
        max_context_tokens=_max_context(deployment, batch),
        matmul_params=deployment.value("matmul_params"),
        kv_bytes_per_sequence=float(deployment.value("kv_bytes_per_sequence")),
        smallest=smallest.slice if smallest else None,
        slice_is_given=question.slice_is_given,
        slices=rows,
    )


def _row(deployment: Deployment, batch: int) -> SliceMemory:
    ledger = deployment.evaluate(LEDGER, batch=batch)
    verdict = memory_verdict(deployment, ledger, batch)
    return SliceMemory(
        slice=deployment.slice.name,
        n_chips=deployment.slice.n_chips,
        weight_dtype=deployment.precision.weights,
        kv_dtype=deployment.precision.kv,
        fits=verdict.fits,
        max_batch=int(ledger["max_batch"]),
        max_context_tokens=_max_context(deployment, batch),
        **{name: float(ledger[name]) for name in ("total_bytes", "total_bytes_per_chip", "hbm_bytes", "free_bytes")},
        reason=verdict.detail or None,
    )


def _max_context(deployment: Deployment, batch: int) -> int | None:
    tokens = plain(float(deployment.value("max_context_tokens", batch=batch)))
    return tokens if isinstance(tokens, int) else None
