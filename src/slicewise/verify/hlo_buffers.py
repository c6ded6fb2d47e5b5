"""The largest arrays that a compiled program keeps in HBM beside its arguments."""

from __future__ import annotations

from collections.abc import Callable

from slicewise.verify.hlo import Module, labels
from slicewise.verify.hlo_text import Computation, Instruction, arrays
from slicewise.verify.reading import Held

_NOT_MADE = (
    "parameter",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "while",
    "conditional",
    "call",
    "optimization-barrier",
)
_IN_PLACE = "dynamic-update-slice"


def buffers(module: Module, scope: Callable[[str], str], most: int) -> tuple[Held, ...]:
    """The largest arrays that operations make, the largest first.

    What an operation writes in place, as a token into the cache, is not made by it. Arrays that live one after the
    other may share their memory, so that the sum says nothing.

    Args:
        module: the program.
        scope: gives the label of an op_name, and "other" where it has none.
        most: how many.
    """
    label = labels(module, scope)
    found = [
        Held(scope=label[name][instruction.name], n_bytes=array.n_bytes)
        for name in module.times
        if not module.is_fused(name)
        for instruction in module.computations[name].instructions.values()
        if _makes(module, instruction)
        for array in arrays(instruction.shape)
        if array.memory == 0
    ]
    return tuple(sorted(found, key=lambda each: -each.n_bytes)[:most])


def _makes(module: Module, instruction: Instruction) -> bool:
    if instruction.opcode in _NOT_MADE or instruction.opcode.endswith("-start"):
        return False
    if instruction.opcode == "fusion":
        return not _updates(module.computations[instruction.called[0]])
    return instruction.opcode != _IN_PLACE


def _updates(fused: Computation) -> bool:
    """Whether a fusion's results are arrays that it was given, written to in part."""
    root = fused.root
    if root is None:
        return False
    results = [fused.instructions[name] for name in root.operands] if root.opcode == "tuple" else [root]
    return any(_source(fused, result).opcode == _IN_PLACE for result in results)


def _source(fused: Computation, result: Instruction) -> Instruction:
    while result.opcode in ("bitcast", "copy") and result.operands[0] in fused.instructions:
        result = fused.instructions[result.operands[0]]
    return result
