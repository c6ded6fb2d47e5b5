"""Where the memory of the fullest chip goes, line by line: what is exact, what is an estimate, and what is a range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from slicewise.derive import Derivation
from slicewise.errors import UnknownNameError
from slicewise.planner.deployment import Deployment
from slicewise.planner.engine_record import BATCHED_TOKENS
from slicewise.planner.engines import TPU_INFERENCE
from slicewise.planner.record import record
from slicewise.planner.reserve import buffers, graphs, reserve
from slicewise.spec.chip import Chip
from slicewise.spec.precision import ACTIVATION_BYTES_PER_ELEMENT, BYTES_PER_ELEMENT

EXACT, ESTIMATE, RANGE = "exact", "estimate", "range"
LEDGER_LINE, MOST = "ledger:", ":most"
"""How a line without a formula is called by `--explain`, and the upper end of its range."""
_FORMULAS = {
    "usable": "hbm_bytes_per_chip",
    "granted": "fraction_bytes_per_chip",
    "weights": "weight_bytes_per_chip",
    "KV cache": "held_kv_bytes_per_chip",
    "logits": "logit_bytes_per_chip",
    "decode activations": "mlp_activation_bytes_per_chip",
    "free": "unused_bytes_per_chip",
}
"""Lines that a formula computes."""
_MEANT = {EXACT: "exact", ESTIMATE: "an estimate", RANGE: "the least of a range"}


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
        quantity: the formula behind it, as `--explain` calls it; None where there is none.
        source: the document of a fact; "" where it is none, or of no document.
    """

    name: str
    n_bytes: float
    most_bytes: float
    certainty: str
    counted: bool
    why: str
    quantity: str | None = None
    source: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self, without=("source",))

    def explain(self, deployment: Deployment, batch: int, *, most: bool = False) -> Derivation:
        """How the line comes about: the formula, or what is known where there is none."""
        if self.quantity is not None:
            return deployment.explain(self.quantity, batch=batch)
        return Derivation(
            name=f"{LEDGER_LINE}{self.name}{MOST if most else ''}",
            value=self.most_bytes if most else self.n_bytes,
            unit="B",
            meaning=f"{self.name}: {'the most of a range' if most else _MEANT[self.certainty]}",
            origin=self.why,
            source=self.source,
        )


def ledger_lines(deployment: Deployment, batch: int, batched_tokens: int | None = None) -> tuple[LedgerLine, ...]:
    """A chip's memory, from what is sold down to what is free.

    Args:
        deployment: the model on a slice.
        batch: sequences that are held.
        batched_tokens: most tokens of one forward pass; an engine's default where it is not given.
    """
    chip, share = deployment.slice.chip, deployment.conventions.memory_fraction
    found = deployment.evaluate(_FORMULAS.values(), batch=batch)
    values = {name: float(value) for name, value in found.items()}
    sold = chip.provenance.get("hbm_bytes")
    lines = [
        _fact("HBM as sold", chip.hbm_bytes, _sold(chip), sold.document if sold else ""),
        _of(values, "usable", EXACT, _usable(deployment), counted=False),
        _of(values, "granted", EXACT, f"memory fraction {share:g}; the rest is in reserve", counted=False),
        *_weights(deployment, values),
        _of(values, "KV cache", EXACT, _cache(deployment, batch)),
        _of(values, "logits", ESTIMATE, "float32, one row a sequence, cut over the chips"),
        _of(values, "decode activations", ESTIMATE, "gate and up of the batch, cut over the chips"),
    ]
    kept = _kept_lines(deployment)
    free = _free(values, is_ranged=any(line.certainty == RANGE for line in kept))
    return (*lines, *kept, free, *_parts(deployment, batched_tokens, is_counted=bool(kept)))


def line_of(lines: tuple[LedgerLine, ...], name: str) -> tuple[LedgerLine, bool]:
    """The line that a name of `--explain` asks for, and whether the most of its range is meant.

    Raises:
        UnknownNameError: there is no such line.
    """
    called = name.removeprefix(LEDGER_LINE)
    for line in lines:
        if called in (line.name, f"{line.name}{MOST}"):
            return line, called != line.name
    raise UnknownNameError("ledger line", called, [line.name for line in lines])


def _sold(chip: Chip) -> str:
    """What a chip is sold with: vendors' GB are often GiB, of which more is usable than is printed."""
    return f"{chip.title}{', printed as GB, which are GiB in fact' if chip.usable_hbm_bytes > chip.hbm_bytes else ''}"


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
        given = _line("the engine keeps", bytes_, bytes_, EXACT, "as given by --reserve", counted=True)
        return [replace(given, quantity="reserve_bytes_per_chip")]
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


def _free(values: Mapping[str, float], *, is_ranged: bool) -> LedgerLine:
    why = "for more sequences" if values[_FORMULAS["free"]] >= 0 else "DOES NOT FIT"
    return _of(values, "free", ESTIMATE if is_ranged else EXACT, why, counted=False)


def _fact(name: str, n_bytes: float, why: str, source: str) -> LedgerLine:
    return replace(_line(name, n_bytes, n_bytes, EXACT, why), source=source)


def _of(values: Mapping[str, float], name: str, certainty: str, why: str, *, counted: bool = True) -> LedgerLine:
    """A line that a formula computes."""
    n_bytes = values[_FORMULAS[name]]
    return replace(_line(name, n_bytes, n_bytes, certainty, why, counted=counted), quantity=_FORMULAS[name])


def _line(name: str, low: float, high: float, certainty: str, why: str, *, counted: bool = False) -> LedgerLine:
    return LedgerLine(name=name, n_bytes=low, most_bytes=high, certainty=certainty, counted=counted, why=why)


def _weights(deployment: Deployment, values: Mapping[str, float]) -> list[LedgerLine]:
    """The weights: exact as stored or in 16 bits and more; a quantised checkpoint keeps some wider, and scales."""
    dtype = deployment.precision.weights
    if deployment.precision.as_stored or BYTES_PER_ELEMENT[dtype] >= ACTIVATION_BYTES_PER_ELEMENT:
        line = _of(values, "weights", EXACT, f"{dtype}{_stored(deployment)}")
    else:
        why = f"{dtype} throughout; checkpoints keep embeddings and head wider, and add scales"
        line = _of(values, "weights", ESTIMATE, why)
    table = float(deployment.inputs.get("table_bytes", 0.0))
    if not table:
        return [line]
    why = "a row a position of the stated limit, on every chip"
    without = float(deployment.value("parameter_bytes_per_chip"))
    return [
        replace(line, n_bytes=without, most_bytes=without, quantity="parameter_bytes_per_chip"),
        replace(_line("rotary table", table, table, EXACT, why, counted=True), quantity="table_bytes"),
    ]


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
