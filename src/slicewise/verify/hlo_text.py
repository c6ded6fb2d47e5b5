"""The text of a compiled XLA program, line by line: arrays, instructions and computations as they are printed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

VMEM = 1
"""Memory space of a TPU's vector memory, `S(1)` in a layout. What says no space lies in HBM, which is 0."""

CMEM = 3
"""Memory space of what v4 has between the two, and fetches to ahead of use; other generations have none."""

_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\](?:\{([^}]*)\})?")
_BITS = re.compile(r"[a-z]+(\d+)")
_SPACE = re.compile(r"S\((\d+)\)")
_ELEMENT = re.compile(r"E\((\d+)\)")
_COMPUTATION = re.compile(r"(ENTRY\s+)?%?([\w.\-]+)\s.*\{$")
_NAMED = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r" ([a-z][\w\-]*)\(")
_PARENTHESIS = re.compile(r"[()]")
_OPERAND = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|true_computation|false_computation|branch_computations|called_computations)="
    r"(\{[^}]*\}|%[\w.\-]+)"
)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')


@dataclass(frozen=True, slots=True)
class Array:
    """One array of a shape.

    Attributes:
        dtype: as XLA writes it: bf16, s8, f8e4m3fn, pred ...
        dims: its dimensions, without padding.
        memory: its memory space: 0 for HBM, 1 for VMEM, 3 for CMEM, others for scalars and semaphores.
        bits: bits of one element, as the layout or else the dtype says.
    """

    dtype: str
    dims: tuple[int, ...]
    memory: int
    bits: int

    @property
    def n_bytes(self) -> int:
        """Bytes without padding. [B]"""
        return -(-math.prod(self.dims) * self.bits // 8)


@lru_cache(maxsize=1 << 16)
def arrays(shape: str) -> tuple[Array, ...]:
    """The arrays of a shape's text, those of nested tuples in order."""
    return tuple(_array(*found.groups("")) for found in _ARRAY.finditer(shape))


def n_bytes(shape: str) -> int:
    """Bytes of all arrays of a shape's text, without padding. [B]"""
    return sum(array.n_bytes for array in arrays(shape))


def _array(dtype: str, dims: str, layout: str) -> Array:
    bits = _ELEMENT.search(layout) or _BITS.match(dtype)
    space = _SPACE.search(layout)
    return Array(
        dtype=dtype,
        dims=tuple(int(dim.strip(" <=?")) for dim in dims.split(",") if dim.strip(" <=?")),
        memory=int(space[1]) if space else 0,
        bits=int(bits[1]) if bits else 8 * (dtype == "pred"),
    )


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of a computation.

    Attributes:
        name: unique in its computation.
        opcode: `fusion`, `all-gather-start` ...; any is kept.
        shape: text of the result's shape, with layouts.
        operands: names of the instructions whose results it takes.
        literal: value of a constant, number of a parameter; "" otherwise.
        attributes: all that follows the operands, metadata and backend_config included.
        called: names of the computations that it calls.
        root: whether its result is the computation's.
    """

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...]
    literal: str
    attributes: str
    called: tuple[str, ...]
    root: bool

    @property
    def op_name(self) -> str:
        """Where in the traced program it comes from: name scopes and the primitive; "" where XLA does not say."""
        found = _OP_NAME.search(self.attributes)
        return found[1] if found else ""

    @property
    def cycles(self) -> int | None:
        """The compiler's estimate of one execution; None where there is none. [cycles]"""
        found = _CYCLES.search(self.attributes)
        return int(found[1]) if found else None


@dataclass(frozen=True)
class Computation:
    """Instructions by name, in the order in which they are printed: a schedule, definitions before uses."""

    name: str
    instructions: Mapping[str, Instruction]

    @cached_property
    def users(self) -> Mapping[str, tuple[Instruction, ...]]:
        """The instructions that take each instruction's result, in order; none where there is no entry."""
        users: dict[str, list[Instruction]] = {}
        for instruction in self.instructions.values():
            for operand in dict.fromkeys(instruction.operands):
                users.setdefault(operand, []).append(instruction)
        return {name: tuple(using) for name, using in users.items()}

    @cached_property
    def parameters(self) -> Mapping[int, Instruction]:
        """Its parameters by number."""
        return {int(each.literal): each for each in self.instructions.values() if each.opcode == "parameter"}

    @property
    def root(self) -> Instruction | None:
        """The instruction whose result is the computation's; None where none is marked."""
        return next((each for each in self.instructions.values() if each.root), None)


def read(text: str) -> tuple[dict[str, Computation], str]:
    """The computations of a module's text by name, in the order of the text, and the name of the entry computation."""
    computations: dict[str, Computation] = {}
    instructions: dict[str, Instruction] = {}
    entry = ""
    for line in text.split("\n"):
        if line.startswith(" "):
            instruction = _instruction(line)
            if instruction:
                instructions[instruction.name] = instruction
        elif line.endswith("{") and (found := _COMPUTATION.match(line)):
            instructions = {}
            computations[found[2]] = Computation(found[2], instructions)
            entry = found[2] if found[1] else entry
    return computations, entry


def _instruction(line: str) -> Instruction | None:
    named = _NAMED.match(line)
    opcode = _OPCODE.search(line, named.end() - 1) if named else None
    if not named or not opcode:
        return None
    end = _end_of_operands(line, opcode.end())
    inside, attributes = line[opcode.end() : end], line[end + 3 :]
    own = opcode[1] in ("constant", "parameter")
    return Instruction(
        name=named[2],
        opcode=opcode[1],
        shape=line[named.end() : opcode.start()],
        operands=() if own else tuple(_OPERAND.findall(inside)),
        literal=inside if own else "",
        attributes=attributes,
        called=_called(attributes),
        root=bool(named[1]),
    )


def _end_of_operands(line: str, start: int) -> int:
    """Where the parenthesis closes that opens before start."""
    end = line.find(")", start)
    if "(" not in line[start:end]:
        return end
    depth = 1
    for found in _PARENTHESIS.finditer(line, start):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.start()
    return len(line)


def _called(attributes: str) -> tuple[str, ...]:
    if "=%" not in attributes and "={%" not in attributes:
        return ()
    config = attributes.find(", backend_config=")
    found = _CALLED.findall(attributes, 0, config if config >= 0 else len(attributes))
    return tuple(name for names in found for name in _OPERAND.findall(names))
