"""Which batches of a deployment meet the limits, and what each costs: one candidate, searched exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slicewise.planner import feasible
from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import Verdict
from slicewise.planner.knee import MOST_SEQUENCES, largest_batch
from slicewise.planner.step import BOUND_WORDS, LEDGER, TERMS, bound
from slicewise.spec.workload import Limits
from slicewise.units import show

DENSE = 4096
"""Batches up to here are all tried; beyond, a geometric grid of as many, ends included."""

ROUNDING = 1e-10

Grid = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The batches of one deployment that meet the limits.

    Attributes:
        batches: feasible batches, ascending; empty where the verdict refuses. Shape (n,).
        step_s: step time at each. [s]
        score: the objective at each, the less the better.
        verdict: why nothing is feasible, or that something is.
    """

    deployment: Deployment
    batches: Grid
    step_s: Grid
    score: Grid
    verdict: Verdict

    @property
    def best(self) -> int:
        """Index of the best score; of equal ones, to rounding, the smallest batch."""
        return first_best(self.score)


def first_best(score: Grid) -> int:
    """Index of the first score that is the least to within rounding: plateaus are flat only to the last digits."""
    least = float(score.min())
    return int(np.argmax(score <= least + abs(least) * ROUNDING))


def search(deployment: Deployment, limits: Limits, objective: str, batch: int | None = None) -> Searched:
    """Every batch that fits and meets the limits, with its score.

    Args:
        deployment: what to search.
        limits: latency limits.
        objective: cost, latency or throughput.
        batch: the only batch to try; None for all.
    """
    ledger = deployment.evaluate(LEDGER, batch=batch or 1)
    verdict = feasible.memory_verdict(deployment, ledger, batch or 1)
    if verdict.fits:
        verdict = _ttft_verdict(deployment, limits)
    if not verdict.fits:
        return _none(deployment, verdict)
    most = min(int(ledger["max_batch"]), MOST_SEQUENCES)
    batches = np.array([float(batch)]) if batch else _batches(deployment, most)
    if limits.tpot_s is not None:
        kept = _within(deployment, batches, limits.tpot_s)
        if not kept.size and batches[0] > 1 and not batch:
            # Not even one round of the batch shards is quick enough: fewer sequences may be.
            kept = _within(deployment, np.arange(1.0, batches[0]), limits.tpot_s)
        batches = kept
    step_s = np.asarray(deployment.value("step_s", batch=batches), dtype=np.float64)
    if not batches.size:
        return _none(deployment, _tpot_verdict(deployment, limits.tpot_s or 0.0, batch or 1))
    return Searched(
        deployment=deployment,
        batches=batches,
        step_s=step_s,
        score=np.asarray(score(deployment, objective, batches), dtype=np.float64) + 0.0 * batches,
        verdict=verdict,
    )


def score(deployment: Deployment, objective: str, batches: Grid) -> Any:
    """The objective, the less the better.

    Cost is chip-seconds a request where no price is known, so that plans on one chip rank alike with and without one.
    With a context set outright only decode counts.
    """
    if objective == "latency":
        return deployment.value("step_s", batch=batches)
    if objective == "throughput":
        return -deployment.value("tokens_per_s_per_chip", batch=batches)
    name = "decode_s_per_request" if deployment.workload.context_is_set else "replica_s_per_request"
    price = deployment.price.usd_per_chip_hour if deployment.price else 1.0
    return deployment.value(name, batch=batches) * deployment.slice.n_chips * price


def round_of(deployment: Deployment) -> int:
    """Sequences of one round over the batch shards, where whole sequences count; else 1."""
    counted = deployment.conventions
    if deployment.ranks:
        return deployment.ranks.dp * deployment.ranks.pp if counted.split == "whole" else 1
    return deployment.layout.batch_shards if counted.split == "whole" and counted.kv_split == "batch" else 1


def _batches(deployment: Deployment, most: int) -> Grid:
    """Batches to try up to the largest that fits: whole rounds of the batch shards where whole sequences count."""
    shards = round_of(deployment)
    stride = shards if most >= shards else 1
    n_rounds = most // stride
    if n_rounds <= DENSE:
        rounds = np.arange(1.0, n_rounds + 1)
    else:
        rounds = np.unique(np.concatenate([np.arange(1.0, DENSE), np.geomspace(DENSE, n_rounds, DENSE).round()]))
    return rounds * stride


def _within(deployment: Deployment, batches: Grid, tpot_s: float) -> Grid:
    """The batches within the TPOT limit, with the exact last one where the grid is coarse."""
    good = np.asarray(deployment.value("step_s", batch=batches) <= tpot_s) & np.ones(batches.shape, dtype=bool)
    kept = batches[good]
    if batches.size <= DENSE or good.all() or not kept.size:
        return kept
    stride = batches[0]
    last = largest_batch(
        lambda rounds: np.asarray(deployment.value("step_s", batch=rounds * stride) <= tpot_s),
        int(batches[-1] / stride),
    )
    return np.unique(np.append(kept, (last or 0) * stride)) if last else kept


def _none(deployment: Deployment, verdict: Verdict) -> Searched:
    empty = np.empty(0)
    return Searched(deployment=deployment, batches=empty, step_s=empty, score=empty, verdict=verdict)


def _ttft_verdict(deployment: Deployment, limits: Limits) -> Verdict:
    if limits.ttft_s is None:
        return feasible.FITS
    prefill_s = float(deployment.value(deployment.ttft, batch=1.0))
    if prefill_s <= limits.ttft_s:
        return feasible.FITS
    prompt = deployment.workload.prompt_tokens
    detail = (
        f"{deployment.slice.name}: prefill of {prompt:,} tokens takes {show(prefill_s, 's')},"
        f" over the TTFT limit of {show(limits.ttft_s, 's')}"
    )
    return Verdict(reason=feasible.TTFT, detail=detail)


def _tpot_verdict(deployment: Deployment, tpot_s: float, batch: int) -> Verdict:
    timed: Mapping[str, Any] = deployment.evaluate([*TERMS, "step_s"], batch=batch)
    limit, load_s, name = show(tpot_s, "s"), float(timed["param_load_s"]), deployment.slice.name
    if load_s > tpot_s:
        detail = f"{name}: parameter loading alone takes {show(load_s, 's')}, over the TPOT limit of {limit}"
        return Verdict(reason=feasible.PARAM_LOAD, detail=detail)
    view = deployment.conventions.view
    if view == "expected":
        part = f"no engine betters {show(float(deployment.value('step_overlapped_s', batch=batch)), 's')}"
    else:
        term = bound(timed, view)
        part = f"{show(float(timed[f'{term}_s']), 's')} of it for {BOUND_WORDS[term]}"
    step = f"{name}: a step at batch {batch} takes {show(float(timed['step_s']), 's')}"
    detail = f"{step}, over the TPOT limit of {limit}; {part}"
    return Verdict(reason=feasible.TPOT, detail=detail)
