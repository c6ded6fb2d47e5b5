"""What a compiler said of a program, as plain data. Everything is of one device, in base units; jax is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Collectives that are alike.

    Attributes:
        kind: all-gather, all-reduce, reduce-scatter, all-to-all or collective-permute.
        axis: the mesh axes that it runs over: y (KV heads), z (the batch) or both.
        scope: where in the program: layers, embed, head ...
        dtype: as the compiler writes it.
        n_bytes: the whole array, gathered, reduced, or exchanged by a group. [B]
        count: how often it runs in a step.
    """

    kind: str
    axis: str
    scope: str
    dtype: str
    n_bytes: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Operations of the program that are alike.

    Attributes:
        scope: where in the program.
        what: the expression that they compute.
        cycles: the compiler's estimate for one run.
        count: how often one runs in a step.
        streamed_bytes: what one run reads from HBM itself, rather than from VMEM, where it was fetched to. [B]
    """

    scope: str
    what: str
    cycles: float
    count: int
    streamed_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An array that the program keeps in HBM beside its arguments.

    Attributes:
        scope: of what makes it, or else of what first uses it.
        n_bytes: without padding. [B]
    """

    scope: str
    n_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A program that is too large. Bytes are None where the message has none."""

    needed_bytes: float | None
    available_bytes: float | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the compiler said.

    Attributes:
        program: decode or prefill.
        form: loop, or written out.
        compiler: its name and versions.
        compile_s: how long it took. [s]
        line_bytes: bytes of the arguments as the compiler lays them out, by ledger line. [B]
        filled: by ledger line, what tiles fill up in the argument to which they add most, such as "96 to 128".
        argument_bytes: their sum as the compiler has it. [B]
        temporary_bytes: what it needs beside them. [B]
        result_bytes: results that do not take the place of an argument. [B]
        peak_bytes: the most that it holds at a time, as the compiler has it. [B]
        held: the largest arrays that it keeps in HBM beside its arguments, the largest first.
        unknown_loops: loops whose turns the text does not say, counted once.
        exchanges: the collectives.
        flops: FLOPs of matmuls and dot products by scope. [FLOP]
        cycles: the compiler's estimate by scope, of all operations.
        streamed: the operations that read HBM themselves.
        fetched_bytes: bytes by scope that are fetched from HBM to VMEM meanwhile. [B]
        largest: the costliest operations.
        refusal: set where the program is too large; then the rest is empty.
    """

    program: str
    form: str
    compiler: str
    compile_s: float
    line_bytes: Mapping[str, float] = field(default_factory=dict)
    filled: Mapping[str, str] = field(default_factory=dict)
    argument_bytes: float = 0.0
    temporary_bytes: float = 0.0
    result_bytes: float = 0.0
    peak_bytes: float = 0.0
    held: tuple[Held, ...] = ()
    unknown_loops: int = 0
    exchanges: tuple[Exchange, ...] = ()
    flops: Mapping[str, float] = field(default_factory=dict)
    cycles: Mapping[str, float] = field(default_factory=dict)
    streamed: tuple[Operation, ...] = ()
    fetched_bytes: Mapping[str, float] = field(default_factory=dict)
    largest: tuple[Operation, ...] = ()
    refusal: Refusal | None = None

    @property
    def fits(self) -> bool:
        """The compiler made a program."""
        return self.refusal is None

    @property
    def total_bytes(self) -> float:
        """Arguments, temporaries and new results. [B]"""
        return self.argument_bytes + self.temporary_bytes + self.result_bytes

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)


def from_dict(kept: Mapping[str, Any]) -> Reading:
    """A reading of its JSON object.

    Raises:
        TypeError: the object is of another form.
        KeyError: the same.
    """
    words = {f.name: kept[f.name] for f in fields(Reading)}
    words["exchanges"] = tuple(Exchange(**each) for each in kept["exchanges"])
    words["held"] = tuple(Held(**each) for each in kept["held"])
    words["streamed"] = tuple(Operation(**each) for each in kept["streamed"])
    words["largest"] = tuple(Operation(**each) for each in kept["largest"])
    words["refusal"] = Refusal(**kept["refusal"]) if kept["refusal"] else None
    return Reading(**words)
