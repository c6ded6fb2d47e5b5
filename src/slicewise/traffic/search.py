"""Searches for the cheapest counts of servers, as generators that ask whether counts meet the limits.

Each yields counts (servers, prefill servers), is sent whether they do, and returns the cheapest that do; None where
none does. They hold that one more server never hurts. Percentiles may break that by a little: each neighbour below the
answer was asked for and rejected even then, but counts still further below may have done.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

Counts = tuple[int, int]
"""Servers (of a split fleet, decode servers) and prefill servers; of those 0 where each server does both."""
Search = Generator[Counts, bool, Counts | None]
Key = Callable[[Counts], tuple[Any, ...]]
"""What counts cost, to compare by; it rises with each of them."""
_At = Callable[[int], Counts]
_FIRST_STEP = 4
"""The first step up is a start's quarter: a start is what the work takes at full load, and limits ask for some more."""


def shared_search(start: int, most: int) -> Search:
    """The fewest servers that do both phases.

    Args:
        start: where to begin; near the answer saves questions.
        most: that are tried.
    """
    found = yield from _fewest(lambda n: (n, 0), start, most)
    return None if found is None else (found, 0)


def split_search(start: Counts, most: int, key: Key) -> Search:
    """The cheapest decode and prefill servers.

    The fewest decode servers with prefill servers in plenty, and for them the fewest prefill servers, are the cheapest
    pair unless more of the one save enough of the other. Pairs of that kind are looked for until none could be cheaper.

    Args:
        start: where to begin.
        most: of each that are tried.
        key: what counts cost.
    """
    decoders = yield from _fewest(lambda n: (n, most), start[0], most)
    if decoders is None:
        return None
    prefillers = yield from _fewest(lambda n: (decoders, n), start[1], most)
    if prefillers is None:
        return None
    found = yield from _traded((decoders, prefillers), most, key)
    return (yield from _settled(found, most, key))


def _fewest(at: _At, start: int, most: int) -> Generator[Counts, bool, int | None]:
    """Upwards in steps that double, then down between the last two."""
    low, n = 0, min(max(start, 1), most)
    step = max(n // _FIRST_STEP, 1)
    while not (yield at(n)):
        if n == most:
            return None
        low, n, step = n, min(n + step, most), 2 * step
    return (yield from _fewest_below(at, low, n))


def _fewest_below(at: _At, low: int, high: int) -> Generator[Counts, bool, int]:
    """Between counts of which the lower is rejected, or 0, and the higher is not: close to it first, then by halves."""
    step = 1
    while not low and high > 1:
        n = max(high - step, 1)
        if (yield at(n)):
            high, step = n, 2 * step
        else:
            low = n
    while high - low > 1:
        n = (low + high) // 2
        if (yield at(n)):
            high = n
        else:
            low = n
    return high


def _traded(best: Counts, most: int, key: Key) -> Generator[Counts, bool, Counts]:
    """A cheaper pair of more decode and fewer prefill servers, where there is one."""
    low, prefillers = best
    # No cheaper pair has more decode servers than this, and so none fewer prefill servers than these need.
    widest = _affordable(1, best, most, key)
    if prefillers == 1 or widest <= low:
        return best
    fewest = yield from _fewest_below(lambda n: (widest, n), 0, prefillers)
    for n in range(prefillers - 1, fewest - 1, -1):
        high = _affordable(n, best, most, key)
        if high > low and (yield (high, n)):
            found = yield from _fewest_below(partial(_with, n), low, high)
            best, low = (found, n), found - 1
    return best


def _with(prefillers: int, decoders: int) -> Counts:
    return decoders, prefillers


def _affordable(prefillers: int, best: Counts, most: int, key: Key) -> int:
    """The most decode servers beside so many prefill servers that still cost less than the best pair."""
    return _most_below(lambda n: (n, prefillers), best, most, key)


def _most_below(at: _At, best: Counts, most: int, key: Key) -> int:
    low, high = 0, most
    while low < high:
        n = (low + high + 1) // 2
        low, high = (n, high) if key(at(n)) < key(best) else (low, n - 1)
    return low


def _settled(best: Counts, most: int, key: Key) -> Generator[Counts, bool, Counts]:
    """Down until both neighbours below are rejected, as they are at once where one more server never hurts.

    Many prefill servers pass a burst on whole, which is harder on decode servers than what few of them let through. So
    one decode server fewer is tried with as many prefill servers as it pays for, too.
    """
    while True:
        fewer, prefillers = best[0] - 1, best[1]
        more = _most_below(lambda n: (fewer, n), best, most, key)  # noqa: B023 - used at once
        for counts in ((fewer, prefillers), (best[0], prefillers - 1), (fewer, more)):
            if min(counts) and (yield counts):
                best = counts
                break
        else:
            return best
