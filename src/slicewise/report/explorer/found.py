"""The answer of a question, found once: which deployment is shown, at which batch, and what the others would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slicewise.planner.choose import choose
from slicewise.planner.deployment import Deployment
from slicewise.planner.flags import Flags
from slicewise.planner.option import Option, option_of
from slicewise.planner.plan import Rejected, comparable, search_all, why_chosen
from slicewise.planner.question import Question, ask, chosen_by
from slicewise.planner.search import Searched
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import Step, step_of
from slicewise.report.explorer.local import file_name, without_folders
from slicewise.spec.model import Model


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the explorer shows.

    Attributes:
        question: the question, read.
        words: its words, as they were given.
        called: the model, as the command line names it.
        searched: every candidate that a plan ranks.
        rejected: candidates that were refused.
        option: the plan to take; None where nothing is feasible.
        step: the decode step that is shown: the plan's, or that of what comes nearest.
    """

    question: Question
    words: Mapping[str, Any]
    called: str
    searched: tuple[Searched, ...]
    rejected: tuple[Rejected, ...]
    option: Option | None
    step: Step

    @property
    def deployment(self) -> Deployment:
        """The deployment that is shown."""
        return self.step.deployment

    @property
    def is_expected(self) -> bool:
        """Whether the times that decide are what is expected."""
        return self.deployment.conventions.view == "expected"

    @property
    def reason(self) -> str | None:
        """Why there is no answer; None where there is one."""
        if self.option is not None:
            return None
        if self.step.reason:
            return self.step.reason
        own = [item for item in self.rejected if item.slice == self.step.slice]
        return (own or list(self.rejected))[-1].detail

    @property
    def in_order(self) -> list[Searched]:
        """The feasible candidates, the best objective first."""
        live = [searched for searched in self.searched if searched.batches.size]
        return sorted(live, key=lambda searched: float(searched.score.min()))


def find(model: Model, words: Mapping[str, Any], *, called: str = "") -> Found:
    """Answer a question as `plan` does, and where nothing is feasible show what comes nearest.

    Args:
        model: the model.
        words: the question's words.
        called: how the command line names the model, where that is not its name.

    Raises:
        InputError: a word is off.
    """
    flags: Flags = {word: value for word, value in words.items() if word in Flags.__annotations__}  # type: ignore[assignment]
    question = ask(without_folders(model), chosen_by(flags))
    searched, rejected = search_all(question)
    ranked = comparable(question, searched, rejected)
    picked = choose(ranked)
    option = None
    if picked is not None:
        best, index = picked
        option = option_of(best.deployment, int(best.batches[index]), why_chosen(question))
    return Found(
        question=question,
        words=words,
        called=file_name(called) if called else model.name,
        searched=tuple(ranked),
        rejected=tuple(rejected),
        option=option,
        step=option.step if option else _nearest(question, searched),
    )


def _nearest(question: Question, searched: list[Searched]) -> Step:
    """The step of what comes nearest: where memory holds the batch it is a limit that breaks, and that is shown."""
    holding = [each.deployment for each in searched if each.deployment.value("max_batch") >= (question.batch or 1)]
    if holding:
        nearest = min(holding, key=lambda deployment: float(deployment.value("step_s", batch=question.batch or 1)))
        return step_of(nearest, question.batch or 1)
    largest = max((each.deployment for each in searched), key=lambda deployment: deployment.slice.n_chips, default=None)
    return step_of(largest or default_deployment(question), question.batch or 1)
