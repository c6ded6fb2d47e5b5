"""The collectives of a compiled program: what each moves, between which devices, and how often."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slicewise.verify.hlo import Module
from slicewise.verify.hlo_text import Array, Computation, Instruction, arrays, n_bytes

KINDS = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute")
"""The collectives that are counted, as XLA calls them."""

Groups = tuple[tuple[int, ...], ...]

_STARTED = {f"{kind}{end}": kind for kind in KINDS for end in ("", "-start")}
_LISTS = re.compile(r"\b(?:replica_groups|source_target_pairs)=\{((?:\{[\d,]*\},?)*)\}")
_LIST = re.compile(r"\{([\d,]+)\}")
_IOTA = re.compile(r"\breplica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(
    r"\breplica_groups=mesh\[([^\]]*)\](?:, device_ids=\((?:\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))\))? \{([^}]*)\}"
)
_AXIS = re.compile(r"'([^']*)'=(\d+)")
_PART = re.compile(r"'([^']*)'(?::\((\d+)\)(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective of a program.

    Attributes:
        kind: one of KINDS.
        dtype: of the array below. XLA:CPU reduces bf16 as f32.
        shape: dimensions of the largest array: the one gathered, reduced or exchanged.
        n_bytes: bytes of the whole array, without padding. AllGather: its output. AllReduce and ReduceScatter: the
            input. AllToAll: what the devices of a group hold together. A permute: the array. [B]
        group_size: devices that take part in one; 2 for a permute.
        groups: the devices of each group; source and target of each pair of a permute.
        times: how often it runs. []
        op_name: its own, or that of what makes its operand: XLA leaves it out where it rewrites a collective.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...]
    n_bytes: int
    group_size: int
    groups: Groups
    times: int
    op_name: str


def collectives(module: Module) -> tuple[Collective, ...]:
    """The collectives that a program runs, those inside fusions included.

    A pair of -start and -done is one. So is one that XLA:TPU starts, carries on and ends in fusions of their own, each
    with a copy of it. A fusion of an AllReduce and the slice that each device keeps is a ReduceScatter; where the two
    are apart it is what it says, an AllReduce.
    """
    return tuple(
        _collective(module, computation, instruction, kind)
        for computation in map(module.computations.__getitem__, module.times)
        for instruction in computation.instructions.values()
        if (kind := _STARTED.get(instruction.opcode))
        and not _is_wrapped(module, instruction, kind)
        and not _is_carried_on(computation, instruction)
    )


def replica_groups(attributes: str, n_devices: int) -> Groups:
    """The groups of devices that an instruction's attributes name, in any of XLA's three notations.

    All devices are one group where the attributes name none.

    >>> replica_groups("replica_groups=[2,4]<=[4,2]T(1,0)", 8)
    ((0, 2, 4, 6), (1, 3, 5, 7))
    """
    listed = _LISTS.search(attributes)
    if listed and listed[1]:
        return tuple(tuple(_ints(each)) for each in _LIST.findall(listed[1]))
    iota = _IOTA.search(attributes)
    if iota:
        return _rows(_iota(iota[2], iota[3]).reshape(_ints(iota[1])))
    mesh = _MESH.search(attributes)
    if mesh:
        axes, dims, permutation, ids, parts = mesh.groups("")
        flat = np.asarray(_ints(ids)) if ids else _iota(dims, permutation) if dims else None
        return _mesh_groups(_AXIS.findall(axes), _PART.findall(parts), flat)
    return (tuple(range(n_devices)),)


def _ints(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


def _iota(dims: str, permutation: str | None) -> NDArray[np.int_]:
    """Numbers from 0, laid out in dims, transposed and flattened."""
    sizes = _ints(dims)
    return np.arange(math.prod(sizes)).reshape(sizes).transpose(_ints(permutation or "") or range(len(sizes))).ravel()


def _rows(table: NDArray[np.int_]) -> Groups:
    return tuple(tuple(int(each) for each in row) for row in table)


def _mesh_groups(
    axes: list[tuple[str, str]], parts: list[tuple[str, str, str]], devices: NDArray[np.int_] | None
) -> Groups:
    """Groups along axes of a mesh, or along parts of axes: `'x':(2)4` is 4 of x's devices, below a part of 2."""
    sizes: list[int] = []
    cut: dict[str, int] = {}
    for axis, size in axes:
        before, among = next(
            ((int(before or 1), int(among or size)) for name, before, among in parts if name == axis), (int(size), 1)
        )
        cut[axis] = len(sizes) + 1
        sizes += [before, among, int(size) // (before * among)]
    inside = [cut[name] for name, _, _ in parts]
    table = (np.arange(math.prod(sizes)) if devices is None else devices).reshape(sizes)
    outside = [dim for dim in range(len(sizes)) if dim not in inside]
    return _rows(table.transpose(outside + inside).reshape(-1, math.prod(sizes[dim] for dim in inside)))


def _is_wrapped(module: Module, instruction: Instruction, kind: str) -> bool:
    """Whether the instruction only starts a computation that holds the collective itself."""
    return any(
        inner.opcode == kind
        for called in instruction.called
        if called in module.times
        for inner in module.computations[called].instructions.values()
    )


def _is_carried_on(computation: Computation, instruction: Instruction) -> bool:
    """Whether a collective that another fusion started goes on or ends here."""
    return "async_collective_fusion_config" in instruction.attributes and not any(
        '"AsyncCollectiveStart"' in user.attributes for user in computation.users.get(instruction.name, ())
    )


def _collective(module: Module, computation: Computation, instruction: Instruction, kind: str) -> Collective:
    groups = replica_groups(instruction.attributes, module.n_devices)
    size = max(len(group) for group in groups)
    operands = [array for made in _operands(computation, instruction) for array in arrays(made.shape)]
    if kind == "collective-permute":
        operands = operands[:1]
    largest = _largest(list(arrays(instruction.shape)) if kind == "all-gather" else operands)
    return Collective(
        kind="reduce-scatter" if kind == "all-reduce" and _is_scattered(module, computation, instruction) else kind,
        dtype=largest.dtype,
        shape=largest.dims,
        n_bytes=sum(array.n_bytes for array in operands) * (size if kind in ("all-gather", "all-to-all") else 1),
        group_size=size,
        groups=groups,
        times=module.times[computation.name],
        op_name=_op_name(module, computation, instruction),
    )


def _largest(found: list[Array]) -> Array:
    return max(found, key=lambda array: array.n_bytes, default=Array("", (), 0, 0))


def _is_scattered(module: Module, computation: Computation, instruction: Instruction) -> bool:
    """Whether an AllReduce is in a fusion that keeps a slice of it only."""
    root = computation.root
    while root and root.opcode == "bitcast":
        root = computation.instructions.get(root.operands[0])
    if not module.is_fused(computation.name) or not root or root.opcode != "dynamic-slice":
        return False
    sliced = computation.instructions.get(root.operands[0])
    while sliced and sliced.opcode == "bitcast":
        sliced = computation.instructions.get(sliced.operands[0])
    return sliced is instruction


def _op_name(module: Module, computation: Computation, instruction: Instruction) -> str:
    """The first op_name on the way from an instruction out of its fusion, and on to what makes its largest operand.

    Of equal operands the last counts: the first is the buffer where an array is written into another.
    """
    made: Instruction | None = instruction
    while made:
        if made.op_name:
            return made.op_name
        if module.is_fused(computation.name):
            computation, made = module.callers[computation.name]
        else:
            made = max(reversed(_operands(computation, made)), key=lambda each: n_bytes(each.shape), default=None)
    return ""


def _operands(computation: Computation, instruction: Instruction) -> list[Instruction]:
    return [made for name in instruction.operands if (made := computation.instructions.get(name))]
