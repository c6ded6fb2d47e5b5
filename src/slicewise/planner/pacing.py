"""Of pipeline stages the slowest sets the pace: which that is, and of which quantities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from slicewise.derive import Graph

if TYPE_CHECKING:
    from slicewise.planner.deployment import Deployment

TOTALS = frozenset(
    f"{phase}_{which}s"
    for phase in ("step", "prefill")
    for which in ("", "roofline_", "overlapped_", "serial_", "expected_", "low_", "high_", "bound_")
)
"""Times of a whole phase, each of the pipeline stage that is the slowest by it."""

_UNITS = ("s", "1/s", "USD")


def is_time(graph: Graph, name: str) -> bool:
    """Whether the slowest pipeline stage decides a quantity: a time, a rate or a price."""
    formula = graph.formulas.get(name)
    return formula is not None and formula.unit in _UNITS


def slowest(stages: Sequence[Deployment], graph: Graph) -> Mapping[str, Deployment]:
    """The slowest pipeline stage by each of TOTALS, with one sequence a group."""
    ranks = stages[0].ranks
    assert ranks is not None, "only ranks have stages"
    lone = float(ranks.pp * ranks.dp)
    served = sorted(TOTALS & graph.formulas.keys())
    times = [stage.evaluate(served, batch=lone) for stage in stages]
    return {name: stages[int(np.argmax([float(each[name]) for each in times]))] for name in served}
