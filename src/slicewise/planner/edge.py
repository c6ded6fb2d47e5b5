"""The step at the largest small batch, below which the range of a larger one does not begin.

The range of large batches reaches farther down than that of small ones: without this, a larger batch would seem to be
able to take less time than a smaller one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from slicewise.derive import Derivation, Graph
from slicewise.spec.efficiency import SMALL

RANGE_END, SMALL_STEP = "step_low_s", "small_step_s"


def small_batch(graph: Graph, known: Mapping[str, Any]) -> Any:
    """The batch, or the largest small one where it is larger: 32 sequences of the chips that work together. []"""
    together = np.asarray(graph.evaluate(["group_batch"], known)["group_batch"], dtype=float)
    found = known["batch"] * np.minimum(1.0, SMALL / together)
    return found if found.ndim else float(found)


def small_step(graph: Graph, names: Collection[str], known: Mapping[str, Any]) -> dict[str, Any]:
    """The expected step of that batch, where one of the names asks for it. [s]"""
    if RANGE_END not in names or "batch" not in known:
        return {}
    small = {**known, "batch": small_batch(graph, known)}
    return {SMALL_STEP: graph.evaluate(["step_expected_s"], small)["step_expected_s"]}


def with_small_step(end: Derivation, small: Derivation) -> Derivation:
    """The derivation of the end of a range, with that of the step that it rests on."""
    parts = tuple(replace(small, name=SMALL_STEP) if part.name == SMALL_STEP else part for part in end.parts)
    return replace(end, parts=parts)
