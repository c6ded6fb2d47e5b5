"""The largest batch that compiles, found by compiling."""

from __future__ import annotations

from dataclasses import replace

from slicewise.verify.job import LOOP, Job, Outcome, run_best
from slicewise.verify.largest import largest
from slicewise.verify.verification import MaxBatch, Tried


def find_max_batch(base: Job, *, fresh: bool) -> tuple[MaxBatch, Outcome]:
    """The largest batch, and what came of it: whole rounds of the batch's shards, as a program has room for.

    Where not even one round fits, what came of that.

    Args:
        base: a decode step of any size.
        fresh: compile even what was compiled before.
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
