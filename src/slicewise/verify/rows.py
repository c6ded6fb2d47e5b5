"""The plan's figures beside the compiler's, row by row, each of one chip and one step; and why two differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from slicewise.verify.claims import Claims, sentences
from slicewise.verify.reading import Exchange, Reading

EQUAL = 5e-4
"""Ratios within this of 1 need no reason."""

NOT_EXPLAINED = "not explained here; --hlo FILE saves the program"
WIDENED = "the CPU's compiler widens bf16 to float32, twice the bytes"
AGAIN = "the compiler computes part of it again rather than keep it"

KINDS = {
    "all-gather": "AllGather",
    "all-reduce": "AllReduce",
    "reduce-scatter": "ReduceScatter",
    "all-to-all": "AllToAll",
    "collective-permute": "CollectivePermute",
}
"""Collectives by the compiler's names, and by the field's."""

LAYER_SCOPES = ("layers", "attention", "cache_write", "dot_product", "mlp")
"""Scopes that lie in the layers."""

MATMUL_SCOPES = ("attention", "mlp", "head")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure, claimed and compiled.

    Attributes:
        part: memory, collectives or flops.
        name: what it is.
        unit: B or FLOP.
        plan: the plan's figure; None where the plan has none.
        compiler: the compiler's; None where it made no program.
        why: why they differ; "" where they do not.
    """

    part: str
    name: str
    unit: str
    plan: float | None
    compiler: float | None
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """The compiler's figure over the plan's."""
        return self.compiler / self.plan if self.plan and self.compiler is not None else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {**asdict(self), "ratio": self.ratio}


def compare(claims: Claims, reading: Reading, *, of_tpu: bool = True) -> tuple[Row, ...]:
    """All rows of a program.

    Args:
        claims: what the plan says.
        reading: what the compiler says.
        of_tpu: it is the TPU's compiler; another's temporaries mean nothing for a TPU.
    """
    if reading.refusal:
        return tuple(_refused(claims, reading))
    beside = _beside(claims, reading) if of_tpu else _arguments(claims, reading)
    widened = "" if of_tpu else WIDENED
    return (*_lines(claims, reading), *beside, *_collectives(claims, reading, widened), *_flops(claims, reading))


def _lines(claims: Claims, reading: Reading) -> Iterable[Row]:
    devices = claims.devices_per_chip
    for line, planned in claims.line_bytes.items():
        compiled = devices * reading.line_bytes.get(line, 0.0)
        yield Row(
            part="memory",
            name=line,
            unit="B",
            plan=planned,
            compiler=compiled,
            why=_if_off(planned, compiled, claims.why.get(line, "padding to whole tiles")),
        )


def _arguments(claims: Claims, reading: Reading) -> Iterable[Row]:
    compiled = sum(reading.line_bytes.get(line, 0.0) for line in claims.line_bytes)
    yield Row(
        part="memory",
        name="arguments",
        unit="B",
        plan=sum(claims.line_bytes.values()),
        compiler=claims.devices_per_chip * compiled,
    )


def _beside(claims: Claims, reading: Reading) -> Iterable[Row]:
    devices = claims.devices_per_chip
    beside = devices * (reading.temporary_bytes + reading.result_bytes + reading.line_bytes.get("inputs", 0.0))
    yield Row(
        part="memory",
        name=claims.beside,
        unit="B",
        plan=claims.beside_bytes,
        compiler=beside,
        why=_if_off(claims.beside_bytes, beside, claims.why.get("beside", "")),
    )
    yield Row(
        part="memory",
        name="all of it",
        unit="B",
        plan=claims.total_bytes,
        compiler=devices * reading.total_bytes,
    )


def _refused(claims: Claims, reading: Reading) -> Iterable[Row]:
    for line, planned in claims.line_bytes.items():
        yield Row(part="memory", name=line, unit="B", plan=planned, compiler=None)
    yield Row(part="memory", name=claims.beside, unit="B", plan=claims.beside_bytes, compiler=None)
    needed = reading.refusal.needed_bytes if reading.refusal else None
    yield Row(
        part="memory",
        name="all of it",
        unit="B",
        plan=claims.total_bytes,
        compiler=None if needed is None else claims.devices_per_chip * needed,
        why="the compiler says only how much it needs in all"
        + (", and a loop may hold copies of stacked weights" if reading.form == "loop" else ""),
    )


def _collectives(claims: Claims, reading: Reading, widened: str) -> Iterable[Row]:
    """A layer's collectives as gathers: an AllReduce is a ReduceScatter and an AllGather."""
    inside = [each for each in reading.exchanges if each.scope in LAYER_SCOPES]
    whole = [each for each in inside if each.axis == claims.all_axes]
    part = [each for each in inside if each.axis != claims.all_axes]
    if whole or claims.gather_bytes:
        moved = sum(_gathers(each) * each.n_bytes * each.count for each in whole) / claims.n_layers
        yield Row(
            part="collectives",
            name=f"a layer: {_named(whole, claims.n_layers)}",
            unit="B",
            plan=claims.gather_bytes,
            compiler=moved,
            why=_if_off(claims.gather_bytes, moved, sentences(claims.why.get("gathers", ""), widened)),
        )
    if part or claims.exchange_bytes:
        moved = sum(_gathers(each) * each.n_bytes * each.count for each in part) / claims.n_layers
        yield Row(
            part="collectives",
            name=f"a layer: {_named(part, claims.n_layers)}",
            unit="B",
            plan=claims.exchange_bytes,
            compiler=moved,
            why=_if_off(claims.exchange_bytes, moved, sentences(claims.why.get("exchanges", ""), widened)),
        )
    outside = [each for each in reading.exchanges if each.scope not in LAYER_SCOPES]
    if outside:
        moved = sum(_gathers(each) * each.n_bytes * each.count for each in outside)
        yield Row(
            part="collectives",
            name=f"once: {_named(outside, 1)}",
            unit="B",
            plan=0.0,
            compiler=moved,
            why="rows of the embedding lie on all chips, and the plan leaves this one out",
        )


def _named(found: list[Exchange], layers: int) -> str:
    counts: Counter[str] = Counter()
    for each in found:
        counts[f"{KINDS.get(each.kind, each.kind)} {each.dtype} over {each.axis}"] += each.count
    return ", ".join(f"{count / layers:g} × {what}" for what, count in counts.items()) or "none"


def _gathers(each: Exchange) -> float:
    return 2.0 if each.kind == "all-reduce" else 1.0


def _flops(claims: Claims, reading: Reading) -> Iterable[Row]:
    devices = claims.devices_per_chip
    matmul = devices * _sum(reading.flops, MATMUL_SCOPES)
    yield Row(
        part="flops",
        name="matmuls",
        unit="FLOP",
        plan=claims.matmul_flops,
        compiler=matmul,
        why=_if_off(claims.matmul_flops, matmul, claims.why.get("matmuls") or _again(claims.matmul_flops, matmul)),
    )
    attention = devices * reading.flops.get("dot_product", 0.0)
    yield Row(
        part="flops",
        name="attention",
        unit="FLOP",
        plan=claims.attention_flops,
        compiler=attention,
        why=_if_off(
            claims.attention_flops,
            attention,
            claims.why.get("attention") or _again(claims.attention_flops, attention),
        ),
    )
    other = devices * sum(
        amount for scope, amount in reading.flops.items() if scope not in (*MATMUL_SCOPES, "dot_product")
    )
    if other:
        yield Row(part="flops", name="elsewhere", unit="FLOP", plan=0.0, compiler=other, why="outside the named scopes")


def _sum(by_scope: Mapping[str, float], scopes: Iterable[str]) -> float:
    return sum(by_scope.get(scope, 0.0) for scope in scopes)


def _if_off(plan: float, compiled: float, why: str) -> str:
    return why or NOT_EXPLAINED if abs(compiled - plan) > EQUAL * max(plan, 1.0) else ""


def _again(plan: float, compiled: float) -> str:
    return AGAIN if compiled > plan else ""
