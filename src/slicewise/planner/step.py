"""One decode step on one slice: the ledger, the terms, what binds, throughput and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from slicewise.derive import Derivation
from slicewise.planner.assumptions import assumptions
from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import Verdict, memory_verdict, refuse_times
from slicewise.planner.figures import (
    TERM,
    Figures,
    as_dict,
    end_of,
    expected_terms,
    explain_end,
    explain_term,
    figures,
    shows_expected,
)
from slicewise.planner.knee import explain_knee, knee_batch
from slicewise.planner.ledger import LEDGER_LINE, ledger_lines, line_of
from slicewise.planner.question import Flags, ask
from slicewise.planner.record import record
from slicewise.planner.slices import default_deployment
from slicewise.spec.model import Model
from slicewise.units import plain

LEDGER = (
    "n_params",
    "n_active_params",
    "weight_bytes",
    "kv_bytes_per_token",
    "kv_bytes_per_sequence",
    "kv_bytes",
    "kv_head_shards",
    "kv_batch_shards",
    "kv_replication",
    "activation_bytes",
    "total_bytes",
    "total_bytes_per_chip",
    "hbm_bytes",
    "free_bytes",
    "max_batch",
    "critical_batch",
)
EXPERTS = ("experts_touched", "tokens_per_expert", "expert_tokens_per_chip", "fullest_expert_tokens_per_chip")
"""How a batch meets a mixture's experts; the last two where whole experts are spread over chips."""
GROWTH = ("kv_growth_bytes_per_token", "kv_state_bytes", "kv_copies")
"""How a sequence's bytes grow, where layers keep different things."""
TERMS = ("param_load_s", "kv_load_s", "matmul_s", "attention_flops_s", "ici_s")
BOUND_WORDS = {
    "param_load": "loading parameters",
    "kv_load": "loading the KV cache",
    "matmul": "matmul FLOPs",
    "attention_flops": "attention FLOPs",
    "ici": "the network between chips",
}
"""What binds, in words."""
TIMES = (*TERMS, "step_roofline_s", "step_overlapped_s", "step_serial_s", "step_s")
OTHER_NAMES = {"tpot_s": "step_s", "expected_step_s": "step_expected_s"}
EXPECTED = ("step_expected_s", "step_low_s", "step_high_s")
RATES = ("tokens_per_s", "tokens_per_s_per_chip", "requests_per_s_per_chip")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A decode step. Fields are those of the JSON, in base units; bytes are of the whole slice unless per chip.

    Times are bounds, and None where the batch does not fit.

    Attributes:
        layout: the ranks, such as "tp 8 × ep 8"; "" for weights cut evenly over the whole slice.
        kv_bytes_per_token: of one sequence over all layers, while no window is full. [B]
        kv_growth_bytes_per_token: what one more token adds at this context; None where every layer keeps alike. [B]
        kv_state_bytes: what a sequence keeps whatever its length; None where every layer keeps alike. [B]
        kv_copies: copies of a sequence's cache that ranks hold together; None where every layer keeps alike.
        experts_touched: of a layer's experts, those that the batch is expected to touch; None without experts.
        tokens_per_expert: tokens that an expert sees on average; None without experts.
        expert_tokens_per_chip: the same of a chip's experts; None where experts are not spread over chips.
        fullest_expert_tokens_per_chip: the same of the busiest chip, routed evenly at random.
        step_expected_s: as the engine that was measured is expected to run it; None under the book's conventions. [s]
        step_low_s: lower end of the range that holds 8 of 10 measurements. [s]
        step_high_s: upper end. [s]
        expected_terms: what the expected step is made of. [s]
        figures: bound, expected value and range of the step, its rates and its price.
        bound: the largest term of the bound, in the view that decides.
        expected_engine: whose times are expected; None under the book's conventions.
        is_calibrated: whether the chip itself was measured.
    """

    model: str
    slice: str
    n_chips: int
    layout: str
    batch: int
    context_tokens: float
    capacity_context_tokens: float
    weight_dtype: str
    kv_dtype: str
    compute_dtype: str
    n_params: float
    n_active_params: float
    weight_bytes: float
    kv_bytes_per_token: float
    kv_bytes_per_sequence: float
    kv_growth_bytes_per_token: float | None
    kv_state_bytes: float | None
    kv_copies: float | None
    kv_bytes: float
    kv_head_shards: int
    kv_batch_shards: int
    kv_replication: float
    activation_bytes: float
    total_bytes: float
    total_bytes_per_chip: float
    hbm_bytes: float
    free_bytes: float
    fits: bool
    reason: str | None
    max_batch: int
    critical_batch: float
    knee_batch: int | None
    experts_touched: float | None
    tokens_per_expert: float | None
    expert_tokens_per_chip: float | None
    fullest_expert_tokens_per_chip: float | None
    param_load_s: float | None
    kv_load_s: float | None
    matmul_s: float | None
    attention_flops_s: float | None
    ici_s: float | None
    step_roofline_s: float | None
    step_overlapped_s: float | None
    step_serial_s: float | None
    step_s: float | None
    step_expected_s: float | None
    step_low_s: float | None
    step_high_s: float | None
    expected_terms: Mapping[str, float] | None
    figures: Mapping[str, Figures] | None
    view: str
    bound: str | None
    tokens_per_s: float | None
    tokens_per_s_per_chip: float | None
    requests_per_s_per_chip: float | None
    usd_per_hour: float | None
    usd_per_million_output_tokens: float | None
    price: str | None
    expected_engine: str | None
    is_calibrated: bool | None
    assumptions: tuple[str, ...]
    deployment: Deployment

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        own = record(self, without=("deployment", "figures"))
        return {**own, "figures": None if self.figures is None else as_dict(self.figures)}

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number; of the step time when none is named.

        Args:
            name: the number. `tokens_per_s:low` is an end of its range, beside `:bound`, `:expected` and `:high`;
                `ledger:logits` is a line of a chip's memory, `term:expected_ici_s` a term of the expected step.

        Raises:
            InputError: a time, a rate or a price of what does not fit.
            UnknownNameError: no such number.
        """
        if name.startswith(TERM) and self.expected_terms is not None:
            return explain_term(self.deployment, name.removeprefix(TERM), self.batch)
        if name.startswith(LEDGER_LINE):
            line, most = line_of(ledger_lines(self.deployment, self.batch), name)
            return line.explain(self.deployment, self.batch, most=most)
        asked, end = end_of(name)
        wanted = self.deployment.ttft if asked == "ttft_s" else OTHER_NAMES.get(asked, asked) or f"step_{self.view}_s"
        if wanted == "knee_batch":
            return explain_knee(self.deployment)
        derivation = (
            explain_end(self.deployment, wanted, end, self.batch)
            if end
            else self.deployment.explain(wanted, batch=self.batch)
        )
        if not self.fits:
            refuse_times(derivation, self.reason or "")
        return derivation


def step(model: str | Path | Model, **flags: Unpack[Flags]) -> Step:
    """One decode step of a model on a slice.

    Without `slice`, the smallest standard slice that fits; without `batch`, the most sequences that fit.

    Raises:
        InputError: a word is off.
    """
    question = ask(model, flags)
    return step_of(default_deployment(question), question.batch)


def step_of(deployment: Deployment, batch: int | None) -> Step:
    """One decode step of a deployment at a batch; at the largest that fits, or 1, when none is given."""
    most = int(deployment.value("max_batch"))
    size = batch or max(most, 1)
    ledger = deployment.evaluate(LEDGER, batch=size)
    verdict = memory_verdict(deployment, ledger, size)
    timed = deployment.evaluate([*TIMES, *RATES], batch=size) if verdict.fits else dict.fromkeys([*TIMES, *RATES])
    priced, told = _price(deployment, size, verdict), verdict.fits and shows_expected(deployment)
    expected = deployment.evaluate(EXPECTED, batch=size) if told else dict.fromkeys(EXPECTED)
    shown = ["step_s", *RATES, *(["usd_per_million_output_tokens"] if deployment.price else [])]
    return Step(
        model=deployment.model.name,
        slice=deployment.slice.name,
        n_chips=deployment.slice.n_chips,
        layout=deployment.layout_name,
        batch=size,
        context_tokens=deployment.workload.context_tokens,
        capacity_context_tokens=deployment.workload.capacity_context_tokens,
        weight_dtype=deployment.precision.weights,
        kv_dtype=deployment.precision.kv,
        compute_dtype=deployment.precision.compute,
        **{name: _number(value) for name, value in ledger.items() if name != "max_batch"},
        max_batch=most,
        fits=verdict.fits,
        reason=verdict.detail or None,
        knee_batch=knee_batch(deployment),
        **_kinds(deployment, size),
        **{name: _number(value) for name, value in timed.items()},
        **{name: _number(value) for name, value in expected.items()},
        expected_terms=expected_terms(deployment, size) if told else None,
        figures=figures(deployment, shown, size) if told else None,
        expected_engine=deployment.expectation.engine if told else None,
        is_calibrated=deployment.expectation.is_calibrated if told else None,
        view=deployment.conventions.view,
        bound=bound(timed, deployment.conventions.view) if verdict.fits else None,
        **priced,
        price=str(deployment.price) if deployment.price else None,
        assumptions=assumptions(deployment, batch=size),
        deployment=deployment,
    )


def _kinds(deployment: Deployment, batch: int) -> dict[str, Any]:
    """What only some models have: experts, and layers that keep different things."""
    served = deployment.graph.formulas
    asked = [name for name in (*EXPERTS, *GROWTH) if name in served]
    return {**dict.fromkeys((*EXPERTS, *GROWTH)), **_plain(deployment.evaluate(asked, batch=batch))}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(value) for name, value in values.items()}


def bound(timed: Mapping[str, Any], view: str) -> str:
    """The largest term of a view: param_load, kv_load, matmul, attention_flops or ici."""
    terms = TERMS[:-1] if view == "roofline" else TERMS
    return max(terms, key=lambda name: float(timed[name])).removesuffix("_s")


def _price(deployment: Deployment, batch: int, verdict: Verdict) -> dict[str, Any]:
    names = ("usd_per_hour", "usd_per_million_output_tokens")
    if deployment.price is None or not verdict.fits:
        return dict.fromkeys(names)
    return {name: float(value) for name, value in deployment.evaluate(names, batch=batch).items()}


def _number(value: Any) -> Any:
    return value if value is None else plain(value)


__all__ = ["Step", "bound", "step", "step_of"]
