"""One way to serve: a decode step with its prefill, its cost by phase and why it is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slicewise.planner.deployment import Deployment
from slicewise.planner.figures import Figures, as_dict, figures, shows_expected
from slicewise.planner.record import record
from slicewise.planner.step import Step, step_of


@dataclass(frozen=True, kw_only=True)
class Option:
    """A step, and what a request meets there. USD values are None where no price is known.

    Attributes:
        ttft_s: prefill of one prompt, unqueued. [s]
        tpot_s: the decode step. [s]
        tpot_shared_s: mean time a token where prefills run in between on the same chips. [s]
        replica_s_per_request: a replica's time that one request takes. [s]
        figures: bound, expected value and range of what a request meets; None under the book's conventions.
        why: what the option is named for.
    """

    step: Step
    ttft_s: float
    tpot_s: float
    prefill_s: float
    tpot_shared_s: float
    replica_s_per_request: float
    requests_per_s_shared: float
    request_usd: float | None
    usd_per_million_input_tokens: float | None
    usd_per_million_tokens: float | None
    figures: Mapping[str, Figures] | None
    why: str

    def to_dict(self) -> dict[str, Any]:
        """The step's JSON object with the request's numbers."""
        own = record(self, without=("step", "figures"))
        found = None if self.figures is None else as_dict({**(self.step.figures or {}), **self.figures})
        return {**self.step.to_dict(), **own, "figures": found}


def option_of(deployment: Deployment, batch: int, why: str = "") -> Option:
    """The option of a deployment at a batch that fits."""
    step = step_of(deployment, batch)
    assert step.step_s is not None, "an option is of a batch that fits"
    names = ["prefill_s", "tpot_shared_s", "replica_s_per_request", "requests_per_s_shared"]
    priced = ["request_usd", "usd_per_million_input_tokens", "usd_per_million_tokens"]
    values = deployment.evaluate([*names, deployment.ttft, *(priced if deployment.price else [])], batch=batch)
    found: dict[str, Any] = {name: float(value) for name, value in values.items()}
    if deployment.workload.context_is_set:
        # With a context set outright only decode is priced.
        found = {name: value for name, value in found.items() if name not in priced}
    return Option(
        step=step,
        ttft_s=found[deployment.ttft],
        tpot_s=step.step_s,
        **{name: found[name] for name in names},
        request_usd=found.get("request_usd"),
        usd_per_million_input_tokens=found.get("usd_per_million_input_tokens"),
        usd_per_million_tokens=found.get("usd_per_million_tokens"),
        figures=_figures(deployment, batch, [name for name in found if name in priced]),
        why=why,
    )


def _figures(deployment: Deployment, batch: int, priced: list[str]) -> dict[str, Figures] | None:
    if not shows_expected(deployment):
        return None
    found = figures(
        deployment, [deployment.ttft, "prefill_s", "tpot_shared_s", "requests_per_s_shared", *priced], batch
    )
    # A number is called by one name, whether or not groups serve prompts side by side.
    return {"ttft_s": found[deployment.ttft], **found}
