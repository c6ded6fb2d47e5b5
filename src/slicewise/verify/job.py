"""One program for one slice: compiled, or found in the store; and the form of it that the compiler serves best."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from slicewise.planner.deployment import Deployment
from slicewise.program.family import llama_of
from slicewise.program.lines import CACHE
from slicewise.units import show
from slicewise.verify.claims import Declared
from slicewise.verify.process import CompilerDiedError, compiled
from slicewise.verify.reading import Reading, from_dict
from slicewise.verify.recipe import LOOP, WRITTEN_OUT, Recipe
from slicewise.verify.store import key_of, load, save
from slicewise.verify.toolchain import Compiler

COPIES = 0.02
"""A loop whose temporaries are more than this share of its arguments holds copies of them."""

NOT_OF_THE_CACHE = ("embed", "mlp", "head")
"""Scopes whose arrays cannot be copies of the cache."""

DIED = "died"
"""A death is kept as an answer, unless it was the system that ran out of memory: next time it may not."""

FLAGS = ("LIBTPU_INIT_ARGS", "XLA_FLAGS")
"""Variables that change what a compiler makes of a program."""


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

    def recipe(self) -> Recipe:
        """The program, for the process that compiles it.

        Raises:
            InputError: the model is not of the family.
        """
        return Recipe(
            kind=self.kind,
            form=self.form,
            llama=llama_of(self.deployment.model),
            precision=self.deployment.precision,
            slice_name=self.deployment.slice.name,
            size=self.size,
            context=self.context,
            scaled=self.scaled,
            platform=self.compiler.platform,
            versions=self.compiler.versions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a job.

    Attributes:
        was_kept: the reading was found in the store.
        about_form: why it is this form, where both were tried.
    """

    declared: Declared
    reading: Reading
    was_kept: bool
    about_form: str = ""

    @property
    def needed_bytes(self) -> float:
        """What the compiler says that a device has to hold; infinite where it does not say. [B]"""
        refusal = self.reading.refusal
        return self.reading.total_bytes if refusal is None else refusal.needed_bytes or math.inf


def run(job: Job, hlo: Path | None = None, *, fresh: bool = False) -> Outcome:
    """Compile the program, or find what the compiler said of it earlier.

    Args:
        job: what to compile.
        hlo: where to save the compiled program's text; None for nowhere.
        fresh: compile even what was compiled before.

    Raises:
        InputError: the model is not of the family, the slice cannot be compiled for, or the file cannot be written.
        CompilerDiedError: the compiler did not survive it, or gave up.
    """
    recipe, devices = job.recipe(), job.deployment.slice.chip.devices_per_chip
    key = key_of([asdict(recipe), devices, [os.environ.get(name, "") for name in FLAGS]])
    kept = None if fresh or hlo else _kept(key)
    if kept is not None:
        return kept
    try:
        answer = compiled(recipe, _task(job), job.compiler.environment, hlo)
    except CompilerDiedError as died:
        if not died.may_live:
            save(key, {DIED: str(died)})
        raise
    save(key, answer)
    return Outcome(declared=Declared(**answer["declared"]), reading=from_dict(answer["reading"]), was_kept=False)


def run_best(job: Job, hlo: Path | None = None, *, fresh: bool = False) -> Outcome:
    """The program in the form that the compiler serves best: a loop, unless that costs copies.

    For some chips the compiler turns stacked weights round before a loop, or takes a layer's cache out of the stack, so
    that it holds them twice. Where the loop does so, is refused though what it declares would fit, or is too much for
    the compiler, the layers are written out, and the form that fits, or needs less, is taken. A prompt's are written
    out only where there is no loop: that takes minutes.

    Args:
        job: what to compile, as a loop.
        hlo: where to save the text; None for nowhere.
        fresh: compile even what was compiled before.

    Raises:
        InputError: as for `run`.
        CompilerDiedError: there is no form that the compiler survives and does not refuse.
    """
    loop: Outcome | None = None
    try:
        loop = run(job, hlo, fresh=fresh)
        why = _against(loop, job)
    except CompilerDiedError:
        if job.compiler.platform != "tpu":
            raise
        why = "as a loop they are too much for the compiler"
    if loop and not why:
        return loop
    try:
        other = replace(run(replace(job, form=WRITTEN_OUT), hlo, fresh=fresh), about_form=why)
    except CompilerDiedError:
        if loop is None or loop.reading.refusal:
            raise
        return replace(loop, about_form="written out they are too much for the compiler")
    if loop is None or (other.reading.fits, -other.needed_bytes) > (loop.reading.fits, -loop.needed_bytes):
        return other
    # The text that was saved is the other form's.
    return run(job, hlo, fresh=True) if hlo and loop.reading.fits and other.reading.fits else loop


def _against(loop: Outcome, job: Job) -> str:
    """What speaks against the loop; "" for nothing."""
    reading, chip = loop.reading, job.deployment.slice.chip
    if job.compiler.platform != "tpu":
        return ""
    if reading.refusal:
        would_fit = sum(loop.declared.line_bytes.values()) <= chip.usable_hbm_bytes
        return "as a loop the compiler refuses them" if would_fit else ""
    if job.kind == "prefill":
        return ""
    # Half a layer's cache is its keys, or its values.
    of_layer = loop.declared.line_bytes[CACHE] / chip.devices_per_chip / job.deployment.model.n_layers / 2
    copied = [each for each in reading.held if each.scope not in NOT_OF_THE_CACHE and each.n_bytes >= of_layer]
    if copied:
        return f"as a loop the program keeps an array of {show(copied[0].n_bytes, 'B')} beside its arguments"
    if reading.temporary_bytes > COPIES * reading.argument_bytes:
        return f"as a loop the program needs {show(reading.temporary_bytes, 'B')} beside its arguments"
    return ""


def _kept(key: str) -> Outcome | None:
    kept = load(key)
    if not isinstance(kept, dict):
        return None
    if DIED in kept:
        raise CompilerDiedError(str(kept[DIED]))
    try:
        return Outcome(declared=Declared(**kept["declared"]), reading=from_dict(kept["reading"]), was_kept=True)
    except (KeyError, TypeError):
        return None


def _task(job: Job) -> str:
    """What is being done, in so few words that a terminal of 80 columns shows them all."""
    size = f"{job.size:,} tokens" if job.kind == "prefill" else f"{job.size:,} × {job.context:,} tokens"
    form = "as a loop" if job.form == LOOP else "written out"
    return f"Compiling {job.kind} for {job.deployment.slice.name}, {size}, {form}"
