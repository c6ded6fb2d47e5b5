"""Where the memory of the fullest chip goes, line by line: what is exact, what is an estimate, and what is a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slicewise.costs.memory import LOGIT_BYTES
from slicewise.planner.deployment import Deployment
from slicewise.planner.engine_record import BATCHED_TOKENS
from slicewise.planner.engines import TPU_INFERENCE
from slicewise.planner.record import record
from slicewise.planner.reserve import buffers, graphs, reserve
from slicewise.spec.precision import ACTIVATION_BYTES_PER_ELEMENT, BYTES_PER_ELEMENT

EXACT, ESTIMATE, RANGE = "exact", "estimate", "range"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One line of a chip's memory.

    Attributes:
        name: what it is for.
        n_bytes: bytes on the fullest chip; the least of a range. [B]
        most_bytes: the most of a range; `n_bytes` otherwise. [B]
        certainty: exact, estimate or range.
        counted: whether it is part of what must fit; the rest explains what an engine keeps.
        why: how it comes about, or why it is a range.
    """

    name: str
    n_bytes: float
    most_bytes: float
    certainty: str
    counted: bool
    why: str

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self)


def ledger_lines(deployment: Deployment, batch: int, batched_tokens: int | None = None) -> tuple[LedgerLine, ...]:
    """A chip's memory, from what is sold down to what is free.

    Args:
        deployment: the model on a slice.
        batch: sequences that are held.
        batched_tokens: most tokens of one forward pass; an engine's default where it is not given.
    """
    chip, counted, n_chips = deployment.slice.chip, deployment.conventions, deployment.slice.n_chips
    values = {
        name: float(value) / n_chips
        for name, value in deployment.evaluate(
            ["weight_bytes", "kv_bytes", "activation_bytes", "hbm_bytes", "free_bytes"], batch=batch
        ).items()
    }
    table = float(deployment.inputs.get("table_bytes", 0.0))
    share, usable = counted.memory_fraction, deployment.hbm_bytes_per_chip
    logits = _logits(deployment, batch) if values["activation_bytes"] else 0.0
    lines = [
        _exact("HBM as sold", chip.hbm_bytes, f"{chip.title}", counted=False),
        _exact("usable", usable, _usable(deployment), counted=False),
        _exact("granted", usable * share, f"memory fraction {share:g}; the rest is in reserve", counted=False),
        _weights(deployment, values["weight_bytes"] - table),
        *([_exact("rotary table", table, "a row a position of the stated limit, on every chip")] if table else []),
        _exact("KV cache", values["kv_bytes"], _cache(deployment, batch)),
        _line("logits", logits, logits, ESTIMATE, "float32, one row a sequence, cut over the chips", counted=True),
        _line(
            "decode activations",
            *(values["activation_bytes"] - logits,) * 2,
            ESTIMATE,
            "gate and up of the batch, cut over the chips",
            counted=True,
        ),
    ]
    kept = _kept_lines(deployment)
    is_ranged = any(line.certainty == RANGE for line in kept)
    free = _free(values, is_ranged=is_ranged)
    return (*lines, *kept, free, *_parts(deployment, batched_tokens, is_counted=bool(kept)))


def _logits(deployment: Deployment, batch: int) -> float:
    """Bytes of the batch's logits on one chip. [B]"""
    return LOGIT_BYTES * batch * deployment.model.vocab_size / deployment.slice.n_chips


def _usable(deployment: Deployment) -> str:
    if deployment.conventions.hbm_bytes_per_chip is not None:
        return "as given by --hbm"
    return "nominal, as the book counts" if deployment.conventions.nominal_hbm else "what the compiler or engines see"


def _kept_lines(deployment: Deployment) -> list[LedgerLine]:
    """What an engine keeps of what is granted, beside weights and cache."""
    bytes_, engine = deployment.conventions.reserve_bytes_per_chip, deployment.engine
    if not bytes_:
        return []
    kept = reserve(engine, deployment.model, deployment.ranks) if engine else None
    if kept is None or bytes_ != kept.typical_bytes:
        return [_exact("the engine keeps", bytes_, "as given by --reserve")]
    why = f"{kept.why}; the middle is counted"
    return [_line("the engine keeps", kept.low_bytes, kept.high_bytes, RANGE, why, counted=True)]


def _parts(deployment: Deployment, batched_tokens: int | None, *, is_counted: bool) -> list[LedgerLine]:
    """What the engine's share, or else the reserve outside the fraction, must hold."""
    ways = deployment.ranks.tp if deployment.ranks else deployment.slice.n_chips
    tokens = batched_tokens or BATCHED_TOKENS
    model, width = deployment.model, float(deployment.inputs["activation_bytes_per_element"])
    pass_bytes = tokens * width * (2 * model.d_model + 2 * model.d_ff / ways)
    of = "of what it keeps: " if is_counted else "in reserve: "
    words = f"{tokens:,} tokens × (2 D + 2 F over {ways}) × {width:g} B, kept once or twice"
    found = [_line(f"{of}a pass of prefill", pass_bytes, 2 * pass_bytes, RANGE, words)]
    if deployment.slice.chip.is_gpu:
        found.append(_line(f"{of}compiled graphs", *graphs(), RANGE, "as logged; grows with the batch sizes captured"))
        if ways > 1:
            found.append(_line(f"{of}collectives' buffers", *buffers(ways), RANGE, "as logged; the library decides"))
    return found


def _free(values: dict[str, float], *, is_ranged: bool) -> LedgerLine:
    free_bytes = values["free_bytes"]
    why = "for more sequences" if free_bytes >= 0 else "DOES NOT FIT"
    certainty = ESTIMATE if is_ranged else EXACT
    return LedgerLine(
        name="free", n_bytes=free_bytes, most_bytes=free_bytes, certainty=certainty, counted=False, why=why
    )


def _exact(name: str, n_bytes: float, why: str, *, counted: bool = True) -> LedgerLine:
    return _line(name, n_bytes, n_bytes, EXACT, why, counted=counted)


def _line(name: str, low: float, high: float, certainty: str, why: str, *, counted: bool = False) -> LedgerLine:
    return LedgerLine(name=name, n_bytes=low, most_bytes=high, certainty=certainty, counted=counted, why=why)


def _weights(deployment: Deployment, n_bytes: float) -> LedgerLine:
    """The weights: exact as stored or in 16 bits and more; a quantised checkpoint keeps some wider, and scales."""
    dtype = deployment.precision.weights
    if deployment.precision.as_stored or BYTES_PER_ELEMENT[dtype] >= ACTIVATION_BYTES_PER_ELEMENT:
        return _exact("weights", n_bytes, f"{dtype}{_stored(deployment)}")
    why = f"{dtype} throughout; checkpoints keep embeddings and head wider, and add scales"
    return _line("weights", n_bytes, n_bytes, ESTIMATE, why, counted=True)


def _stored(deployment: Deployment) -> str:
    if deployment.precision.as_stored and deployment.params is None:
        return " as the checkpoint stores them, scales included"
    return ""


def _cache(deployment: Deployment, batch: int) -> str:
    held = deployment.workload.capacity_context_tokens
    copies = float(deployment.value("kv_copies")) if deployment.ranks else 1.0
    padded = deployment.engine is not None and deployment.engine.name == TPU_INFERENCE
    copied = f", {copies:.3g} {'times one unpadded copy' if padded else 'copies over the ranks'}" if copies > 1 else ""
    return f"{batch:,} × {held:,.0f} tokens, {deployment.precision.kv}{copied}"
