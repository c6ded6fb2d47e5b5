"""The slice to take when none is named: the smallest standard one that fits."""

from __future__ import annotations

from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import Question


def fitting(question: Question) -> list[Deployment]:
    """The deployments, fewest chips first, on which the batch (one sequence when none is asked for) fits."""
    wanted = question.batch or 1
    found = [
        question.deployment(slice_, precision) for slice_ in question.slices for precision in question.precisions[:1]
    ]
    return sorted(
        (deployment for deployment in found if deployment.value("max_batch") >= wanted),
        key=lambda deployment: deployment.slice.n_chips,
    )


def default_deployment(question: Question, *, several: bool = False) -> Deployment:
    """The named slice; else the smallest that fits; else the largest, whose ledger then says what breaks.

    Args:
        question: what was asked.
        several: the caller shows every slice and precision elsewhere, and takes the first here.

    Raises:
        InputError: several slices or precisions were named for an answer about one.
    """
    if not several:
        _one(question)
    if question.slice_is_given:
        return question.deployment()
    found = fitting(question)
    if found:
        return found[0]
    return question.deployment(max(question.slices, key=lambda slice_: slice_.n_chips))


def _one(question: Question) -> None:
    if question.slice_is_given and len(question.slices) > 1:
        names = ", ".join(slice_.name for slice_ in question.slices)
        raise InputError(f"--slice: this answers about one slice, not {names}; give one, or use plan or compare")
    if len(question.precisions) > 1:
        raise InputError("--weights, --kv, --compute: this answers about one dtype of each; give one, or use plan")
