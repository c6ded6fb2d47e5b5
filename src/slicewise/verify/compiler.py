"""Compiles a program and reads what comes back."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import jax

from slicewise.errors import InputError
from slicewise.program.arrays import Array
from slicewise.program.build import Program
from slicewise.program.decode import SCOPES
from slicewise.verify.hlo import Module, parse, scope_of
from slicewise.verify.hlo_arguments import argument_bytes, filled_sides
from slicewise.verify.hlo_buffers import buffers
from slicewise.verify.hlo_collectives import Collective, collectives
from slicewise.verify.hlo_flops import flops
from slicewise.verify.hlo_work import Operation as Work
from slicewise.verify.hlo_work import prefetch_bytes, work
from slicewise.verify.reading import Exchange, Operation, Reading
from slicewise.verify.refusals import refusal

N_LARGEST, N_BUFFERS = 12, 4


class GaveUpError(InputError):
    """The compiler fails for another reason than the program's size."""


def compile_and_read(program: Program, form: str, compiler: str) -> tuple[Reading, str]:
    """What the compiler says of a program, and the text that it made; "" where the program is too large.

    Args:
        program: for the devices of its mesh.
        form: loop, or written out.
        compiler: its name, for the reading.

    Raises:
        GaveUpError: the compiler fails for another reason than size; the message has its first line.
    """
    start = time.monotonic()
    try:
        compiled = program.lower().compile()
    except jax.errors.JaxRuntimeError as error:
        refused = refusal(str(error))
        if refused is None:
            first = str(error).strip().partition("\n")[0][:200]
            raise GaveUpError(
                f"the compiler gave up on {program.name} ({first}), which is no verdict on the plan"
            ) from None
        seconds = time.monotonic() - start
        return Reading(program=program.name, form=form, compiler=compiler, compile_s=seconds, refusal=refused), ""
    seconds = time.monotonic() - start
    text = compiled.as_text()
    return _read(program, form, compiler, seconds, compiled.memory_analysis(), text), text


def _read(program: Program, form: str, compiler: str, seconds: float, memory: Any, text: str) -> Reading:
    module, scope = parse(text), partial(scope_of, scopes=SCOPES)
    operations = _operations(work(module, scope), module)
    return Reading(
        program=program.name,
        form=form,
        compiler=compiler,
        compile_s=seconds,
        line_bytes=_by_line(argument_bytes(module), program.arrays()),
        filled=_filled(module, program.arrays()),
        argument_bytes=float(memory.argument_size_in_bytes),
        temporary_bytes=float(memory.temp_size_in_bytes),
        result_bytes=float(memory.output_size_in_bytes - memory.alias_size_in_bytes),
        peak_bytes=float(memory.peak_memory_in_bytes),
        held=buffers(module, scope, N_BUFFERS),
        unknown_loops=len(module.unknown_trip_count),
        exchanges=_exchanges(collectives(module), scope, dict(program.mesh.shape)),
        flops=flops(module, scope),
        cycles=_cycles(operations),
        streamed=tuple(each for each in operations if each.streamed_bytes),
        fetched_bytes=prefetch_bytes(module, scope),
        largest=tuple(sorted(operations, key=lambda each: -each.cycles * each.count)[:N_LARGEST]),
    )


def _by_line(by_number: Mapping[int, float], arrays: list[Array]) -> dict[str, float]:
    found: dict[str, float] = {}
    for number, array in enumerate(arrays):
        found[array.line] = found.get(array.line, 0.0) + by_number.get(number, 0.0)
    return found


def _filled(module: Module, arrays: list[Array]) -> dict[str, str]:
    """By line, what tiles fill up in that argument to which they add most."""
    most: dict[str, float] = {}
    found: dict[str, str] = {}
    sizes, filled = argument_bytes(module), filled_sides(module)
    for number, array in enumerate(arrays):
        sides = filled.get(number)
        share = math.prod(size / full for size, full in sides) if sides else 1.0
        added = sizes.get(number, 0.0) * (1 - share)
        if added > most.get(array.line, 0.0):
            most[array.line] = added
            found[array.line] = ", ".join(f"{size:,} to {full:,}" for size, full in sides or ())
    return found


def _exchanges(
    found: tuple[Collective, ...], scope: Callable[[str], str], mesh: Mapping[str, int]
) -> tuple[Exchange, ...]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for each in found:
        if each.group_size == 1:  # the CPU's compiler keeps collectives that have nobody to talk to
            continue
        axis = _axis(each, mesh)
        counts[each.kind, axis, scope(each.op_name), each.dtype, float(each.n_bytes)] += each.times
    return tuple(
        Exchange(kind=kind, axis=axis, scope=where, dtype=dtype, n_bytes=n_bytes, count=count)
        for (kind, axis, where, dtype, n_bytes), count in counts.items()
    )


def _axis(each: Collective, mesh: Mapping[str, int]) -> str:
    """The mesh axes of a group: devices are numbered along z first, so neighbours share a y."""
    heads, batch = mesh["y"], mesh["z"]
    if each.group_size == heads * batch:
        return " × ".join(name for name, size in (("y", heads), ("z", batch)) if size > 1)
    group = sorted(each.groups[0])
    return "z" if batch > 1 and group[1] - group[0] == 1 else "y"


def _operations(found: Iterable[Work], module: Module) -> tuple[Operation, ...]:
    """The operations that take time, those that are alike counted together."""
    op_names = {
        instruction.name: instruction.op_name
        for name in module.times
        for instruction in module.computations[name].instructions.values()
    }
    counts: Counter[tuple[str, str, float, float]] = Counter()
    for each in found:
        what = "/".join(op_names.get(each.name, "").split("/")[-2:])
        counts[each.scope, what, float(each.cycles), each.hbm_bytes] += each.times
    return tuple(
        Operation(scope=where, what=what, cycles=cycles, count=count, streamed_bytes=n_bytes)
        for (where, what, cycles, n_bytes), count in counts.items()
    )


def _cycles(operations: Iterable[Operation]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in operations:
        found[each.scope] = found.get(each.scope, 0.0) + each.cycles * each.count
    return found
