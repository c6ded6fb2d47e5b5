"""Why a simulation differs from the closed form: the difference, and beside it what the run shows of its causes.

A cause is named only where the run has it in numbers; what no number shows is not said.
"""

from __future__ import annotations

from dataclasses import dataclass

from slicewise.traffic.load import LoadShares
from slicewise.traffic.metrics import Metrics
from slicewise.traffic.profile import Profile
from slicewise.traffic.requests import Floats
from slicewise.traffic.server import CHUNKED, PREFILL_FIRST, STATIC, Policy
from slicewise.traffic.steady import Steady
from slicewise.units import show

_CLOSE = 0.02
"""Differences that are smaller, as a share, are not worth a sentence."""
_FULL = 0.95
_FAR = 2.0
"""Gaps whose p99 is so many times their p50 are of two kinds."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run showed.

    Attributes:
        metrics: latencies and rates.
        shares: how busy servers were, and who waited.
        decode_waits_s: how long requests waited for a decode server; none where the phases are not split. [s]
        n_servers: servers; of a split fleet, decode servers.
    """

    metrics: Metrics
    shares: LoadShares
    decode_waits_s: Floats
    n_servers: int

    @property
    def batch(self) -> float | None:
        """Sequences that decode at once on a server: their tokens a second times what each waits for one."""
        run = self.metrics
        if run.itl_s is None:
            return None
        return max(run.output_tokens_per_s - run.requests_per_s, 0.0) * run.itl_s.mean / self.n_servers


def gap_between(seen: Seen, formula: Steady, profile: Profile, policy: Policy) -> tuple[str, ...]:
    """Sentences on what the closed form leaves out, with the numbers.

    Args:
        seen: what the run showed.
        formula: the closed form of the same fleet and load.
        profile: what the load is like.
        policy: the rules of the servers.
    """
    run = seen.metrics
    sentences = (
        _load(seen, formula, profile, policy),
        _ttft(run, formula),
        _tpot(seen, formula, policy),
        _hits(run),
        _bursts(profile),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _load(seen: Seen, formula: Steady, profile: Profile, policy: Policy) -> str:
    loads = {"the servers": formula.load}
    if formula.prefill_load is not None:
        loads = {"the decode servers": formula.load, "the prefill servers": formula.prefill_load}
    near = [f"{share:.0%} of what {servers} can finish" for servers, share in loads.items() if share > _FULL]
    if not near:
        return ""
    knows = f"; it does not know {policy.kind} servers" if policy.kind in (STATIC, CHUNKED) and len(loads) == 1 else ""
    return f"By the closed form the load is {' and '.join(near)}{knows}.{_waiting(seen, profile)}"


def _waiting(seen: Seen, profile: Profile) -> str:
    """What of a queue the run shows."""
    run, shares, comes = seen.metrics, seen.shares, profile.requests_per_s
    if shares.queued < 1:
        return ""
    told = f" In the run {shares.queued:.3g} requests wait in the mean, {shares.most_queued:,} at most"
    falls_behind = comes and not run.includes_drain and run.requests_per_s < comes * (1 - _CLOSE)
    if not falls_behind:
        return f"{told}."
    return (
        f"{told}: {run.requests_per_s:.3g} a second finish of {comes:.3g} that come, and queues grow for as long as"
        " that lasts."
    )


def _ttft(run: Metrics, formula: Steady) -> str:
    if run.ttft_s is None or run.queueing_s is None:
        return ""
    mean, waits = run.ttft_s.mean, run.queueing_s.mean
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


def _tpot(seen: Seen, formula: Steady, policy: Policy) -> str:
    run = seen.metrics
    if run.tpot_s is None or run.itl_s is None:
        return ""
    more = run.tpot_s.mean - formula.tpot_s
    if abs(more) <= _CLOSE * formula.tpot_s:
        return ""
    is_split = formula.prefill_load is not None
    causes = _longer(seen, formula, policy, is_split=is_split) if more > 0 else _shorter(seen, formula)
    told = (
        f"TPOT is {_time(run.tpot_s.mean)} in the mean of requests, {_time(run.itl_s.mean)} in the mean of tokens,"
        f" {_time(formula.tpot_s)} by the formula"
    )
    return f"{told}: {'; '.join(causes)}." if causes else f"{told}."


def _longer(seen: Seen, formula: Steady, policy: Policy, *, is_split: bool) -> list[str]:
    """What makes gaps longer than the formula's, as far as the run shows it."""
    run, found = seen.metrics, []
    if run.preemptions_per_request > 0:
        found.append(
            f"requests lose their cache {run.preemptions_per_request:.2g} times in the mean, and compute it anew"
        )
    if len(seen.decode_waits_s) and seen.decode_waits_s.mean() > _CLOSE * formula.tpot_s:
        waits = _time(float(seen.decode_waits_s.mean()))
        found.append(f"requests wait {waits} in the mean for a place on a decode server, before their second token")
    itl, mixes = run.itl_s, policy.kind in (PREFILL_FIRST, CHUNKED) and not is_split
    if itl and mixes and itl.p99 > _FAR * itl.p50:
        found.append(
            f"where prompts are computed in between, gaps are longer: {_time(itl.p50)} at p50, {_time(itl.p99)} at p99"
        )
    return [*found, *_batches(seen, formula, 1)]


def _shorter(seen: Seen, formula: Steady) -> list[str]:
    return _batches(seen, formula, -1)


def _batches(seen: Seen, formula: Steady, sign: int) -> list[str]:
    """The batch of the run beside the formula's, where it is off to the side that explains the time."""
    batch = seen.batch
    if batch is None or sign * (batch - formula.batch) <= _CLOSE * formula.batch:
        return []
    return [f"about {batch:.3g} sequences decode at once on a server, {formula.batch:.3g} by the formula"]


def _hits(run: Metrics) -> str:
    if run.cached_prompt_share < _CLOSE:
        return ""
    return f"{run.cached_prompt_share:.0%} of the prompts' tokens were found cached; the formula knows no such hits."


def _bursts(profile: Profile) -> str:
    ratio = profile.busiest_minute_ratio
    if ratio is None or ratio < 1 + _CLOSE:
        return ""
    return f"The busiest minute brings {ratio:.2g} times the requests of a mean one; the formula knows the mean alone."


def _time(seconds: float) -> str:
    return show(seconds, "s", 3)
