"""Memory: the ledger, and on which slices a model fits with how many sequences of which length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.engine_memory import EngineMemory, Started, engine_memory, started
from slicewise.planner.feasible import memory_verdict
from slicewise.planner.layouts import AskedLayout, layouts
from slicewise.planner.ledger import LEDGER_LINE, LedgerLine, ledger_lines, line_of
from slicewise.planner.question import Flags, Quantity, Question, ask
from slicewise.planner.record import record
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import GROWTH, LEDGER, Step, step_of
from slicewise.spec.model import Model
from slicewise.spec.tensors import weight_tensors
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
    layout: str
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
    """The answer of `memory`: the ledger of one slice, and a row for each slice.

    Attributes:
        params_by_role: parameters of each role: attention, mlp, experts, embedding, head, norm ...
        lines: where the memory of the fullest chip goes.
        engine: what the engine will log; None where none was asked for.
        legal_layouts: the legal layouts of ranks on the slice of the ledger, where ranks were asked for.
    """

    ledger: Step
    lines: tuple[LedgerLine, ...]
    engine: EngineMemory | None
    legal_layouts: tuple[str, ...]
    max_context_tokens: int | None
    matmul_params: float
    params_by_role: Mapping[str, int]
    smallest: str | None
    slice_is_given: bool
    slices: tuple[SliceMemory, ...]

    @property
    def fits(self) -> bool:
        """Whether the slice of the ledger holds the batch, and the engine would start."""
        return self.ledger.fits and (self.engine is None or self.engine.log.starts)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        kept = {name: value for name, value in self.ledger.to_dict().items() if name in _LEDGER_KEYS}
        own = {
            "matmul_params": plain(self.matmul_params),
            "params_by_role": dict(self.params_by_role),
            "max_context_tokens": self.max_context_tokens,
            "smallest": self.smallest,
            "lines": [line.to_dict() for line in self.lines],
            "engine": self.engine.to_dict() if self.engine else None,
            "legal_layouts": list(self.legal_layouts),
        }
        return {**kept, **own, "slices": [row.to_dict() for row in self.slices]}

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number; of the total when none is named.

        Raises:
            UnknownNameError: no such number.
        """
        if name == "max_context_tokens":
            return _explain_context(self.ledger.deployment, self.ledger.batch)
        if name.startswith(LEDGER_LINE):
            line, most = line_of(self.lines, name)
            return line.explain(self.ledger.deployment, self.ledger.batch, most=most)
        return self.ledger.explain(name or "total_bytes")


_LEDGER_KEYS = {
    "model", "slice", "n_chips", "batch", "context_tokens", "capacity_context_tokens", "weight_dtype", "kv_dtype",
    "compute_dtype", "layout", *GROWTH, *LEDGER, "fits", "reason", "assumptions",
}  # fmt: skip


class MemoryFlags(Flags, total=False):
    """The words of `memory`: those of every question, how the engine is started, and what it logged."""

    max_model_len: Quantity | None
    max_num_batched_tokens: Quantity | None
    block_size: Quantity | None
    logged_kv_gib: Quantity | None
    logged_kv_tokens: Quantity | None


ENGINE_WORDS = tuple(word for word in MemoryFlags.__annotations__ if word not in Flags.__annotations__)


def memory(model: str | Path | Model, **flags: Unpack[MemoryFlags]) -> Memory:
    """What a model needs and where it fits; with an engine, what it will log.

    Without `slice` every standard slice of the chips is listed, and the ledger is that of the smallest that fits.

    Raises:
        InputError: a word is off.
    """
    asked = started(flags)
    question = ask(model, {word: value for word, value in flags.items() if word not in ENGINE_WORDS})  # type: ignore[arg-type]
    if asked.is_given and question.engine is None:
        raise InputError("--max-model-len, --block-size and logged figures are an engine's; give --engine vllm too")
    batch = question.batch or 1
    places = [
        (slice_, precision)
        for precision in question.precisions
        for slice_ in question.slices
        if question.layouts(slice_, precision)
    ]
    tried = [question.deployment(slice_, precision) for slice_, precision in places]
    rows = tuple(_row(_as_logged(deployment, asked), batch) for deployment in tried)
    first = question.precisions[0]
    fitting = [row for row in rows if row.fits and (row.weight_dtype, row.kv_dtype) == (first.weights, first.kv)]
    smallest = min(fitting, key=lambda row: row.n_chips, default=None)
    named = {slice_.name: slice_ for slice_ in question.slices}
    deployment = question.deployment(named[smallest.slice]) if smallest else default_deployment(question, several=True)
    engine = _engine(deployment, asked, question)
    deployment = _as_logged(deployment, asked)
    ledger = step_of(deployment, batch)
    return Memory(
        ledger=ledger,
        lines=ledger_lines(deployment, batch, asked.max_num_batched_tokens),
        engine=engine,
        legal_layouts=_legal(question, deployment),
        max_context_tokens=_max_context(deployment, batch),
        matmul_params=deployment.value("matmul_params"),
        params_by_role=_by_role(question.model),
        smallest=smallest.slice if smallest else None,
        slice_is_given=question.slice_is_given,
        slices=rows,
    )


def _by_role(model: Model) -> dict[str, int]:
    """Parameters of each role, the largest first; they add up to all of them."""
    found: dict[str, int] = {}
    for tensor in weight_tensors(model):
        if tensor.stored:
            found[tensor.role] = found.get(tensor.role, 0) + tensor.size
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _engine(deployment: Deployment, asked: Started, question: Question) -> EngineMemory | None:
    if question.engine is None:
        return None
    return engine_memory(deployment, asked, reserve_is_given=question.reserve_is_given)


def _as_logged(deployment: Deployment, asked: Started) -> Deployment:
    """The deployment, where a pool was logged with an engine that keeps what leaves it."""
    if asked.logged_kv_bytes is None:
        return deployment
    granted = deployment.hbm_bytes_per_chip * deployment.conventions.memory_fraction
    weights = float(deployment.value("weight_bytes_per_chip"))
    kept = max(0.0, granted - weights - asked.logged_kv_bytes)
    return deployment.with_(conventions=replace(deployment.conventions, reserve_bytes_per_chip=kept))


def _legal(question: Question, deployment: Deployment) -> tuple[str, ...]:
    """The legal layouts on a slice, where ranks were asked for."""
    if deployment.ranks is None:
        return ()
    every = AskedLayout(degrees={}, by_ranks=True)
    found = layouts(question.model, deployment.slice, deployment.precision, every)
    return tuple(str(ranks) for ranks in found)


def _row(deployment: Deployment, batch: int) -> SliceMemory:
    ledger = deployment.evaluate(LEDGER, batch=batch)
    verdict = memory_verdict(deployment, ledger, batch)
    return SliceMemory(
        slice=deployment.slice.name,
        n_chips=deployment.slice.n_chips,
        weight_dtype=deployment.precision.weights,
        kv_dtype=deployment.precision.kv,
        layout=deployment.layout_name,
        fits=verdict.fits,
        max_batch=int(ledger["max_batch"]),
        max_context_tokens=_max_context(deployment, batch),
        **{name: float(ledger[name]) for name in ("total_bytes", "total_bytes_per_chip", "hbm_bytes", "free_bytes")},
        reason=verdict.detail or None,
    )


def _max_context(deployment: Deployment, batch: int) -> int | None:
    tokens = plain(float(deployment.value("max_context_tokens", batch=batch, **_shortest(deployment, batch))))
    return tokens if isinstance(tokens, int) else None


def _explain_context(deployment: Deployment, batch: int) -> Derivation:
    inputs = _shortest(deployment, batch)
    lists = {name: "\n".join(map(str, value)) or "none" for name, value in inputs.items() if isinstance(value, tuple)}
    origins = {name: (words, deployment.origins[name][1]) for name, words in lists.items()}
    return deployment.explain("max_context_tokens", origins, batch=batch, **inputs)


def _shortest(deployment: Deployment, batch: int) -> dict[str, Any]:
    """The inputs of the pipeline stage that bounds the context; none where there is one stage."""
    if len(deployment.holdings) == 1:
        return {}
    stages = [deployment.at_stage(part.stage) for part in deployment.holdings]
    return min(stages, key=lambda inputs: float(deployment.value("max_context_tokens", batch=batch, **inputs)))
