"""Latency against throughput over the batch, for one slice and one or more contexts; and steps on whole grids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner.choose import pareto
from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import memory_verdict
from slicewise.planner.figures import (
    ENDS,
    FigureColumns,
    end_of,
    explain_end,
    figure_columns,
    shows_expected,
)
from slicewise.planner.knee import MOST_SEQUENCES, largest_batch
from slicewise.planner.question import Flags, Question, ask, listed
from slicewise.planner.search import round_of
from slicewise.planner.slices import default_deployment, fitting
from slicewise.planner.step import LEDGER, TERMS
from slicewise.spec.model import Model
from slicewise.spec.topology import Slice
from slicewise.units import plain

COLUMNS = (
    "context_tokens",
    "batch",
    "step_s",
    "tokens_per_s_per_chip",
    "param_load_s",
    "kv_load_s",
    "matmul_s",
    "ici_s",
)
PRICE_COLUMN = "usd_per_million_output_tokens"
"""A further column where a price is known."""
TOLD = ("step_s", "tokens_per_s_per_chip", PRICE_COLUMN)
"""What is told three times of each row; the price where one is known."""
EXPECTED_COLUMNS = ("step_expected_s", "step_low_s", "step_high_s")
"""What is expected of each step, and the range that holds 8 of 10 measurements; not under the book's conventions."""
MOST_POINTS = 4096
"""Batches up to here are all rows; beyond, a geometric grid of as many, ends included."""


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """The answer of `frontier`.

    Attributes:
        columns: equal columns, one row for a context and a batch; base units.
        figures: bound, expected value and range of step, rate and price, in columns of the same rows; None under the
            book's conventions.
        max_batch: largest batch by context; 0 where nothing fits.
        reasons: why a context does not fit, by context.
        deployment: of the first context that fits, else of the first.
        deployments: of each context.
    """

    model: str
    slice: str
    columns: Mapping[str, list[float]]
    figures: FigureColumns | None
    max_batch: Mapping[float, int]
    reasons: Mapping[float, str]
    critical_batch: float
    deployment: Deployment
    deployments: tuple[Deployment, ...]

    @property
    def fits(self) -> bool:
        """Whether any context fits."""
        return bool(self.columns["batch"])

    def whole_rounds(self) -> dict[str, list[float]]:
        """The columns at batches that fill every batch shard, with one sequence and the most that fit.

        Batches in between leave chips idle: they are no slower than the next full round and do less.
        """
        shards, ends = round_of(self.deployment), {1.0, *map(float, self.max_batch.values())}
        kept = [i for i, batch in enumerate(self.columns["batch"]) if batch % shards == 0 or batch in ends]
        return {name: [column[i] for i in kept] for name, column in self.columns.items()}

    def table(self) -> dict[str, Sequence[float]]:
        """All columns of the rows, those of the figures too, named by their path: `figures.step_s.low`."""
        told = self.figures or {}
        return {
            **self.columns,
            **{f"figures.{name}.{end}": column for name, ends in told.items() for end, column in ends.items()},
        }

    def within(self, tpot_s: float) -> dict[float, int]:
        """The largest batch of each context whose step keeps a limit; 0 where none does."""
        found = {}
        for deployment in self.deployments:
            most = self.max_batch[deployment.workload.context_tokens]
            keeps = largest_batch(lambda b, d=deployment: np.asarray(d.value("step_s", batch=b) <= tpot_s), most)  # type: ignore[misc]
            found[deployment.workload.context_tokens] = most if keeps is None else keeps
        return found

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: column arrays, and what is the same for all rows."""
        return {
            **{name: [plain(value) for value in column] for name, column in self.columns.items()},
            "figures": None if self.figures is None else _plain(self.figures),
            "model": self.model,
            "slice": self.slice,
            "fits": self.fits,
            "max_batch": {str(plain(context)): most for context, most in self.max_batch.items()},
            "critical_batch": self.critical_batch,
            "reasons": {str(plain(context)): reason for context, reason in self.reasons.items()},
        }

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number at the largest batch of the first context; of its step when none is named.

        Args:
            name: the number. `step_s:low` is an end of its range, beside `:bound`, `:expected` and `:high`.

        Raises:
            InputError: nothing fits.
            UnknownNameError: no such number.
        """
        if not self.fits:
            raise InputError("nothing fits, so there is no point to explain; take a larger slice or a shorter context")
        most = next(most for most in self.max_batch.values() if most)
        quantity, end = end_of(name)
        if end:
            return explain_end(self.deployment, quantity, end, most)
        return self.deployment.explain(name or "step_s", batch=most)


def frontier(model: str | Path | Model, **flags: Unpack[Flags]) -> Frontier:
    """Every batch that fits on a slice, for each context.

    Without `slice`, the smallest standard slice on which every context fits.

    Args:
        model: as for `plan`.
        flags: as for `plan`; `context` may be a list of lengths. [tokens]

    Raises:
        InputError: a word is off.
    """
    wanted: list[Any] = list(dict.fromkeys(listed(flags.get("context")))) or [None]
    questions = [ask(model, {**flags, "context": context}) for context in wanted]
    chosen = _slice_for(questions)
    deployments = [question.deployment(chosen) for question in questions]
    batches, reasons = zip(*[_batches(deployment) for deployment in deployments], strict=True)
    tables = [_table(deployment, grid) for deployment, grid in zip(deployments, batches, strict=True)]
    shown = next((d for d, grid in zip(deployments, batches, strict=True) if grid.size), deployments[0])
    contexts = [deployment.workload.context_tokens for deployment in deployments]
    names = (*COLUMNS, *_priced(shown), "on_frontier", *(EXPECTED_COLUMNS if shows_expected(shown) else ()))
    columns = {name: np.concatenate([table[name] for table in tables]).tolist() for name in names}
    return Frontier(
        model=shown.model.name,
        slice=shown.slice.name,
        columns=columns,
        figures=_figures(deployments, batches) if shows_expected(shown) else None,
        max_batch={c: int(grid[-1]) if grid.size else 0 for c, grid in zip(contexts, batches, strict=True)},
        reasons={c: reason for c, reason in zip(contexts, reasons, strict=True) if reason},
        critical_batch=float(shown.value("critical_batch")),
        deployment=shown,
        deployments=tuple(deployments),
    )


def _slice_for(questions: Sequence[Question]) -> Slice:
    """The named slice; else the smallest on which every context fits; else that of the context that needs most."""
    first = default_deployment(questions[0]).slice
    if questions[0].slice_is_given:
        return first
    fits = [[deployment.slice.name for deployment in fitting(question)] for question in questions]
    common = [name for name in fits[0] if all(name in names for names in fits)]
    if common:
        return next(slice_ for slice_ in questions[0].slices if slice_.name == common[0])
    return max((default_deployment(question) for question in questions), key=lambda d: d.slice.n_chips).slice


def _batches(deployment: Deployment) -> tuple[NDArray[np.float64], str]:
    """Every batch that fits, thinned beyond some thousands; and why none does."""
    ledger = deployment.evaluate(LEDGER, batch=1)
    verdict = memory_verdict(deployment, ledger, 1)
    most = min(int(ledger["max_batch"]), MOST_SEQUENCES) if verdict.fits else 0
    grid = np.arange(1.0, most + 1) if most <= MOST_POINTS else np.unique(np.geomspace(1, most, MOST_POINTS).round())
    return grid, verdict.detail


def _table(deployment: Deployment, batch: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    told = EXPECTED_COLUMNS if shows_expected(deployment) else ()
    values = deployment.evaluate([*COLUMNS[2:], *_priced(deployment), *told], batch=batch)
    table: dict[str, NDArray[Any]] = {name: np.asarray(value) + 0.0 * batch for name, value in values.items()}
    table |= {"context_tokens": deployment.workload.context_tokens + 0.0 * batch, "batch": batch}
    table["on_frontier"] = pareto(table["step_s"], table["tokens_per_s_per_chip"])
    return table


def _priced(deployment: Deployment) -> tuple[str, ...]:
    return (PRICE_COLUMN,) if deployment.price else ()


def _figures(
    deployments: Sequence[Deployment], batches: Sequence[NDArray[np.float64]]
) -> dict[str, dict[str, list[float]]]:
    """The columns of the figures, a context after the other."""
    names = [name for name in TOLD if name != PRICE_COLUMN or deployments[0].price]
    tables = [figure_columns(deployment, names, batch) for deployment, batch in zip(deployments, batches, strict=True)]
    return {
        name: {end: np.concatenate([table[name][end] for table in tables]).tolist() for end in ENDS} for name in names
    }


def _plain(told: FigureColumns) -> dict[str, dict[str, list[Any]]]:
    return {
        name: {end: [plain(value) for value in column] for end, column in ends.items()} for name, ends in told.items()
    }


PER_SLICE = (
    "n_chips",
    "hbm_bytes_per_s",
    "flops_per_s",
    "kv_head_shards",
    "kv_batch_shards",
    "all_gather_bytes_per_s",
    "all_gather_latency_s",
    "all_to_all_bytes_per_s",
    "all_to_all_latency_s",
)


def step_grid(
    deployments: Sequence[Deployment], batch: Any, context: Any, names: Iterable[str] = (*TERMS, "step_s")
) -> dict[str, Any]:
    """Steps on a grid of batch × context × slice, by the same formulas as one point.

    Args:
        deployments: one model and precision, cut evenly, on several slices of one network kind. Length k.
        batch: sequences. Shape (n,).
        context: tokens held by each sequence. Shape (m,).
        names: quantities to compute.

    Returns:
        Arrays that broadcast to shape (n, m, k).
    """
    first = deployments[0]
    figures = [name for name, value in first.expectation.inputs.items() if isinstance(value, float)]
    names_per_slice = [*PER_SLICE, *figures]
    stacked = {name: np.array([float(d.value(name)) for d in deployments]) for name in names_per_slice}
    graph = max(deployments, key=lambda deployment: deployment.slice.n_chips).graph
    grid = {
        **first.inputs,
        **stacked,
        "batch": np.asarray(batch, dtype=np.float64)[:, None, None],
        "context_tokens": np.asarray(context, dtype=np.float64)[None, :, None],
    }
    return graph.evaluate(names, grid)
