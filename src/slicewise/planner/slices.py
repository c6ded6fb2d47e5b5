"""The slice to take when none is named: the smallest standard one that fits."""

from __future__ import annotations

from slicewise.planner.deployment import Deployment
from slicewise.planner.question import Question


def fitting(question: Question, batch: int | None = None) -> list[Deployment]:
    """The deployments, fewest chips first, on which a batch (one sequence when none is given) fits."""
    wanted = batch or question.batch or 1
    found = [
        question.deployment(slice_, precision) for slice_ in question.slices for precision in question.precisions[:1]
    ]
    return sorted(
        (deployment for deployment in found if deployment.value("max_batch") >= wanted),
        key=lambda deployment: deployment.slice.n_chips,
    )


def default_deployment(question: Question) -> Deployment:
    """The named slice; else the smallest that fits; else the largest, whose ledger then says what breaks."""
    if question.slice_is_given:
        return question.deployment()
    found = fitting(question)
    if found:
        return found[0]
    return question.deployment(max(question.slices, key=lambda slice_: slice_.n_chips))
