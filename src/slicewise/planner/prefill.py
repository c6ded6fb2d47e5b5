"""Prefill of one prompt on one slice: its time, its terms and what binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from slicewise.derive import Derivation
from slicewise.planner.assumptions import assumptions
from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import memory_verdict, refuse_times
from slicewise.planner.figures import Figures, as_dict, end_of, expected_terms, explain_end, figures, shows_expected
from slicewise.planner.question import Flags, ask
from slicewise.planner.record import record
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import LEDGER
from slicewise.spec.model import Model

PREFILL_TERMS = ("prefill_flops_s", "param_load_s", "prefill_ici_s")
_EXPECTED = ("prefill_bound_s", "prefill_expected_s", "prefill_low_s", "prefill_high_s")
_TIMES = (*PREFILL_TERMS, "prefill_roofline_s", "prefill_overlapped_s", "prefill_serial_s", "prefill_s")


@dataclass(frozen=True, kw_only=True)
class Prefill:
    """Prefill of one prompt. Times are bounds at the given utilisation, and None where the model does not fit.

    Attributes:
        bound: prefill_flops, param_load or prefill_ici, the largest term of the view.
        ttft_s: time to the first token, unqueued: longer than `prefill_s`, the slice's time that a prompt takes, where
            groups of the slice serve prompts side by side. [s]
        prompts_in_flight: prompts that the slice works on at once.
        prefill_bound_s: at peak FLOPs, which no engine undercuts. [s]
        prefill_expected_s: as the engine that was measured is expected to run it; None under the book's conventions.
            [s]
        prefill_low_s: lower end of the range that holds 8 of 10 measurements. [s]
        prefill_high_s: upper end. [s]
        expected_terms: what the expected time is made of. [s]
        figures: bound, expected value and range of the prefill, its rate and its price.
        expected_engine: whose times are expected; None under the book's conventions.
        is_calibrated: whether the chip itself was measured.
    """

    model: str
    slice: str
    n_chips: int
    prompt_tokens: int
    weight_dtype: str
    compute_dtype: str
    mfu: float
    n_params: float
    fits: bool
    reason: str | None
    prefill_flops: float
    prefill_flops_s: float | None
    param_load_s: float | None
    prefill_ici_s: float | None
    prefill_roofline_s: float | None
    prefill_overlapped_s: float | None
    prefill_serial_s: float | None
    prefill_s: float | None
    ttft_s: float | None
    prompts_in_flight: int
    prefill_bound_s: float | None
    prefill_expected_s: float | None
    prefill_low_s: float | None
    prefill_high_s: float | None
    expected_terms: Mapping[str, float] | None
    figures: Mapping[str, Figures] | None
    view: str
    bound: str | None
    tokens_per_s_per_chip: float | None
    usd_per_million_input_tokens: float | None
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
        """The derivation of a number; of the prefill time when none is named.

        Raises:
            UnknownNameError: no such number.
        """
        own = {"tokens_per_s_per_chip": "prefill_tokens_per_s_per_chip", "": f"prefill_{self.view}_s"}
        own |= {"expected_prefill_s": "prefill_expected_s", "ttft_s": self.deployment.ttft}
        own |= _served(self.deployment)
        asked, end = end_of(name)
        wanted = own.get(asked, asked)
        derivation = explain_end(self.deployment, wanted, end) if end else self.deployment.explain(wanted, batch=1)
        if not self.fits:
            refuse_times(derivation, self.reason or "")
        return derivation


def prefill(model: str | Path | Model, **flags: Unpack[Flags]) -> Prefill:
    """Prefill of one prompt of `isl` tokens.

    Without `slice`, the smallest standard slice that fits.

    Raises:
        InputError: a word is off.
    """
    return prefill_of(default_deployment(ask(model, flags)))


def prefill_of(deployment: Deployment) -> Prefill:
    """Prefill of one prompt on a deployment."""
    prompt = deployment.workload.prompt_tokens
    alone = deployment.with_(workload=replace(deployment.workload, capacity_context_tokens=prompt))
    held = alone.evaluate([*LEDGER, "kv_held_tokens"], batch=1)
    verdict = memory_verdict(deployment, held, 1, float(held["kv_held_tokens"]))
    timed: dict[str, Any] = dict.fromkeys(_TIMES)
    if verdict.fits:
        served = _served(deployment)
        values = deployment.evaluate(served.values())
        timed = {name: values[served[name]] for name in _TIMES}
    told = verdict.fits and shows_expected(deployment)
    expected = deployment.evaluate(_EXPECTED) if told else dict.fromkeys(_EXPECTED)
    terms = PREFILL_TERMS[:-1] if deployment.conventions.view == "roofline" else PREFILL_TERMS
    is_priced = verdict.fits and deployment.price is not None
    return Prefill(
        model=deployment.model.name,
        slice=deployment.slice.name,
        n_chips=deployment.slice.n_chips,
        prompt_tokens=prompt,
        weight_dtype=deployment.precision.weights,
        compute_dtype=deployment.precision.compute,
        mfu=deployment.mfu,
        n_params=deployment.value("n_params"),
        fits=verdict.fits,
        reason=verdict.detail or None,
        prefill_flops=float(deployment.value("prefill_flops")),
        **{name: None if value is None else float(value) for name, value in timed.items()},
        ttft_s=float(deployment.value(deployment.ttft)) if verdict.fits else None,
        prompts_in_flight=int(deployment.inputs.get("prompts_in_flight", 1)),
        **{name: None if value is None else float(value) for name, value in expected.items()},
        expected_terms=expected_terms(deployment, 1, "prefill_expected_s") if told else None,
        figures=_figures(deployment) if told else None,
        expected_engine=deployment.expectation.engine if told else None,
        is_calibrated=deployment.expectation.is_calibrated if told else None,
        view=deployment.conventions.view,
        bound=max(terms, key=lambda name: float(timed[name])).removesuffix("_s") if verdict.fits else None,
        tokens_per_s_per_chip=float(deployment.value("prefill_tokens_per_s_per_chip")) if verdict.fits else None,
        usd_per_million_input_tokens=float(deployment.value("usd_per_million_input_tokens")) if is_priced else None,
        price=str(deployment.price) if deployment.price else None,
        assumptions=(
            *utilisation(deployment),
            *assumptions(deployment),
        ),
        deployment=deployment,
    )


def _figures(deployment: Deployment) -> dict[str, Figures]:
    names = ["prefill_s", "prefill_tokens_per_s_per_chip"]
    names += ["usd_per_million_input_tokens"] if deployment.price else []
    found = figures(deployment, [deployment.ttft, *names])
    return {"ttft_s": found[deployment.ttft], **{name: found[name] for name in names}}


def _served(deployment: Deployment) -> dict[str, str]:
    """The quantity of each time: ranks and experts read their weights for a prompt otherwise than for a step."""
    of_prompts = {"param_load_s": "prefill_param_load_s", "prefill_ici_s": "prefill_busy_ici_s"}
    return {name: of_prompts.get(name, name) if deployment.is_layered else name for name in _TIMES}


def utilisation(deployment: Deployment) -> tuple[str, ...]:
    """The FLOPs utilisation that prefill is assumed to reach, where one is assumed."""
    if deployment.conventions.view == "expected" and not deployment.mfu_is_given:
        return ()
    return (f"Prefill runs at {deployment.mfu:.0%} of peak FLOPs (--mfu).",)
