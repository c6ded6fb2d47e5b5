"""Why a simulation differs from the closed form: the difference, taken apart by what the closed form leaves out."""

from __future__ import annotations

from slicewise.traffic.metrics import Metrics
from slicewise.traffic.profile import Profile
from slicewise.traffic.server import CHUNKED, STATIC
from slicewise.traffic.steady import Steady
from slicewise.units import show

_CLOSE = 0.02
"""Differences that are smaller, as a share, are not worth a sentence."""
_FULL = 0.95


def gap_between(found: Metrics, formula: Steady, profile: Profile, policy: str) -> tuple[str, ...]:
    """Sentences on what the closed form leaves out, with the numbers.

    Args:
        found: the metrics of the run.
        formula: the closed form of the same fleet and load.
        profile: what the load is like.
        policy: the rule of the servers.
    """
    sentences = (_load(formula), _ttft(found, formula), _tpot(found, formula, policy), _bursts(profile))
    return tuple(sentence for sentence in sentences if sentence)


def _load(formula: Steady) -> str:
    loads = {"the servers": formula.load}
    if formula.prefill_load is not None:
        loads = {"the decode servers": formula.load, "the prefill servers": formula.prefill_load}
    over = [f"{share:.0%} of what {servers} can finish" for servers, share in loads.items() if share > 1]
    if over:
        return f"The load is {' and '.join(over)}: queues and latencies grow for as long as it lasts."
    near = max(loads.values())
    return f"At {near:.0%} of capacity a queue is seldom empty." if near > _FULL else ""


def _ttft(found: Metrics, formula: Steady) -> str:
    if found.ttft_s is None or found.queueing_s is None:
        return ""
    mean, waits = found.ttft_s.mean, found.queueing_s.mean
    if abs(mean - formula.ttft_s) <= _CLOSE * formula.ttft_s:
        return ""
    rest = mean - waits - formula.ttft_s
    told = (
        f"TTFT is {_time(mean)} in the mean, {_time(formula.ttft_s)} by the formula: {_time(waits)} is waiting in the"
    )
    if abs(rest) <= _CLOSE * formula.ttft_s:
        return f"{told} queue."
    longer = "longer" if rest >= 0 else "less"
    prompts = f"from the first work on it a prompt takes {_time(abs(rest))} {longer} than one of mean length"
    return f"{told} queue, and {prompts}."


def _tpot(found: Metrics, formula: Steady, policy: str) -> str:
    if found.tpot_s is None or found.itl_s is None:
        return ""
    if abs(found.tpot_s.mean - formula.tpot_s) <= _CLOSE * formula.tpot_s:
        return ""
    if policy == STATIC:
        why = "a static batch keeps its slots until its longest answer is done, and the formula refills them at once"
    elif formula.prefill_load is not None:
        why = "requests that come together fill the batches, and some wait for a place before their second token"
    elif policy == CHUNKED:
        why = "chunks of prompts lengthen the steps beside them, and batches come and go"
    else:
        why = "batches come and go, and prompts that come together stop one for longer"
    return (
        f"TPOT is {_time(found.tpot_s.mean)} in the mean of requests, {_time(found.itl_s.mean)} in the mean of tokens,"
        f" {_time(formula.tpot_s)} by the formula, at a steady batch of {formula.batch:.3g}: {why}."
    )


def _bursts(profile: Profile) -> str:
    ratio = profile.busiest_minute_ratio
    if ratio is None or ratio < 1 + _CLOSE:
        return ""
    return f"The busiest minute brings {ratio:.2g} times the requests of a mean one; the formula knows the mean alone."


def _time(seconds: float) -> str:
    return show(seconds, "s", 3)
