"""`verify`: a plan beside what the compiler makes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.flags import Quantity, positive
from slicewise.planner.question import Flags, Question, ask
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import Step, step_of
from slicewise.program.family import llama_of
from slicewise.spec.model import Model
from slicewise.verify.answer import answer
from slicewise.verify.job import Job, run, run_best
from slicewise.verify.max_batch import find_max_batch
from slicewise.verify.recipe import LOOP, WRITTEN_OUT
from slicewise.verify.toolchain import find_compiler
from slicewise.verify.verification import Verification

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
    if clock is not None and not estimate:
        raise InputError("--clock: only --estimate has a use for it; give both, or neither")
    place = _writable(hlo)
    question, deployment = _asked(model, flags)
    llama_of(deployment.model)
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
    most, outcome = find_max_batch(base, fresh=fresh) if max_batch else (None, None)
    if most and question.batch is None:
        base = replace(base, size=most.batch or most.tried[-1].batch)
        step = step_of(deployment, base.size)
    if estimate:
        outcome = run(base, place, fresh=fresh)
    elif place or not outcome or question.batch is not None:
        outcome = run_best(base, place, fresh=fresh)
    told = _chosen(flags, step, prefill=prefill, max_batch=max_batch)
    if place and outcome.reading.refusal:
        told.append(f"{place} was not written: the compiler made no program.")
    return answer(base, outcome, step, most, clock_hz, told)


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


def _chosen(flags: Mapping[str, Any], step: Step, *, prefill: bool, max_batch: bool) -> list[str]:
    told = []
    if flags.get("slice") is None:
        told.append("The slice is the smallest standard one on which the plan fits.")
    if flags.get("batch") is None and not prefill and not max_batch:
        most = "the most that the plan holds in what it grants itself" if step.fits else "one: the plan holds none"
        told.append(f"The batch is {most}.")
    return told


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
