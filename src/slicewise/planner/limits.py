"""Limits of a slice: the critical batch, how far model parallelism goes, the KV layout and the knee."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from slicewise.derive import Derivation
from slicewise.planner.assumptions import assumptions
from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import refuse_times
from slicewise.planner.knee import explain_knee, knee_batch
from slicewise.planner.layouts import legal_tensor_parallel
from slicewise.planner.question import Flags, ask
from slicewise.planner.record import record
from slicewise.planner.slices import default_deployment
from slicewise.spec.model import Model
from slicewise.units import plain

_KINDS = ("bound", "context", "memory", "weights", "network", "model", "params", "book", "shards", "price")
"""Assumptions that limits rest on: all but what is expected, of which none is told."""
_NAMES = (
    "critical_batch",
    "model_parallel_limit_flops_bound",
    "model_parallel_limit_hbm_bound",
    "gate_matmul_ici_s",
    "gate_matmul_ici_one_axis_s",
    "gate_matmul_hbm_s",
    "gate_matmul_flops_s",
    "max_batch",
)


@dataclass(frozen=True, kw_only=True)
class ServingLimits:
    """The answer of `limits`. A limit is None where there is no network to bind.

    Attributes:
        model_parallel_ways: ways that the plan uses: all chips of the slice, or the tensor-parallel ranks.
        model_parallel_limit_flops_bound: ways beyond which the network binds, where FLOPs bind otherwise.
        model_parallel_limit_hbm_bound: the same where reading weights binds otherwise, at the batch.
        network_binds: the collective of the gate matmul, hops included, takes longer than its HBM and FLOPs time.
        legal_tensor_parallel: tensor-parallel sizes that cut the model legally, on as many chips as they take.
        gate_matmul_ici_s: one collective of the gate matmul over all axes; `one_axis` over one, bandwidth alone. [s]
    """

    model: str
    slice: str
    n_chips: int
    axes: str
    batch: int
    weight_dtype: str
    kv_dtype: str
    compute_dtype: str
    critical_batch: float
    model_parallel_ways: int
    model_parallel_limit_flops_bound: float | None
    model_parallel_limit_hbm_bound: float | None
    gate_matmul_ici_s: float
    gate_matmul_ici_one_axis_s: float
    gate_matmul_hbm_s: float
    gate_matmul_flops_s: float
    network_binds: bool
    kv_head_shards: int
    kv_batch_shards: int
    knee_batch: int | None
    max_batch: int
    legal_tensor_parallel: tuple[int, ...]
    assumptions: tuple[str, ...]
    deployment: Deployment

    @property
    def fits(self) -> bool:
        """Limits are bounds of the slice: they hold whether or not the model fits on it."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self, without=("deployment",))

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number; of the critical batch when none is named.

        Raises:
            UnknownNameError: no such number.
        """
        if name == "model_parallel_ways":
            return self.deployment.explain("tensor_ranks" if self.deployment.ranks else "n_chips")
        if name == "knee_batch":
            return explain_knee(self.deployment)
        derivation = self.deployment.explain(name or "critical_batch", batch=self.batch)
        if self.batch > self.max_batch and name not in _NAMES:
            refuse_times(derivation, f"{self.slice} holds {self.max_batch} sequences")
        return derivation


def limits(model: str | Path | Model, **flags: Unpack[Flags]) -> ServingLimits:
    """The limits of a model on a slice, at a batch (the most that fits when none is given).

    Raises:
        InputError: a word is off.
    """
    question = ask(model, flags)
    deployment = default_deployment(question)
    batch = question.batch or max(1, int(deployment.value("max_batch")))
    values = {name: plain(float(value)) for name, value in deployment.evaluate(_NAMES, batch=batch).items()}
    return ServingLimits(
        model=deployment.model.name,
        slice=deployment.slice.name,
        n_chips=deployment.slice.n_chips,
        axes=" × ".join(map(str, deployment.ici_axes)) or str(deployment.inputs["domain"] or "one chip"),
        batch=batch,
        weight_dtype=deployment.precision.weights,
        kv_dtype=deployment.precision.kv,
        compute_dtype=deployment.precision.compute,
        model_parallel_ways=deployment.ranks.tp if deployment.ranks else deployment.slice.n_chips,
        kv_head_shards=deployment.layout.head_shards,
        kv_batch_shards=deployment.layout.batch_shards,
        knee_batch=knee_batch(deployment),
        network_binds=_binds(values),
        legal_tensor_parallel=legal_tensor_parallel(question.model, deployment.precision),
        **values,  # type: ignore[arg-type]
        assumptions=assumptions(deployment, batch=batch, kinds=_KINDS),
        deployment=deployment,
    )


def _binds(values: dict[str, Any]) -> bool:
    """Whether the network binds one gate matmul, in the times that were computed."""
    return bool(values["gate_matmul_ici_s"] > max(values["gate_matmul_hbm_s"], values["gate_matmul_flops_s"]))
