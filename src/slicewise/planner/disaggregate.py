"""Disaggregation: prefill and decode on servers of their own. The ratio, the hand-off, and whether to split at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from slicewise.catalog.slices import load_slice
from slicewise.derive import Derivation, Origins
from slicewise.errors import InputError, UnknownFactError
from slicewise.planner.assumptions import assumptions
from slicewise.planner.deployment import Deployment
from slicewise.planner.feasible import Verdict
from slicewise.planner.figures import (
    Figures,
    as_dict,
    end_of,
    explain_end,
    explain_with,
    figures,
    shows_expected,
    times_of,
)
from slicewise.planner.knee import largest_batch
from slicewise.planner.prefill import Prefill, prefill_of, utilisation
from slicewise.planner.question import Flags, ask, chosen_by
from slicewise.planner.record import record
from slicewise.planner.search import round_of, search
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import Step, step_of
from slicewise.spec.model import Model
from slicewise.spec.topology import Slice
from slicewise.spec.workload import Limits
from slicewise.units import show

PAYS = 1.1
"""Splitting pays where sharing makes a token wait at least this much longer, with no limit to decide it."""

_DECODE = ("sequences_finished_per_step", "tokens_evicted_per_step", "decode_requests_per_s")
_HANDOFF = ("handoff_bytes_per_s", "handoff_s", "ttft_split_s")
_RATIO = ("prefill_servers_per_decode_server", "prefill_requests_per_s", "prefill_servers")
"""What rests on prefill elsewhere, seen from the decode slice."""

_RATIO_ENDS = {
    "bound": ("bound", "bound"),
    "expected": ("expected", "expected"),
    "low": ("high", "low"),
    "high": ("low", "high"),
}
"""The step and the prefill at which the ratio's figures stand."""

_SERVERS = ("prefill_servers", "decode_servers")


@dataclass(frozen=True, kw_only=True)
class Disaggregation:
    """The answer of `disaggregate`. Values that need a fit are None where the decode or prefill slice does not fit.

    Attributes:
        prefill_servers_per_decode_server: servers of `prefill_slice` that keep one of `slice` busy.
        handoff_bytes: the prompt's cache. [B]
        handoff_s: its time at the rate of the slower end, None where that is not known; adds to TTFT. [s]
        ttft_split_s: prefill and hand-off; None where the hand-off is not known. [s]
        tpot_shared_s: mean time a token if both phases shared the decode slice. [s]
        fits: both slices hold their part, and one of both ways meets the limits.
        split: whether to split.
        why: the reason, in a sentence.
        figures: bound, expected value and range of step, prefill, rates, ratio, time to the first token and shared
            time a token; None under the book's conventions.
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
    ttft_split_s: float | None
    tpot_s: float | None
    tpot_shared_s: float | None
    split: bool | None
    why: str
    prefill_servers: int | None
    decode_servers: int | None
    figures: Mapping[str, Figures] | None
    assumptions: tuple[str, ...]
    decode: Step
    prefill: Prefill

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        own = record(self, without=("decode", "prefill", "figures"))
        return {**own, "figures": None if self.figures is None else as_dict(self.figures)}

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number; of the server ratio when none is named.

        Raises:
            InputError: it does not fit.
            UnknownNameError: no such number.
        """
        wanted = name or "prefill_servers_per_decode_server"
        if not self.fits and getattr(self, wanted, 0) is None:
            raise InputError(f"{wanted} has no value for what does not fit, or misses the limits: {self.reason}")
        prompt, decode = self.prefill.deployment, self.decode.deployment
        asked, end = end_of(wanted)
        if end:
            return self._explain_end(asked, end)
        if self.prefill_slice == self.slice:
            return self.decode.explain(wanted)
        if wanted in (*_HANDOFF, "handoff_send_bytes_per_s"):
            return prompt.explain(wanted, self._received(), **_receiving(decode))
        if wanted not in _RATIO:
            return (self.prefill if wanted.startswith("prefill_") else self.decode).explain(wanted)
        # Prefill runs elsewhere: its time enters as a number that `prefill` explains.
        words = {"prefill_s": (f"prefill on {self.prefill_slice}, see --explain prefill_s", "")}
        return decode.explain(wanted, words, batch=self.batch, prefill_s=self.prefill_s)

    def _explain_end(self, name: str, end: str) -> Derivation:
        """One of the figures of a number; the time to the first token is seen from the prefill slice."""
        if name == "prefill_servers_per_decode_server":
            return self._explain_ratio(end)
        if name in _HANDOFF:
            origins, decode = self._received(), self.decode.deployment
            return explain_end(self.prefill.deployment, name, end, origins=origins, **_receiving(decode))
        return (self.prefill if name.startswith("prefill_") else self.decode).explain(f"{name}:{end}")

    def _received(self) -> Origins:
        return {"handoff_receive_bytes_per_s": (f"what {self.slice} takes in", "")}

    def _explain_ratio(self, end: str) -> Derivation:
        """One of the ratio's figures, each phase at its own end."""
        of_step, of_prefill = _RATIO_ENDS[end]
        times = {
            "step_s": self.decode.explain(f"step_s:{of_step}"),
            "prefill_s": self.prefill.explain(f"prefill_s:{of_prefill}"),
        }
        name = "prefill_servers_per_decode_server"
        return replace(explain_with(self.decode.deployment, name, self.batch, times), name=f"{name}:{end}")


def disaggregate(
    model: str | Path | Model, *, prefill_slice: str | Slice | None = None, **flags: Unpack[Flags]
) -> Disaggregation:
    """Prefill and decode servers for a workload, from one consistent batch and step.

    Without `batch`, the most sequences that fit and meet the TPOT limit. Servers are counted by what is expected,
    unless a view, a FLOPs utilisation or the book's conventions are given.

    Args:
        model: as for `plan`.
        prefill_slice: slice of the prefill servers; that of decode when none is given.
        flags: as for `plan`.

    Raises:
        InputError: a word is off.
    """
    question = ask(model, flags if flags.get("mfu") is not None else chosen_by(flags))
    decode = default_deployment(question)
    prompt = decode if prefill_slice is None else question.deployment(load_slice(prefill_slice, "--prefill-slice"))
    limits = question.limits
    searched = search(decode, Limits(tpot_s=limits.tpot_s), "throughput", question.batch)
    batch = int(searched.batches[searched.best]) if searched.verdict.fits else question.batch
    prefill = prefill_of(prompt)
    found = disaggregation_of(step_of(decode, batch), prefill, searched.verdict, limits)
    if found.fits or not searched.verdict.fits or question.batch is not None or limits.tpot_s is None:
        return found
    # The largest batch leaves no room for prefills in between: fewer sequences, sharing the chips, may keep the limits.
    fewer = _sharing_batch(decode, limits.tpot_s)
    again = disaggregation_of(step_of(decode, fewer), prefill, searched.verdict, limits) if fewer else found
    return again if again.fits else found


def _sharing_batch(decode: Deployment, tpot_s: float) -> int:
    """The most sequences whose mean time a token keeps a limit where prefills run in between; 0 for none.

    Whole rounds of the batch shards, or fewer sequences than one where no round does.
    """
    fit = int(decode.value("max_batch"))
    for stride in (round_of(decode), 1):
        most = fit // stride
        rounds = largest_batch(
            lambda r, stride=stride: np.asarray(decode.value("tpot_shared_s", batch=r * stride) <= tpot_s),  # type: ignore[misc]
            most,
        )
        if rounds != 0:
            return stride * (most if rounds is None else rounds)
    return 0


def disaggregation_of(step: Step, prefill: Prefill, verdict: Verdict, limits: Limits) -> Disaggregation:
    """The servers of a step and of a prefill that are given, whether or not the batch is the best for it.

    Args:
        step: of the decode servers.
        prefill: of the prefill servers.
        verdict: whether the step fits and meets the limits.
        limits: what either way must meet.
    """
    decode, prompt = step.deployment, prefill.deployment
    reason = verdict.detail or prefill.reason
    flows = _flows(step, prefill) if not reason else {}
    split, why = _split(flows, limits, is_one_slice=step.slice == prefill.slice) if flows else (None, reason or "")
    fits = split is not None
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
        prefill_servers_per_decode_server=flows.get("prefill_servers_per_decode_server"),
        prefill_requests_per_s=flows.get("prefill_requests_per_s"),
        handoff_bytes=float(prompt.value("handoff_bytes")),
        **_known(flows),
        tpot_s=step.step_s,
        tpot_shared_s=flows.get("tpot_shared_s"),
        split=split,
        why=why,
        **(_servers(step, prefill) if fits else dict.fromkeys(_SERVERS)),
        figures=_figures(step, prefill, knows_handoff="ttft_split_s" in flows) if flows else None,
        assumptions=(
            *utilisation(prompt),
            "Means, no queues: servers this busy need spare capacity.",
            *step.assumptions,
            *(f"Prefill: {words}" for words in assumptions(prompt) if words not in step.assumptions),
        ),
        decode=step,
        prefill=prefill,
    )


def _figures(step: Step, prefill: Prefill, *, knows_handoff: bool) -> dict[str, Figures] | None:
    """Three figures of the flow. The ratio's range takes each phase at its own end: they need not err together."""
    decode, prompt = step.deployment, prefill.deployment
    if not shows_expected(decode):
        return None
    steps, prefills = times_of(decode, step.batch), times_of(prompt, 1)
    ratio = {
        end: float(
            decode.value(
                "prefill_servers_per_decode_server",
                batch=step.batch,
                step_s=steps[of_step]["step_s"],
                prefill_s=prefills[of_prefill]["prefill_s"],
            )
        )
        for end, (of_step, of_prefill) in _RATIO_ENDS.items()
    }
    return {
        **figures(decode, ["step_s", "decode_requests_per_s"], step.batch),
        **figures(prompt, ["prefill_s", "prefill_requests_per_s"]),
        "prefill_servers_per_decode_server": Figures(**ratio),
        **(figures(prompt, ["ttft_split_s"], **_receiving(decode)) if knows_handoff else {}),
        **figures(decode, ["tpot_shared_s"], step.batch),
    }


def _receiving(decode: Deployment) -> dict[str, Any]:
    """What the decode slice takes in, as an input of the hand-off."""
    known = decode.slice.chip.dcn_bytes_per_s is not None
    return {"handoff_receive_bytes_per_s": decode.value("handoff_receive_bytes_per_s") if known else None}


def _flows(step: Step, prefill: Prefill) -> dict[str, float]:
    decode, prompt = step.deployment, prefill.deployment
    shared = decode.evaluate([*_DECODE, "tpot_shared_s", "prefill_s"], batch=step.batch)
    ratio = decode.evaluate(
        ["prefill_servers_per_decode_server", "prefill_requests_per_s"], batch=step.batch, prefill_s=prefill.prefill_s
    )
    flows = {name: float(value) for name, value in {**shared, **ratio, "step_s": step.step_s}.items()}
    flows |= {
        "shared_prefill_s": float(decode.value(decode.ttft)),
        "prefill_s": float(prompt.value("prefill_s")),
        "prompt_ttft_s": float(prompt.value(prompt.ttft)),
    }
    try:
        found = prompt.evaluate(_HANDOFF, **_receiving(decode))
    except UnknownFactError:
        return flows
    return flows | {name: float(value) for name, value in found.items()}


def _split(  # noqa: PLR0911 - one return for each reason
    flows: dict[str, float], limits: Limits, *, is_one_slice: bool
) -> tuple[bool | None, str]:
    """Whether to split, and why; None where neither way meets the limits.

    Sharing makes a token wait for other requests' prefills; splitting hands a cache over before the first token.
    """
    shared, alone, prefill_s = flows["tpot_shared_s"], flows["step_s"], flows["prompt_ttft_s"]
    ttft_s, handoff_s = flows.get("ttft_split_s", prefill_s), flows.get("handoff_s")
    sharing = [
        _over("sharing gives a token", shared, "TPOT", limits.tpot_s),
        _over("prefill on the shared chips takes", flows["shared_prefill_s"], "TTFT", limits.ttft_s),
    ]
    splitting = _over("prefill and hand-off take", ttft_s, "TTFT", limits.ttft_s)
    sharing_fails = " and ".join(words for words in sharing if words)
    if sharing_fails and splitting:
        return None, f"neither way meets the limits: {sharing_fails}; {splitting}"
    if splitting:
        return False, f"no: {splitting}, while sharing meets the limits"
    cost = (
        "the hand-off is not known" if handoff_s is None else f"a hand-off of {show(handoff_s, 's', 3)} joins the TTFT"
    )
    same = ", at the same chip time a request" if is_one_slice else ""
    if sharing_fails:
        return True, f"yes: {sharing_fails}; a decode server gives {show(alone, 's', 4)}{same}; {cost}"
    if limits.tpot_s is not None or limits.ttft_s is not None:
        return False, f"no: sharing meets the limits, {show(shared, 's', 4)} a token, with no hand-off to wait for"
    if shared < PAYS * alone:
        return False, f"no: sharing the chips makes a token take only {shared / alone - 1:.1%} longer"
    if handoff_s is not None and handoff_s > prefill_s:
        return False, f"no: the hand-off of {show(handoff_s, 's', 3)} takes longer than prefill itself"
    return True, (
        f"yes: sharing the chips makes a token take {show(shared, 's', 4)} on average, as prefills run in between,"
        f" against {show(alone, 's', 4)} on a decode server{same}; {cost}"
    )


def _known(flows: dict[str, float]) -> dict[str, Any]:
    return {name: flows.get(name) for name in (*_DECODE, *_HANDOFF)}


def _over(what: str, seconds: float, name: str, limit_s: float | None) -> str:
    if limit_s is None or seconds <= limit_s:
        return ""
    return f"{what} {show(seconds, 's', 4)}, over the {name} limit of {show(limit_s, 's')}"


def _servers(step: Step, prefill: Prefill) -> dict[str, int | None]:
    decode = step.deployment
    if decode.requests_per_s is None:
        return dict.fromkeys(_SERVERS)
    values = decode.evaluate(_SERVERS, batch=step.batch, prefill_s=prefill.prefill_s)
    return {name: int(value) for name, value in values.items()}
