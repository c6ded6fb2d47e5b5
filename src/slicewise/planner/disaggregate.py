"""Disaggregation: prefill and decode on servers of their own. The ratio, the hand-off, and whether to split at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from slicewise.catalog.slices import load_slice
from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.prefill import Prefill, prefill_of
from slicewise.planner.question import Flags, ask
from slicewise.planner.record import record
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import Step, step_of
from slicewise.spec.model import Model
from slicewise.spec.topology import Slice
from slicewise.spec.workload import Limits
from slicewise.units import show

_FLOWS = (
    "sequences_finished_per_step",
    "tokens_evicted_per_step",
    "prefill_requests_per_s",
    "decode_requests_per_s",
    "prefill_servers_per_decode_server",
    "tpot_shared_s",
    "handoff_bytes",
)


@dataclass(frozen=True, kw_only=True)
class Disaggregation:
    """The answer of `disaggregate`. Values that need a fit are None where the decode or prefill slice does not fit.

    Attributes:
        prefill_servers_per_decode_server: servers of `prefill_slice` that keep one of `slice` busy.
        handoff_bytes: the prompt's cache. [B]
        handoff_s: its time over the prefill slice's network, None where that is not known; adds to TTFT. [s]
        tpot_shared_s: mean time a token if both phases shared the decode slice. [s]
        split: whether to split.
        why: the reason, in a sentence.
    """

    model: str
    slice: str
    prefill_slice: str
    batch: int
    prompt_tokens: int
    output_tokens: int
    fits: bool
    reason: str | None
    step_s: float | None
    prefill_s: float | None
    prefill_servers_per_decode_server: float | None
    prefill_requests_per_s: float | None
    decode_requests_per_s: float | None
    sequences_finished_per_step: float | None
    tokens_evicted_per_step: float | None
    handoff_bytes: float | None
    handoff_bytes_per_s: float | None
    handoff_s: float | None
    tpot_s: float | None
    tpot_shared_s: float | None
    split: bool | None
    why: str
    prefill_servers: int | None
    decode_servers: int | None
    assumptions: tuple[str, ...]
    decode: Step
    prefill: Prefill

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self, without=("decode", "prefill"))

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number; of the server ratio when none is named.

        Raises:
            InputError: it does not fit.
            UnknownNameError: no such number.
        """
        if not self.fits:
            raise InputError(f"what does not fit has no servers to explain: {self.reason}")
        wanted = name or "prefill_servers_per_decode_server"
        if wanted in ("handoff_s", "handoff_bytes_per_s") or wanted == "prefill_s":
            return self.prefill.explain(wanted)
        if self.prefill_slice == self.slice:
            return self.decode.explain(wanted)
        # Prefill runs elsewhere: its time enters as a number that `prefill` explains.
        origins = {"prefill_s": (f"prefill on {self.prefill_slice}, see --explain prefill_s", "")}
        return self.decode.deployment.explain(wanted, origins, batch=self.batch, prefill_s=self.prefill_s)


def disaggregate(
    model: str | Path | Model, *, prefill_slice: str | Slice | None = None, **flags: Unpack[Flags]
) -> Disaggregation:
    """Prefill and decode servers for a workload, from one consistent batch and step.

    Args:
        model: as for `plan`.
        prefill_slice: slice of the prefill servers; that of decode when none is given.
        flags: as for `plan`.

    Raises:
        InputError: a word is off.
    """
    question = ask(model, flags)
    decode = default_deployment(question)
    prompt = question.deployment(load_slice(prefill_slice)) if prefill_slice else decode
    return _disaggregation(decode, prompt, question.batch, question.limits)


def _disaggregation(decode: Deployment, prompt: Deployment, batch: int | None, limits: Limits) -> Disaggregation:
    step, prefill = step_of(decode, batch), prefill_of(prompt)
    fits = step.fits and prefill.fits
    flows = _flows(decode, step, prefill) if fits else {}
    servers = _servers(decode, step, prefill) if fits and decode.requests_per_s else {}
    split, why = _split(flows, limits) if fits else (None, step.reason or prefill.reason or "")
    return Disaggregation(
        model=step.model,
        slice=step.slice,
        prefill_slice=prefill.slice,
        batch=step.batch,
        prompt_tokens=decode.workload.prompt_tokens,
        output_tokens=decode.workload.output_tokens,
        fits=fits,
        reason=None if fits else why,
        step_s=step.step_s,
        prefill_s=prefill.prefill_s,
        **{name: flows.get(name) for name in _FLOWS},
        handoff_bytes_per_s=flows.get("handoff_bytes_per_s"),
        handoff_s=flows.get("handoff_s"),
        tpot_s=step.step_s,
        split=split,
        why=why,
        prefill_servers=servers.get("prefill_servers"),
        decode_servers=servers.get("decode_servers"),
        assumptions=(
            f"Prefill runs at {prompt.mfu:.0%} of peak FLOPs (--mfu); means, no queues.",
            *step.assumptions,
        ),
        decode=step,
        prefill=prefill,
    )


def _flows(decode: Deployment, step: Step, prefill: Prefill) -> dict[str, float]:
    values = decode.evaluate(_FLOWS, batch=step.batch, prefill_s=prefill.prefill_s)
    flows = {name: float(value) for name, value in values.items()}
    flows["prefill_s"], flows["step_s"] = float(prefill.prefill_s or 0.0), float(step.step_s or 0.0)
    prompt = prefill.deployment
    if prompt.handoff_bytes_per_s is not None or prompt.slice.chip.dcn_bytes_per_s is not None:
        flows |= {k: float(v) for k, v in prompt.evaluate(("handoff_bytes_per_s", "handoff_s")).items()}
    return flows


def _split(flows: dict[str, float], limits: Limits) -> tuple[bool, str]:
    """Whether to split: sharing makes a token wait for other requests' prefills, splitting hands a cache over."""
    shared, alone = flows["tpot_shared_s"], flows["step_s"]
    handoff = flows.get("handoff_s")
    cost = (
        f"a hand-off of {show(handoff, 's', 3)} joins the TTFT" if handoff is not None else "the hand-off is not known"
    )
    if limits.tpot_s is not None and shared <= limits.tpot_s:
        return False, (
            f"no: sharing the chips gives {show(shared, 's', 4)} a token on average, within the limit of"
            f" {show(limits.tpot_s, 's')}, with no hand-off and no servers to balance"
        )
    if handoff is not None and limits.ttft_s is not None and flows["prefill_s"] + handoff > limits.ttft_s:
        return False, (
            f"no: prefill and hand-off take {show(flows['prefill_s'] + handoff, 's', 4)}, over the TTFT limit of"
            f" {show(limits.ttft_s, 's')}"
        )
    if handoff is not None and handoff > flows["prefill_s"]:
        return False, f"no: the hand-off of {show(handoff, 's', 3)} takes longer than prefill itself"
    over = f", over the limit of {show(limits.tpot_s, 's')}" if limits.tpot_s is not None else ""
    return True, (
        f"yes: sharing the chips lets a token wait {show(shared, 's', 4)} on average{over}, as prefills run in between,"
        f" against {show(alone, 's', 4)} on a decode server, at the same chip time a request; {cost}"
    )


def _servers(decode: Deployment, step: Step, prefill: Prefill) -> dict[str, int]:
    names = ("prefill_servers", "decode_servers")
    values = decode.evaluate(names, batch=step.batch, prefill_s=prefill.prefill_s)
    return {name: int(value) for name, value in values.items()}
