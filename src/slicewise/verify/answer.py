"""What came of a job, beside what the plan says, as the answer of `verify`."""

from __future__ import annotations

from collections.abc import Sequence

from slicewise.catalog.load import measured_steps
from slicewise.planner.step import Step
from slicewise.program.lines import SCALES
from slicewise.spec.measured import MeasuredStep
from slicewise.verify.claims import decode_claims, prefill_claims
from slicewise.verify.estimate import Estimate, parts_of, scopes_of
from slicewise.verify.job import Job, Outcome
from slicewise.verify.reading import Reading
from slicewise.verify.recipe import LOOP, WRITTEN_OUT
from slicewise.verify.rows import compare
from slicewise.verify.verification import MaxBatch, Verification

PROGRAM = (
    "The program is that of the LLaMA family as it would run, every array of it declared; it multiplies in the compute"
    " dtype and adds up in float32. Norms, rotary embedding and SiLU are LLaMA's."
)
LAYERS = {
    LOOP: "The layers are a loop over stacked arrays, which compiles in seconds",
    WRITTEN_OUT: "The layers are written out one after the other",
}
OF_THE_CPU = (
    "Collectives, FLOPs and argument bytes are those of the same program for as many devices of the CPU, whose compiler"
    " pads nothing, and whose temporaries say nothing of a TPU's."
)
OF_THE_SCALES = (
    "Narrow weights have a float32 scale a column, narrow caches a bf16 scale a token and head: lines of their own,"
    " which --book leaves out."
)


def answer(
    job: Job, outcome: Outcome, step: Step, most: MaxBatch | None, clock_hz: float, told: Sequence[str]
) -> Verification:
    """The answer.

    Args:
        job: what was compiled.
        outcome: what came of it.
        step: the plan's step of the same size.
        most: the largest batch, where it was asked for.
        clock_hz: cycles a second; 0 where no estimate was asked for. [Hz]
        told: further sentences on what was assumed.
    """
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
        granted_bytes_per_chip=step.hbm_bytes / slice_.n_chips,
        compile_s=reading.compile_s,
        was_kept=outcome.was_kept,
        rows=compare(claims, reading, of_tpu=judged),
        max_batch=most,
        estimate=_estimate(job, reading, clock_hz) if clock_hz and reading.fits else None,
        assumptions=(*_assumptions(job, outcome), *told),
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


def _assumptions(job: Job, outcome: Outcome) -> tuple[str, ...]:
    deployment, reading, told = job.deployment, outcome.reading, [PROGRAM]
    told.append(": ".join(filter(None, (LAYERS[reading.form], outcome.about_form))) + ".")
    devices = deployment.slice.chip.devices_per_chip
    if devices > 1:
        told.append(f"To the compiler a chip is {devices} devices: the mesh counts them, the rows add those of a chip.")
    if reading.unknown_loops:
        told.append(f"{reading.unknown_loops} loops do not say how often they turn, and count once.")
    if job.compiler.platform != "tpu":
        why = job.compiler.why_not_tpu or "the CPU's compiler was asked for"
        told.append(f"No verdict of the TPU's compiler: {why}. {OF_THE_CPU}")
    if any(outcome.declared.line_bytes[line] for line in SCALES):
        told.append(OF_THE_SCALES)
    if job.kind == "decode" and not deployment.workload.context_is_set:
        told.append(f"The cache has room for {job.context:,} tokens a sequence, prompt plus output; all of it is read.")
    return tuple(told)
