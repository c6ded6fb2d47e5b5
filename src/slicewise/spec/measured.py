"""A decode step that somebody measured and published."""

from __future__ import annotations

from dataclasses import dataclass

from slicewise.spec.provenance import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """A published decode step.

    Attributes:
        model: its name in the catalog.
        slice: such as v5e:4x4.
        weights: dtype of the weights.
        kv: dtype of the cache.
        batch: sequences.
        context_tokens: tokens that the cache has room for.
        step_s: what it took. [s]
        provenance: as printed, and where.
    """

    model: str
    slice: str
    weights: str
    kv: str
    batch: int
    context_tokens: int
    step_s: float
    provenance: Provenance
