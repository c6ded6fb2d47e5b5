"""The result of `verify`: a plan beside what the compiler makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slicewise.derive import Derivation
from slicewise.planner.record import record
from slicewise.planner.step import Step
from slicewise.verify.estimate import Estimate
from slicewise.verify.reading import Reading
from slicewise.verify.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A batch that was compiled, in the form that serves best."""

    batch: int
    form: str
    fits: bool
    needed_bytes_per_chip: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxBatch:
    """The largest batch that compiles.

    Attributes:
        batch: sequences; 0 where not even one fits.
        plan_batch: the plan's own at full usable HBM, whatever the memory fraction.
        tried: every batch that was compiled, in order.
    """

    batch: int
    plan_batch: int
    tried: tuple[Tried, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {"batch": self.batch, "plan_batch": self.plan_batch, "tried": [record(each) for each in self.tried]}


@dataclass(frozen=True, kw_only=True)
class Verification:
    """A plan and what the compiler makes of it.

    Attributes:
        fits: the compiler's verdict; the plan's where the compiler was not the TPU's.
        plan_fits: the plan's verdict, at its memory fraction.
        reason: why it does not fit, in a sentence; None where it does.
        program: decode or prefill.
        form: its layers are a loop, or written out.
        available_bytes_per_chip: what the chip offers a program. [B]
        granted_bytes_per_chip: what the plan grants itself of it. [B]
        needed_bytes_per_chip: what the compiler says that the program needs; None where it does not say. [B]
        compiler: its name and versions.
        judged: the compiler was the TPU's.
        rows: the plan's figures beside the compiler's.
        max_batch: where it was asked for.
        estimate: where it was asked for.
        compile_s: how long compiling took, when it was done. [s]
        was_kept: it was done earlier.
        step: the plan's step.
    """

    model: str
    slice: str
    n_chips: int
    program: str
    form: str
    batch: int
    context_tokens: int
    weight_dtype: str
    kv_dtype: str
    compute_dtype: str
    kv_head_shards: int
    kv_batch_shards: int
    fits: bool
    plan_fits: bool
    reason: str | None
    available_bytes_per_chip: float
    granted_bytes_per_chip: float
    needed_bytes_per_chip: float | None
    compiler: str
    judged: bool
    compile_s: float
    was_kept: bool
    rows: tuple[Row, ...]
    max_batch: MaxBatch | None
    estimate: Estimate | None
    assumptions: tuple[str, ...]
    step: Step
    reading: Reading

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            **record(self, without=("rows", "max_batch", "estimate", "step", "reading")),
            "memory": self.memory(),
            "rows": [row.to_dict() for row in self.rows],
            "max_batch": self.max_batch.to_dict() if self.max_batch else None,
            "estimate": self.estimate.to_dict() if self.estimate else None,
            "collectives": [record(exchange) for exchange in self.reading.exchanges],
            "plan": self.step.to_dict(),
        }

    def memory(self) -> dict[str, float] | None:
        """The compiler's bytes of one device: arguments, temporaries, new results, peak; None where it refused. [B]"""
        reading = self.reading
        if reading.refusal:
            return None
        names = ("argument_bytes", "temporary_bytes", "result_bytes", "peak_bytes")
        return {name: getattr(reading, name) for name in names}

    def explain(self, name: str = "") -> Derivation:
        """The derivation of one of the plan's numbers."""
        return self.step.explain(name)
