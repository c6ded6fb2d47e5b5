"""`verify`: a plan beside what the compiler makes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from slicewise.catalog.load import measured_steps
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.flags import Quantity, positive
from slicewise.planner.question import Flags, Question, ask
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import Step, step_of
from slicewise.spec.measured import MeasuredStep
from slicewise.spec.model import Model
from slicewise.verify.claims import decode_claims, prefill_claims
from slicewise.verify.estimate import Estimate, parts_of, scopes_of
from slicewise.verify.job import LOOP, WRITTEN_OUT, Job, Outcome, run, run_best
from slicewise.verify.largest import largest
from slicewise.verify.reading import Reading
from slicewise.verify.rows import compare
from slicewise.verify.toolchain import find_compiler
from slicewise.verify.verification import MaxBatch, Tried, Verification

PROGRAM = (
    "The program is that of the LLaMA family as it would run, every array of it declared; it multiplies in the compute"
    " dtype and adds up in float32. Norms, rotary embedding and SiLU are LLaMA's."
)
LAYERS = {
    LOOP: "The layers are a loop over stacked arrays, which compiles in seconds.",
    WRITTEN_OUT: "The layers are written out one after the other.",
}
OF_THE_CPU = (
    "Collectives, FLOPs and argument bytes are those of the same program for as many devices of the CPU, whose compiler"
    " pads nothing, and whose temporaries say nothing of a TPU's."
)
SCALES = (
    "Narrow weights have a float32 scale a column, narrow caches a bf16 scale a token and head: lines of their own,"
    " which --book leaves out."
)
NARROW = ("int8", "fp8", "int4")
NO_REFUSAL = "--max-batch: only the TPU's compiler refuses what is too large"
NOT_HERE = ("tp", "pp", "dp", "ep", "engine", "reserve", "kv_split")
"""Words of the planner that say how else a model may be laid out: the program knows one way."""


def verify(
    model: str | Path | Model,
    *,
    prefill: bool = False,
    estimate: bool = False,
    max_batch: bool = False,
    compiler: str | None = None,
    hlo: str | Path | None = None,
    fresh: bool = False,
    clock: Quantity | None = None,
    **flags: Unpack[Flags],
) -> Verification:
    """Compile the decode step of a plan, or its prefill, and compare.

    Without `slice`, the smallest standard slice that fits; without `batch`, the most sequences that the plan holds.

    Args:
        model: of the LLaMA family.
        prefill: compile the prefill of one prompt instead.
        estimate: add up the compiler's estimates, for which the layers are written out.
        max_batch: find the largest batch that compiles.
        compiler: tpu or cpu; the TPU's where it can be had, when None.
        hlo: where to save the compiled program's text.
        fresh: compile even what was compiled before.
        clock: cycles a second of the chip's core, for the estimate; the catalog's when None.
        flags: the words of `slicewise step`.

    Raises:
        InputError: a word is off, jax is not installed, or the model or the slice cannot be compiled.
    """
    _checked(flags, prefill=prefill, estimate=estimate, max_batch=max_batch)
    place = _writable(hlo)
    question, deployment = _asked(model, flags)
    slice_ = deployment.slice
    clock_hz = _clock(deployment, clock) if estimate else 0.0
    found = find_compiler(compiler, slice_.n_chips * slice_.chip.devices_per_chip)
    if (estimate or max_batch) and found.platform != "tpu":
        what = "--estimate: only the TPU's compiler estimates cycles" if estimate else NO_REFUSAL
        raise InputError(f"{what}; {found.why_not_tpu or 'leave --compiler out'}")
    step = step_of(deployment, question.batch)
    base = Job(
        deployment=deployment,
        kind="prefill" if prefill else "decode",
        form=WRITTEN_OUT if estimate else LOOP,
        size=deployment.workload.prompt_tokens if prefill else step.batch,
        scaled=not deployment.conventions.book,
        compiler=found,
    )
    most, outcome = _max_batch(base, fresh=fresh) if max_batch else (None, None)
    if most and question.batch is None:
        base = replace(base, size=most.batch or most.tried[-1].batch)
        step = step_of(deployment, base.size)
    if estimate:
        outcome = run(base, place, fresh=fresh)
    elif place or not outcome or question.batch is not None:
        outcome = run_best(base, step.total_bytes_per_chip, place, fresh=fresh)
    return _verified(base, outcome, step, most, clock_hz, place)


def planned(model: str | Path | Model, **words: Any) -> Step:
    """The plan's step that `verify` would compile, without compiling it.

    Args:
        model: of any family.
        words: those of `verify`; what is only the compiler's is left aside.

    Raises:
        InputError: a word is off, or the slice is not one of TPUs.
    """
    flags: Flags = {name: value for name, value in words.items() if name in Flags.__annotations__}  # type: ignore[assignment]
    question, deployment = _asked(model, flags)
    return step_of(deployment, question.batch)


def _asked(model: str | Path | Model, flags: Flags) -> tuple[Question, Deployment]:
    question = ask(model, flags)
    deployment = _at_capacity(default_deployment(question))
    if deployment.slice.chip.is_gpu:
        name = deployment.slice.name
        raise InputError(f"--slice {name}: verify compiles for TPU slices; `slicewise step` plans this one")
    return question, deployment


def _checked(flags: Mapping[str, Any], *, prefill: bool, estimate: bool, max_batch: bool) -> None:
    given = [name for name in NOT_HERE if flags.get(name) is not None]
    if given:
        flag = given[0].replace("_", "-")
        raise InputError(f"--{flag}: the compiled program cuts every matrix evenly over the slice; leave it out")
    if prefill and (estimate or max_batch):
        raise InputError("--prefill goes with neither --estimate nor --max-batch, which are of the decode step")
    if prefill and flags.get("batch") is not None:
        raise InputError("--batch: --prefill compiles one prompt; leave --batch out")


def _writable(hlo: str | Path | None) -> Path | None:
    """The place for the text, found out before half a minute of compiling."""
    if hlo is None:
        return None
    place = Path(hlo)
    if place.is_dir() or not os.access(place if place.exists() else place.parent, os.W_OK):
        raise InputError(f"--hlo {place}: cannot be written; give another place")
    return place


def _at_capacity(deployment: Deployment) -> Deployment:
    """The deployment timed at the context that its cache has room for: a compiled step reads all of it."""
    workload = deployment.workload
    return deployment.with_(workload=replace(workload, context_tokens=workload.capacity_context_tokens))


def _clock(deployment: Deployment, given: Quantity | None) -> float:
    asked = positive(given, "Hz", "--clock")
    known = asked or deployment.slice.chip.clock_hz
    if known is None:
        raise InputError(
            f"--estimate: the clock of {deployment.slice.chip.name} is not known here; give --clock, such as 1.75GHz"
        )
    return known


def _max_batch(base: Job, *, fresh: bool) -> tuple[MaxBatch, Outcome]:
    """The largest batch, and what came of it: whole rounds of the batch's shards, as a program has room for.

    Where not even one round fits, what came of that.
    """
    deployment = base.deployment
    full = deployment.with_(conventions=replace(deployment.conventions, memory_fraction=1.0))
    planned, shards = int(full.value("max_batch")), deployment.layout.batch_shards
    tried: list[Tried] = []
    outcomes: dict[int, Outcome] = {}

    def fits(rounds: int) -> bool:
        batch = rounds * shards
        planned_bytes = float(full.value("total_bytes_per_chip", batch=batch))
        outcomes[batch] = run_best(replace(base, form=LOOP, size=batch), planned_bytes, fresh=fresh)
        reading = outcomes[batch].reading
        devices = deployment.slice.chip.devices_per_chip
        needed = reading.total_bytes if reading.fits else reading.refusal and reading.refusal.needed_bytes
        tried.append(
            Tried(
                batch=batch,
                fits=reading.fits,
                needed_bytes_per_chip=needed * devices if needed else None,
            )
        )
        return reading.fits

    batch = largest(fits, -(-planned // shards)) * shards
    return MaxBatch(batch=batch, plan_batch=planned, tried=tuple(tried)), outcomes[max(batch, shards)]


def _verified(
    job: Job, outcome: Outcome, step: Step, most: MaxBatch | None, clock_hz: float, hlo: Path | None
) -> Verification:
    deployment, reading = job.deployment, outcome.reading
    slice_, chip = deployment.slice, deployment.slice.chip
    if job.kind == "prefill":
        claims = prefill_claims(deployment, outcome.declared)
    else:
        claims = decode_claims(deployment, outcome.declared, job.size)
    judged = job.compiler.platform == "tpu"
    refused = reading.refusal
    available = (
        refused.available_bytes * chip.devices_per_chip
        if refused and refused.available_bytes
        else chip.usable_hbm_bytes
    )
    needed = refused.needed_bytes if refused else reading.total_bytes
    fits = reading.fits if judged else step.fits
    return Verification(
        model=step.model,
        slice=slice_.name,
        n_chips=slice_.n_chips,
        program=job.kind,
        form=reading.form,
        batch=1 if job.kind == "prefill" else job.size,
        context_tokens=job.size if job.kind == "prefill" else job.context,
        weight_dtype=step.weight_dtype,
        kv_dtype=step.kv_dtype,
        compute_dtype=step.compute_dtype,
        kv_head_shards=outcome.declared.head_shards,
        kv_batch_shards=outcome.declared.batch_shards,
        fits=fits,
        plan_fits=step.fits,
        reason=None if fits else (refused.message if refused else step.reason),
        available_bytes_per_chip=available,
        needed_bytes_per_chip=None if needed is None else needed * chip.devices_per_chip,
        compiler=job.compiler.versions,
        judged=judged,
        compile_s=reading.compile_s,
        was_kept=outcome.was_kept,
        rows=compare(claims, reading, of_tpu=judged),
        max_batch=most,
        estimate=_estimate(job, reading, clock_hz) if clock_hz and reading.fits else None,
        assumptions=_assumptions(job, reading, hlo),
        step=step,
        reading=reading,
    )


def _estimate(job: Job, reading: Reading, clock_hz: float) -> Estimate:
    deployment = job.deployment
    names = ("step_roofline_s", "step_overlapped_s", "ici_s")
    timed = {name: float(value) for name, value in deployment.evaluate(names, batch=job.size).items()}
    published = _published(job)
    chip = deployment.slice.chip
    return Estimate(
        parts=parts_of(reading, clock_hz, chip.hbm_bytes_per_s / chip.devices_per_chip, timed["ici_s"]),
        scopes=scopes_of(reading, clock_hz),
        roofline_s=timed["step_roofline_s"],
        overlapped_s=timed["step_overlapped_s"],
        measured_s=published.step_s if published else None,
        measured_where=published.provenance.document if published else "",
        largest=tuple((each, each.cycles * each.count / clock_hz) for each in reading.largest),
        clock_hz=clock_hz,
    )


def _published(job: Job) -> MeasuredStep | None:
    """The published measurement of the very step, if there is one."""
    deployment = job.deployment
    same = (
        deployment.model.name,
        deployment.slice.name,
        deployment.precision.weights,
        deployment.precision.kv,
        job.size,
        job.context,
    )
    return next(
        (
            each
            for each in measured_steps()
            if (each.model, each.slice, each.weights, each.kv, each.batch, each.context_tokens) == same
        ),
        None,
    )


def _assumptions(job: Job, reading: Reading, hlo: Path | None) -> tuple[str, ...]:
    deployment, told = job.deployment, [PROGRAM, LAYERS[reading.form]]
    if job.compiler.platform != "tpu":
        why = job.compiler.why_not_tpu or "the CPU's compiler was asked for"
        told.append(f"No verdict of the TPU's compiler: {why}. {OF_THE_CPU}")
    if job.scaled and {deployment.precision.weights, deployment.precision.kv} & set(NARROW):
        told.append(SCALES)
    if job.kind == "decode" and not deployment.workload.context_is_set:
        told.append(f"The cache has room for {job.context:,} tokens a sequence, prompt plus output; all of it is read.")
    if hlo and reading.refusal:
        told.append(f"{hlo} was not written: the compiler made no program.")
    return tuple(told)
