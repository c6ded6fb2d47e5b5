"""The slice to take when none is named: the smallest standard one that fits."""

from __future__ import annotations

from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import Question


def fitting(question: Question) -> list[Deployment]:
    """The deployments, fewest chips first, on which the batch (one sequence when none is asked for) fits."""
    wanted = question.batch or 1
    found = [
        question.deployment(slice_, precision)
        for slice_ in question.slices
        for precision in question.precisions[:1]
        if question.layouts(slice_, precision)
    ]
    return sorted(
        (deployment for deployment in found if deployment.value("max_batch") >= wanted),
        key=lambda deployment: deployment.slice.n_chips,
    )


def default_deployment(question: Question, *, several: bool = False) -> Deployment:
    """The named slice (of several, the first with a legal layout); else the smallest that fits; else the largest.

    The ledger of one that does not fit says what breaks.

    Args:
        question: what was asked.
        several: the caller shows every slice and precision elsewhere, and takes the first here.

    Raises:
        InputError: several slices or precisions were named for an answer about one.
    """
    if not several:
        _one(question)
    laid_out = [slice_ for slice_ in question.slices if question.layouts(slice_)]
    if question.slice_is_given:
        return question.deployment(next(iter(laid_out), None))
    found = fitting(question)
    if found:
        return found[0]
    return question.deployment(max(laid_out, key=lambda slice_: slice_.n_chips))


def _one(question: Question) -> None:
    if question.slice_is_given and len(question.slices) > 1:
        names = ", ".join(slice_.name for slice_ in question.slices)
        raise InputError(f"--slice: this answers about one slice, not {names}; give one, or use plan or compare")
    if len(question.precisions) > 1:
        raise InputError("--weights, --kv, --compute: this answers about one dtype of each; give one, or use plan")
