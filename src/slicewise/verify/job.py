"""One program for one slice: declared, compiled or found in the store, and read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.verify.claims import Declared
from slicewise.verify.quiet import at_work
from slicewise.verify.reading import Reading, from_dict
from slicewise.verify.store import key_of, load, save
from slicewise.verify.toolchain import Compiler

LOOP, WRITTEN_OUT = "loop", "written out"
"""The program's forms: layers as a loop, which compiles in seconds, or one after the other, which is faster."""

COPIES = 0.02
"""A loop whose temporaries are more than this share of its arguments holds copies of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to compile.

    Attributes:
        deployment: the model on a slice, at a precision.
        kind: decode or prefill.
        form: LOOP or WRITTEN_OUT.
        size: sequences of a decode step, or tokens of a prompt.
        scaled: narrow arrays have scales.
        compiler: which compiler.
    """

    deployment: Deployment
    kind: str
    form: str
    size: int
    scaled: bool
    compiler: Compiler

    @property
    def context(self) -> int:
        """Tokens that each sequence of the decode step may hold."""
        return math.ceil(self.deployment.workload.capacity_context_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a job.

    Attributes:
        was_kept: the reading was found in the store.
    """

    declared: Declared
    reading: Reading
    was_kept: bool


def run(job: Job, hlo: Path | None = None, *, fresh: bool = False) -> Outcome:
    """Compile the program, or find what the compiler said of it earlier.

    Args:
        job: what to compile.
        hlo: where to save the compiled program's text; None for nowhere.
        fresh: compile even what was compiled before.

    Raises:
        InputError: the model is not of the family, the slice cannot be compiled for, or the file cannot be written.
    """
    # jax is an extra, and slow to load: only now is it sure to be there, and told what to be.
    from slicewise.program.arrays import LINES, WEIGHTS  # noqa: PLC0415
    from slicewise.program.attention import PROMPT_BLOCK  # noqa: PLC0415
    from slicewise.verify.compiler import compile_and_read  # noqa: PLC0415

    slice_ = job.deployment.slice
    with at_work(f"Describing {slice_.name} to the compiler"):
        program = _program(job)
    mesh: Mapping[str, int] = program.mesh.shape
    devices = slice_.chip.devices_per_chip
    line_bytes, vector_bytes = dict.fromkeys(LINES, 0.0), 0.0
    for array in program.arrays():
        size = devices * array.bytes_per_device(mesh)
        line_bytes[array.line] += size
        vector_bytes += size if array.line == WEIGHTS and array.is_vector else 0.0
    declared = Declared(
        line_bytes=line_bytes,
        vector_bytes=vector_bytes,
        sequences=-(-job.size // mesh["z"]) * mesh["z"] if job.kind == "decode" else 1,
        head_shards=mesh["y"],
        batch_shards=mesh["z"],
        block_queries=PROMPT_BLOCK,
    )
    arrays = [(array.shape, array.axes, array.dtype) for array in program.arrays()]
    key = key_of(
        [job.kind, job.form, slice_.name, dict(mesh), arrays, job.deployment.precision.compute, job.compiler.versions]
    )
    kept = None if fresh or hlo else _kept(key)
    if kept is not None:
        return Outcome(declared=declared, reading=kept, was_kept=True)
    with at_work(f"Compiling {job.kind} for {slice_.name}, {_size(job)}, layers {_in_words(job.form)}"):
        reading, text = compile_and_read(program, job.form, job.compiler.versions)
    save(key, reading.to_dict())
    if hlo and reading.fits:
        _write(hlo, text)
    return Outcome(declared=declared, reading=reading, was_kept=False)


def run_best(job: Job, plan_bytes: float, hlo: Path | None = None, *, fresh: bool = False) -> Outcome:
    """The program in the form that the compiler serves best: a loop, unless that costs copies.

    For some chips the compiler turns stacked weights round before a loop, so that it needs their bytes twice. Where the
    loop needs much beside its arguments, or is refused though the plan's bytes would fit, the layers are written out.

    Args:
        job: what to compile, as a loop.
        plan_bytes: what the plan counts on a chip. [B]
        hlo: where to save the text; None for nowhere.
        fresh: compile even what was compiled before.

    Raises:
        InputError: as for `run`.
    """
    outcome = run(job, hlo, fresh=fresh)
    reading = outcome.reading
    if job.kind == "prefill" or job.compiler.platform != "tpu":
        return outcome
    copies = reading.temporary_bytes > COPIES * reading.argument_bytes
    room = job.deployment.slice.chip.usable_hbm_bytes
    if (reading.fits and not copies) or (not reading.fits and plan_bytes > room):
        return outcome
    other = run(replace(job, form=WRITTEN_OUT), hlo, fresh=fresh)
    serves = other.reading.fits and not (reading.fits and reading.total_bytes <= other.reading.total_bytes)
    if serves:
        return other
    # Only a file has the other form's text by now.
    return run(job, hlo) if hlo else outcome


def _program(job: Job) -> Any:
    from slicewise.program.build import decode_program, prefill_program  # noqa: PLC0415
    from slicewise.program.family import llama_of  # noqa: PLC0415
    from slicewise.verify.devices import cpu_devices, mesh_of, tpu_devices  # noqa: PLC0415

    deployment = job.deployment
    llama = llama_of(deployment.model)
    devices = (tpu_devices if job.compiler.platform == "tpu" else cpu_devices)(deployment.slice)
    mesh = mesh_of(deployment.slice, devices, llama.n_kv_heads)
    loop = job.form == LOOP
    if job.kind == "prefill":
        return prefill_program(llama, deployment.precision, mesh, prompt_tokens=job.size, scaled=job.scaled, loop=loop)
    return decode_program(
        llama, deployment.precision, mesh, batch=job.size, context=job.context, scaled=job.scaled, loop=loop
    )


def _kept(key: str) -> Reading | None:
    found = load(key)
    try:
        return None if found is None else from_dict(found)
    except (KeyError, TypeError):
        return None


def _size(job: Job) -> str:
    if job.kind == "prefill":
        return f"a prompt of {job.size:,} tokens"
    return f"{job.size:,} sequences of {job.context:,} tokens"


def _in_words(form: str) -> str:
    return "as a loop" if form == LOOP else "written out, which takes a while"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--hlo {path}: cannot be written ({error.strerror}); give another place") from None
