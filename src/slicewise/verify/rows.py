"""The plan's figures beside the compiler's, row by row, each of one chip and one step; and why two differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from slicewise.program.lines import INPUTS, SCALES
from slicewise.units import show
from slicewise.verify.claims import Claims, sentences
from slicewise.verify.hlo import OTHER
from slicewise.verify.reading import Exchange, Reading
from slicewise.verify.recipe import LOOP

EQUAL = 5e-4
"""Ratios within this of 1 need no reason."""

NOT_EXPLAINED = "not explained here; --hlo FILE saves the program"
WIDENED = "the CPU's compiler widens 16 bits to float32, twice the bytes"
AGAIN = "the compiler computes part of it again rather than keep it"
FEWER = "fewer are kept at a time than the plan counts"
OF_THE_PROGRAM = "the program's own; the plan's ledger has no such line"
NO_SCOPE = "outside the named scopes"
N_NAMED = 2
"""Arrays that the reason of a large rest names."""

KINDS = {
    "all-gather": "AllGather",
    "all-reduce": "AllReduce",
    "reduce-scatter": "ReduceScatter",
    "all-to-all": "AllToAll",
    "collective-permute": "CollectivePermute",
}
"""Collectives by the compiler's names, and by the field's."""

PACKED = {"u32": "u32 (two of 16 bits)"}
"""What the compiler packs for the network, and how to read it."""

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
    collectives = _collectives(claims, reading, of_tpu=of_tpu)
    return (*_lines(claims, reading), *beside, *collectives, *_flops(claims, reading))


def _lines(claims: Claims, reading: Reading) -> Iterable[Row]:
    for line, planned in claims.line_bytes.items():
        compiled = claims.devices_per_chip * reading.line_bytes.get(line, 0.0)
        declared = claims.declared_bytes.get(line, planned)
        is_filled = compiled - declared > EQUAL * declared
        tiles = f"tiles fill up {reading.filled[line]}" if is_filled and line in reading.filled else ""
        why = _if_off(planned, compiled, sentences(claims.why.get(line, ""), tiles))
        own = OF_THE_PROGRAM if line in SCALES else ""
        yield Row(part="memory", name=line, unit="B", plan=planned, compiler=compiled, why=sentences(own, why))


def _arguments(claims: Claims, reading: Reading) -> Iterable[Row]:
    compiled = sum(reading.line_bytes.get(line, 0.0) for line in claims.line_bytes)
    yield Row(
        part="memory",
        name="arguments",
        unit="B",
        plan=sum(claims.line_bytes.values()),
        compiler=claims.devices_per_chip * compiled,
        why=_with_scales(claims),
    )


def _beside(claims: Claims, reading: Reading) -> Iterable[Row]:
    devices = claims.devices_per_chip
    beside = devices * (reading.temporary_bytes + reading.result_bytes + reading.line_bytes.get(INPUTS, 0.0))
    why = FEWER if beside < claims.beside_bytes else sentences(claims.why.get("beside", ""), _held(reading))
    yield Row(
        part="memory",
        name=claims.beside,
        unit="B",
        plan=claims.beside_bytes,
        compiler=beside,
        why=_if_off(claims.beside_bytes, beside, why),
    )
    yield Row(
        part="memory",
        name="all of it",
        unit="B",
        plan=claims.total_bytes,
        compiler=devices * reading.total_bytes,
        why=_with_scales(claims),
    )


def _held(reading: Reading) -> str:
    """The largest arrays, those that are alike once: they may well be one after the other in the same place."""
    named = [each for each in dict.fromkeys(reading.held) if each.n_bytes > reading.held[0].n_bytes / 10][:N_NAMED]
    sizes = (f"{show(each.n_bytes, 'B')} {NO_SCOPE if each.scope == OTHER else f'of {each.scope}'}" for each in named)
    return f"the largest arrays of a device: {', '.join(sizes)}" if named else ""


def _with_scales(claims: Claims) -> str:
    return f"both with {show(claims.scale_bytes, 'B')} of scales" if claims.scale_bytes else ""


def _refused(claims: Claims, reading: Reading) -> Iterable[Row]:
    for line, planned in claims.line_bytes.items():
        own = OF_THE_PROGRAM if line in SCALES else ""
        yield Row(part="memory", name=line, unit="B", plan=planned, compiler=None, why=own)
    yield Row(part="memory", name=claims.beside, unit="B", plan=claims.beside_bytes, compiler=None)
    needed = reading.refusal.needed_bytes if reading.refusal else None
    compiled = None if needed is None else claims.devices_per_chip * needed
    copies = ", and with copies of what a loop stacks" if reading.form == LOOP else ""
    yield Row(
        part="memory",
        name="all of it",
        unit="B",
        plan=claims.total_bytes,
        compiler=compiled,
        why="" if compiled is None else _if_off(claims.total_bytes, compiled, f"with what tiles fill up{copies}"),
    )


def _collectives(claims: Claims, reading: Reading, *, of_tpu: bool) -> Iterable[Row]:
    """Bytes of collectives as gathers: an AllReduce is a ReduceScatter and an AllGather."""
    inside = [each for each in reading.exchanges if each.scope in LAYER_SCOPES]
    exchanges = [each for each in inside if _is_exchange(each, claims, reading)]
    gathers = [each for each in inside if each not in exchanges]
    for found, planned, why in (
        (gathers, claims.gather_bytes, claims.why.get("gathers", "")),
        (exchanges, claims.exchange_bytes, claims.why.get("exchanges", "")),
    ):
        if found or planned:
            moved = _moved(found) / claims.n_layers
            yield Row(
                part="collectives",
                name=f"a layer: {_named(found, claims.n_layers)}",
                unit="B",
                plan=planned,
                compiler=moved,
                why=_if_off(planned, moved, sentences(why, "" if of_tpu else _widened(claims, found))),
            )
    outside = [each for each in reading.exchanges if each.scope not in LAYER_SCOPES]
    if outside:
        of_embedding = all(each.scope == "embed" for each in outside)
        yield Row(
            part="collectives",
            name=f"once: {_named(outside, 1)}",
            unit="B",
            plan=0.0,
            compiler=_moved(outside),
            why="rows of the embedding lie on all chips, and the plan leaves this one out"
            if of_embedding
            else NOT_EXPLAINED,
        )


def _is_exchange(each: Exchange, claims: Claims, reading: Reading) -> bool:
    """Whether a collective moves what chips with one KV head share, rather than a layer's activations.

    A prefill adds up its activations with AllReduces, and gathers nothing but keys and values.
    """
    gathers_keys = each.kind == "all-gather" and reading.program == "prefill"
    return each.kind == "all-to-all" or gathers_keys or each.axis != claims.all_axes


def _moved(found: list[Exchange]) -> float:
    return sum((2.0 if each.kind == "all-reduce" else 1.0) * each.n_bytes * each.count for each in found)


def _named(found: list[Exchange], layers: int) -> str:
    counts: Counter[str] = Counter()
    for each in found:
        dtype = PACKED.get(each.dtype, each.dtype)
        counts[f"{KINDS.get(each.kind, each.kind)} {dtype} over {each.axis}"] += each.count
    return ", ".join(f"{count / layers:g} × {what}" for what, count in counts.items()) or "none"


def _widened(claims: Claims, found: list[Exchange]) -> str:
    return WIDENED if claims.compute != "fp32" and any(each.dtype == "f32" for each in found) else ""


def _flops(claims: Claims, reading: Reading) -> Iterable[Row]:
    devices = claims.devices_per_chip
    attention = reading.flops.get("dot_product", 0.0)
    matmuls = sum(reading.flops.get(scope, 0.0) for scope in MATMUL_SCOPES)
    for name, planned, found in (
        ("matmuls", claims.matmul_flops, devices * matmuls),
        ("attention", claims.attention_flops, devices * attention),
    ):
        why = claims.why.get(name) or (AGAIN if found > planned else "")
        yield Row(part="flops", name=name, unit="FLOP", plan=planned, compiler=found, why=_if_off(planned, found, why))
    other = devices * (sum(reading.flops.values()) - matmuls - attention)
    if other > 0:
        yield Row(part="flops", name="elsewhere", unit="FLOP", plan=0.0, compiler=other, why="in no scope of matmuls")


def _if_off(plan: float, compiled: float, why: str) -> str:
    return why or NOT_EXPLAINED if abs(compiled - plan) > EQUAL * max(plan, 1.0) else ""
