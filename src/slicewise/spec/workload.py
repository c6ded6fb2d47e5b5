"""What is asked of the server: lengths, and the limits that the answers must keep."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Lengths of a request, in tokens.

    Attributes:
        prompt_tokens: T, the prompt (ISL).
        output_tokens: G, what is generated (OSL).
        context_tokens: S at which bandwidth is counted; the mean context of a sequence.
        capacity_context_tokens: S at which memory is counted; the longest context of a sequence.
        context_is_set: the context was given outright, so only decode is priced.
    """

    prompt_tokens: int
    output_tokens: int
    context_tokens: float
    capacity_context_tokens: float
    context_is_set: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Latency limits [s]; None where there is none."""

    tpot_s: float | None = None
    ttft_s: float | None = None
