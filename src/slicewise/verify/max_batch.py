"""The largest batch that compiles, found by compiling."""

from __future__ import annotations

import math
from dataclasses import replace

from slicewise.verify.job import Job, Outcome, run_best
from slicewise.verify.largest import largest
from slicewise.verify.recipe import LOOP
from slicewise.verify.verification import MaxBatch, Tried


def find_max_batch(base: Job, *, fresh: bool) -> tuple[MaxBatch, Outcome]:
    """The largest batch, and what came of it: whole rounds of the batch's shards, as a program has room for.

    Where not even one round fits, what came of that.

    Args:
        base: a decode step of any size.
        fresh: compile even what was compiled before.

    Raises:
        InputError: as for `run_best`.
    """
    deployment = base.deployment
    conventions = replace(deployment.conventions, memory_fraction=1.0, hbm_bytes_per_chip=None)
    full = deployment.with_(conventions=conventions)
    chip = deployment.slice.chip
    planned, shards = int(full.value("max_batch")), deployment.layout.batch_shards
    tried: list[Tried] = []
    outcomes: dict[int, Outcome] = {}

    def fits(rounds: int) -> bool:
        batch = rounds * shards
        if batch in outcomes:
            return outcomes[batch].reading.fits
        outcomes[batch] = run_best(replace(base, form=LOOP, size=batch), fresh=fresh)
        reading, needed = outcomes[batch].reading, outcomes[batch].needed_bytes * chip.devices_per_chip
        tried.append(
            Tried(
                batch=batch,
                form=reading.form,
                fits=reading.fits,
                needed_bytes_per_chip=needed if math.isfinite(needed) else None,
            )
        )
        return reading.fits

    guess = max(-(-planned // shards), 1)
    if not fits(guess):
        # What tiles fill up shows in the first refusal: the next guess takes it along.
        weights = float(full.value("weight_bytes")) / deployment.slice.n_chips
        needed = outcomes[guess * shards].needed_bytes * chip.devices_per_chip
        if math.isfinite(needed) and needed > weights:
            guess = max(int(guess * (chip.usable_hbm_bytes - weights) / (needed - weights)), 1)
    batch = largest(fits, guess) * shards
    return MaxBatch(batch=batch, plan_batch=planned, tried=tuple(tried)), outcomes[max(batch, shards)]
