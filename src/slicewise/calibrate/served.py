"""What all benchmarks of a server share: with one request at a time, two of their times are those of a plan.

The median time between tokens is then a decode step of batch 1, and the median time to the first token the prefill of
one prompt, with the server's own overhead in both. With more requests at a time, the prefill of others stands inside
the time between tokens, and waiting inside the time to the first: neither is a time of a known batch.
"""

from __future__ import annotations

from dataclasses import replace

from slicewise.calibrate.measurement import DECODE, PREFILL
from slicewise.calibrate.stated import Sifted, Stated, is_known, model_name

CROWDED = "more than one request at a time: the prefill of others is in the time per token"
OPEN = "requests at a time are not bounded by 1: other requests are in the times"
NO_TPOT = "no time per output token: not streamed, or one token of output"
NO_TTFT = "no time to the first token: not streamed"
NO_LENGTHS = "no request was completed"
SPECULATIVE = "speculative decoding: a step gives more than one token"
SPLIT = "prefill and decode on different chips: the hand-over is in the times"


def crowd(concurrency: int | None) -> Sifted:
    """A run with more than one request at a time, of which nothing is of use; None is as many as come."""
    return Sifted(left_out=(OPEN if concurrency is None else CROWDED,))


def sifted(about: Stated, ttft_s: float | None, tpot_s: float | None) -> Sifted:
    """The decode step and the prefill of a run with one request at a time.

    Args:
        about: what both times share; its own phase and time are left aside.
        ttft_s: median time to the first token, if there is one. [s]
        tpot_s: median time between tokens, if there is one. [s]
    """
    found, why = [], []
    for phase, time_s, reason in ((DECODE, tpot_s, NO_TPOT), (PREFILL, ttft_s, NO_TTFT)):
        if time_s is None:
            why.append(reason)
        else:
            found.append(replace(about, phase=phase, seconds=time_s, batch=1))
    return Sifted(stated=tuple(found), left_out=tuple(why))


def served_model(name: str | None) -> tuple[str | None, frozenset[str]]:
    """The model of the name that a server answers to, and whether a flag may say what it means: not if it is known."""
    known = None if name is None else model_name(name)
    return known, frozenset() if known is not None and is_known(known) else frozenset({"model"})
