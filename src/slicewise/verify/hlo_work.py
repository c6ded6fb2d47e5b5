"""What the compiler expects of a program's instructions: cycles, bytes that matmuls read from HBM, and prefetches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slicewise.verify.hlo import OTHER, Module, labels
from slicewise.verify.hlo_collectives import KINDS
from slicewise.verify.hlo_flops import instruction_flops
from slicewise.verify.hlo_text import CMEM, VMEM, Computation, Instruction, arrays, n_bytes

_SLICES = ("slice", "dynamic-slice")
_MOVES = ("bitcast", "copy", "reshape", "transpose", "get-tuple-element")
_HANDED_ON = ("bitcast", "get-tuple-element", "tuple", "opt-barrier")
_UNREAD = ("tuple", *KINDS)
_ANNOTATIONS = ("ConcatBitcast", "AssumeGatherIndicesInBound")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One instruction that the compiler expects to take time.

    Attributes:
        scope: its label.
        name: as XLA calls it.
        cycles: the compiler's estimate of one execution. [cycles]
        times: how often it runs. []
        hbm_bytes: bytes of operands that one execution reads from HBM, where it multiplies matrices; 0 where it does
            not, for an update in place names whole buffers that it does not read. [B]
    """

    scope: str
    name: str
    cycles: int
    times: int
    hbm_bytes: float


def work(module: Module, scope: Callable[[str], str]) -> tuple[Operation, ...]:
    """The instructions that carry an estimate of their cycles; those of XLA:CPU carry none.

    Args:
        module: the program.
        scope: gives the label of an op_name, and "other" where it has none.
    """
    label = labels(module, scope)
    return tuple(
        Operation(
            scope=label[name][instruction.name],
            name=instruction.name,
            cycles=cycles,
            times=times,
            hbm_bytes=float(_hbm_bytes(module, module.computations[name], instruction)),
        )
        for name, times in module.times.items()
        if not module.is_fused(name)
        for instruction in module.computations[name].instructions.values()
        if (cycles := instruction.cycles) is not None
    )


def prefetch_bytes(module: Module, scope: Callable[[str], str]) -> dict[str, float]:
    """Bytes that asynchronous copies and slices bring from HBM to VMEM or CMEM, over all executions, by label. [B]

    A copy counts for what first uses it, past updates in place: these write a part and read nothing. One that nothing
    uses is for the program's next run, and counts where that uses it.

    Args:
        module: the program.
        scope: gives the label of an op_name, and "other" where it has none.
    """
    label = labels(module, scope)
    total: dict[str, float] = {}
    for name, times in module.times.items():
        computation = module.computations[name]
        for done in computation.instructions.values():
            if _is_prefetch(computation, done):
                used = (label[name][user.name] for user in _readers(computation, done))
                where = next((each for each in used if each != OTHER), label[name][done.name])
                total[where] = total.get(where, 0.0) + float(n_bytes(done.shape) * times)
    return total


def _is_prefetch(computation: Computation, done: Instruction) -> bool:
    """Whether an instruction ends an asynchronous move from HBM to VMEM or CMEM."""
    kind = done.opcode.removesuffix("-done")
    unused = not done.root and done.name not in computation.users
    if kind == done.opcode or kind in KINDS or not done.operands or unused:
        return False
    started = computation.instructions.get(done.operands[0])
    source = computation.instructions.get(started.operands[0]) if started and started.operands else None
    spaces = [{array.memory for array in arrays(each.shape)} for each in (source, done) if each]
    return spaces in ([{0}, {VMEM}], [{0}, {CMEM}])


def _readers(computation: Computation, instruction: Instruction) -> list[Instruction]:
    """The instructions that use a value, past those that hand it on."""
    found: list[Instruction] = []
    for user in computation.users.get(instruction.name, ()):
        hands_on = user.opcode in _HANDED_ON or _is_update(user, instruction) or _is_annotation(user)
        found += _readers(computation, user) if hands_on else [user]
    return found


def _is_annotation(user: Instruction) -> bool:
    return user.opcode == "custom-call" and any(f'"{target}"' in user.attributes for target in _ANNOTATIONS)


def _is_update(user: Instruction, value: Instruction) -> bool:
    """Whether an instruction writes a part of a value in place."""
    return user.opcode == "dynamic-update-slice" and user.operands[0] == value.name


def _hbm_bytes(module: Module, computation: Computation, instruction: Instruction) -> int:
    """Bytes that a matmul, or a fusion with one, reads of operands in HBM."""
    if instruction.opcode != "fusion":
        multiplies, inside = instruction_flops(computation, instruction) > 0, None
    else:
        inside = module.computations[instruction.called[0]]
        multiplies = _multiplies(module, inside)
    if not multiplies:
        return 0
    total = 0
    for at, name in enumerate(instruction.operands):
        made = computation.instructions.get(name)
        if (
            not made
            or name in instruction.operands[:at]
            or any(not each.dims or each.memory for each in arrays(made.shape))
        ):
            continue
        total += _read(module, inside, inside.parameters[at])[0] if inside else n_bytes(made.shape)
    return total


def _multiplies(module: Module, computation: Computation) -> bool:
    """Whether a computation, or one that it calls, multiplies matrices."""
    return any(
        instruction_flops(computation, instruction)
        or any(_multiplies(module, module.computations[called]) for called in instruction.called)
        for instruction in computation.instructions.values()
    )


def _read(module: Module, computation: Computation, value: Instruction) -> tuple[int, bool]:
    """Bytes of a value that the computation reads, and whether the value is its result, or part of it, unread.

    Of a value that is only sliced, the slices are read.
    """
    whole = n_bytes(value.shape)
    read, leaves = 0, value.root
    for user in computation.users.get(value.name, ()):
        if user.opcode in _SLICES and user.operands[0] == value.name:
            read += n_bytes(user.shape)
        elif user.opcode in _UNREAD:
            leaves = leaves or user.root
        elif user.opcode in _MOVES or _is_update(user, value):
            more, passed = _read(module, computation, user)
            read, leaves = read + more, leaves or passed
        elif user.opcode == "fusion":
            inside = module.computations[user.called[0]]
            for at, name in enumerate(user.operands):
                if name == value.name:
                    more, passed = _read(module, inside, inside.parameters[at])
                    read += more
                    if passed:
                        more, passed = _read(module, computation, user)
                        read, leaves = read + more, leaves or passed
        else:
            read += whole
    return min(read, whole), leaves
