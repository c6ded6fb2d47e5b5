"""Of pipeline stages the slowest sets the pace: which that is, and of which quantities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from slicewise.derive import Derivation, Graph, Origins

if TYPE_CHECKING:
    from slicewise.planner.deployment import Deployment

TOTALS = frozenset(
    f"{phase}_{which}s"
    for phase in ("step", "prefill")
    for which in ("", "roofline_", "overlapped_", "serial_", "expected_", "low_", "high_", "bound_")
)
"""Times of a whole phase, each of the pipeline stage that is the slowest by it."""

PHASES = ("step_s", "prefill_s")
_UNITS = ("s", "1/s", "USD")
_KEPT = "resting on phases"


def is_paced(graph: Graph, name: str) -> bool:
    """Whether the slowest pipeline stage decides a quantity: a time, a rate, a price, or what rests on a phase."""
    formula = graph.formulas.get(name)
    return formula is not None and (formula.unit in _UNITS or name in _resting_on_phases(graph))


def _resting_on_phases(graph: Graph) -> frozenset[str]:
    """Quantities that rest on the time of a step or of a prefill. Found once a graph, which never changes."""
    kept: dict[str, frozenset[str]] = vars(graph)
    if _KEPT not in kept:
        kept[_KEPT] = frozenset(
            name for name in graph.formulas if any(graph.rests_on(name, phase, {}) for phase in PHASES)
        )
    return kept[_KEPT]


def slowest(stages: Sequence[Deployment], graph: Graph) -> Mapping[str, Deployment]:
    """The slowest pipeline stage by each of TOTALS, with one sequence a group."""
    ranks = stages[0].ranks
    assert ranks is not None, "only ranks have stages"
    lone = float(ranks.pp * ranks.dp)
    served = sorted(TOTALS & graph.formulas.keys())
    times = [stage.evaluate(served, batch=lone) for stage in stages]
    return {name: stages[int(np.argmax([float(each[name]) for each in times]))] for name in served}


def open_phases(given: Mapping[str, Any]) -> list[str]:
    """The phases whose time is not given, and does not rest on a batch that is not."""
    return [phase for phase in PHASES if phase not in given and (phase == "prefill_s" or "batch" in given)]


def explain_paced(deployment: Deployment, name: str, origins: Origins, **given: Any) -> Derivation:
    """Replay a quantity of a pipeline: each phase at the pace of its own slowest stage."""
    paced = deployment.paced_by(name)
    if name in TOTALS:
        return paced.explain(name, origins, **given)
    phases = {phase: deployment.paced_by(phase).explain(phase, **given) for phase in open_phases(given)}
    words = dict.fromkeys(phases, ("of the slowest pipeline stage", ""))
    values = {phase: derivation.value for phase, derivation in phases.items()}
    return resting_on(paced.explain(name, {**words, **origins}, **values, **given), phases)


def resting_on(node: Derivation, others: Mapping[str, Derivation]) -> Derivation:
    """A derivation whose inputs of these names are no bare numbers, but rest on derivations of their own, each once."""
    left = dict(others)

    def rested(each: Derivation) -> Derivation:
        if each.name in left and not each.seen and not each.parts:
            other = left.pop(each.name)
            return other if other.name == each.name else replace(each, parts=(other,))
        return replace(each, parts=tuple(map(rested, each.parts)))

    return rested(node)
