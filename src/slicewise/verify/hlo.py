"""A compiled XLA program: its computations, how often each runs, and the scopes that its instructions belong to."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from slicewise.errors import InputError
from slicewise.verify.hlo_loops import trip_count
from slicewise.verify.hlo_text import Computation, Instruction, read

OTHER = "other"
"""The label of what belongs to no scope."""

_CONTROL = ("while", "conditional", "call", "tuple")
_NAME = re.compile(r"HloModule\s+([^\s,]+)")
_PARTITIONS = re.compile(r"\bnum_partitions=(\d+)")
_REPLICAS = re.compile(r"\breplica_count=(\d+)")
_COMPONENT = re.compile(r"[/;]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One compiled program, as every device runs it.

    Attributes:
        name: as XLA calls it.
        n_devices: devices that it is partitioned or replicated over.
        computations: by name.
        entry: name of the computation that the program starts with.
        times: how often each computation runs, callers before what they call. Bodies and conditions of loops run once a
            trip, and all branches of a conditional as often as the conditional. []
        callers: the computation and the instruction that call each computation, the first of several.
        unknown_trip_count: the loops whose trips are not known and count as 1.
    """

    name: str
    n_devices: int
    computations: Mapping[str, Computation]
    entry: str
    times: Mapping[str, int]
    callers: Mapping[str, tuple[Computation, Instruction]]
    unknown_trip_count: tuple[str, ...]

    def is_fused(self, name: str) -> bool:
        """Whether a computation is the inside of a fusion."""
        return name in self.callers and self.callers[name][1].opcode == "fusion"


def parse(text: str) -> Module:
    """A module from the text of a compiled program, after partitioning and scheduling.

    Unknown opcodes are kept; lines that are no instructions are passed over.

    Raises:
        InputError: the text has no entry computation.
    """
    computations, entry = read(text)
    if not entry:
        raise InputError("this is not the text of a compiled program: it has no ENTRY computation")
    header = text.lstrip().partition("\n")[0]
    devices = [int(found[1]) if (found := each.search(header)) else 1 for each in (_PARTITIONS, _REPLICAS)]
    order = _callers_first(computations, entry)
    times = dict.fromkeys(order, 0) | {entry: 1}
    callers: dict[str, tuple[Computation, Instruction]] = {}
    unknown = []
    for name in order:
        computation = computations[name]
        for instruction in computation.instructions.values():
            if not instruction.called:
                continue
            trips = 1
            if instruction.opcode == "while":
                known = trip_count(instruction, computation, computations)
                trips = 1 if known is None else known
                unknown += [instruction.name] if known is None else []
            for called in instruction.called:
                if called in times:
                    times[called] += times[name] * trips
                    callers.setdefault(called, (computation, instruction))
    found = _NAME.match(header)
    return Module(
        name=found[1] if found else "",
        n_devices=devices[0] * devices[1],
        computations=computations,
        entry=entry,
        times=times,
        callers=callers,
        unknown_trip_count=tuple(unknown),
    )


def scope_of(op_name: str, scopes: Collection[str]) -> str:
    """The innermost of the scopes that is a component of an op_name's path; "other" where none is.

    >>> scope_of("jit(step)/layers/attention/cache_write/mul", ("layers", "attention", "cache_write"))
    'cache_write'
    """
    components = _COMPONENT.split(op_name)
    return next((component for component in reversed(components) if component in scopes), OTHER)


def labels(module: Module, scope: Callable[[str], str]) -> dict[str, dict[str, str]]:
    """The label of every instruction that runs, by computation and name.

    XLA leaves the op_name of copies and of what it rewrites out, or keeps no scope in it. Such an instruction has the
    label of the first that uses its result, or else of the one that calls its computation. Loops and tuples have the
    label of their own op_name only.

    Args:
        module: the program.
        scope: gives the label of an op_name, and "other" where it has none.
    """
    cache = {"": OTHER}
    found: dict[str, dict[str, str]] = {}
    for name in module.times:
        computation = module.computations[name]
        known: dict[str, str] = {}
        for instruction in reversed(list(computation.instructions.values())):
            op_name = instruction.op_name
            label = cache.get(op_name)
            if label is None:
                label = cache[op_name] = scope(op_name)
            if label == OTHER and instruction.opcode not in _CONTROL:
                used = (known[user.name] for user in computation.users.get(instruction.name, ()) if user.name in known)
                label = next((each for each in used if each != OTHER), OTHER)
            known[instruction.name] = label
        if name in module.callers:
            caller, instruction = module.callers[name]
            outer = found[caller.name][instruction.name]
            known = {each: outer if label == OTHER else label for each, label in known.items()}
        found[name] = known
    return found


def _callers_first(computations: Mapping[str, Computation], entry: str) -> list[str]:
    """The computations that the entry reaches, each after all that call it."""
    done: dict[str, None] = {}

    def visit(name: str) -> None:
        for instruction in computations[name].instructions.values():
            for called in instruction.called:
                if called in computations and called not in done:
                    visit(called)
        done[name] = None

    visit(entry)
    return list(reversed(done))
