"""Requests that no one sent: arrivals by a law, lengths by a distribution, and traces stretched or drawn from.

Each function takes a seed (or a generator, to go on with), and gives the same for the same seed. Does not cover users
who wait for an answer before they ask again, or rates that drift over a day.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slicewise.errors import InputError
from slicewise.traffic.requests import Floats, Ints, Requests
from slicewise.units import MILLION

MOST_REQUESTS = int(100 * MILLION)
"""That are made at once."""
MOST_TOKENS = 10**9
"""Of a prompt or an output: none comes near."""
_MOST_SIGMA = 5.0
"""At 5, the mean is 270,000 times the median."""
_HUGE = 1e30
"""No rate or time comes near; products and sums of what is smaller stay finite."""

Seed = int | np.random.Generator


def arrivals(n: int, rate: float, *, burstiness: float = 1.0, seed: Seed) -> Floats:
    """Arrivals whose gaps are drawn from a Gamma distribution. [s] Shape (n,), rising.

    Gaps of mean 1 / rate and variance 1 / (burstiness rate²): 1 is a Poisson process, less comes in bursts, and more
    is more even, as with the flag --burstiness of vLLM's benchmark. The first request comes after a gap, too.

    Args:
        n: requests, at least 1.
        rate: requests a second in the mean.
        burstiness: inverse of the squared coefficient of variation of the gaps.
        seed: of the random numbers.

    Raises:
        InputError: there is no such process.
    """
    _refuse_count(n)
    _refuse_unless_positive("rate", rate, "10 requests a second")
    _refuse_unless_positive("burstiness", burstiness, "1 for a Poisson process")
    gaps: Floats = _generator(seed).gamma(burstiness, 1 / (rate * burstiness), n)
    return np.cumsum(gaps)


def on_off(n: int, rate: float, *, on_s: float, off_s: float, seed: Seed) -> Floats:
    """Arrivals of a Poisson process that is on for a time, then off for a time, again and again. [s] Shape (n,).

    While on, requests come at rate (on_s + off_s) / on_s, so that over both it is `rate`. It begins as it turns on.

    Args:
        n: requests, at least 1.
        rate: requests a second in the mean over on and off.
        on_s: how long it is on.
        off_s: how long it is off; 0 leaves a Poisson process.
        seed: of the random numbers.

    Raises:
        InputError: there is no such process.
    """
    _refuse_unless_positive("rate", rate, "10 requests a second")
    _refuse_unless_positive("on_s", on_s, "5 seconds")
    if not _is_real(off_s) or not 0 <= off_s <= _HUGE:
        raise InputError(f"off_s: {off_s} is no sensible time from 0 on; give for example 5 seconds")
    busy_s = arrivals(n, rate * (on_s + off_s) / on_s, seed=seed)
    return busy_s + np.floor(busy_s / on_s) * off_s


def fixed(n: int, tokens: int) -> Ints:
    """The same length for all. Shape (n,).

    >>> fixed(3, 512).tolist()
    [512, 512, 512]

    Raises:
        InputError: no count of requests, or of tokens.
    """
    _refuse_count(n)
    if not _is_whole(tokens) or not 1 <= tokens <= MOST_TOKENS:
        raise InputError(f"tokens: {tokens} is not a whole number from 1 to {MOST_TOKENS:,}; give for example 512")
    return np.full(n, tokens, np.int64)


def lognormal(n: int, mean: float, sigma: float, seed: Seed) -> Ints:
    """Lengths of which most are short and some are very long. Shape (n,), at least 1 each.

    One token, and beside it as many as a lognormal distribution of mean `mean` - 1 gives, rounded up or down at random
    so that the mean stays exact: 1 + floor(X + U) with ln X ~ N(ln(mean - 1) - sigma² / 2, sigma²), U uniform.
    Neglects: lengths above 10**9, which are cut to it.

    Args:
        n: how many, at least 1.
        mean: of the distribution, in tokens; at least 1. That of the n lengths scatters around it.
        sigma: standard deviation of the logarithm; 0 gives lengths that are all alike, but for rounding. At most 5.
        seed: of the random numbers.

    Raises:
        InputError: there is no such distribution.
    """
    _refuse_count(n)
    if not _is_real(mean) or not 1 <= mean <= MOST_TOKENS:
        raise InputError(f"mean: {mean} is not from 1 to {MOST_TOKENS:,} tokens; give for example 512")
    if not _is_real(sigma) or not 0 <= sigma <= _MOST_SIGMA:
        raise InputError(f"sigma: {sigma} is not from 0 to {_MOST_SIGMA:g}; give for example 1")
    generator = _generator(seed)
    above = (mean - 1) * np.exp(sigma * generator.standard_normal(n) - sigma**2 / 2)
    lengths = np.minimum(1 + np.floor(above + generator.random(n)), MOST_TOKENS)
    return np.asarray(lengths, np.int64)


def drawn_from(requests: Requests, n: int, seed: Seed) -> tuple[Ints, Ints]:
    """Prompts and outputs drawn from a trace with replacement, each pair from one of its requests. Shapes (n,).

    Raises:
        InputError: the trace is empty, or there is no such count of requests.
    """
    _refuse_count(n)
    if not len(requests):
        raise InputError("the trace has no request to draw from; give one with requests")
    at = _generator(seed).integers(len(requests), size=n)
    return requests.prompt_tokens[at], requests.output_tokens[at]


def repeated(requests: Requests, n: int, rate: float, *, burstiness: float = 1.0, seed: Seed) -> Requests:
    """Requests with lengths of a trace, drawn as pairs, and arrivals of their own.

    Prefixes are left out: of a request that is drawn twice, the second would find its whole prompt in the cache.

    Args:
        requests: the trace.
        n: requests to make, at least 1.
        rate: requests a second in the mean.
        burstiness: as of `arrivals`: 1 is a Poisson process.
        seed: of the random numbers.

    Raises:
        InputError: the trace is empty, or there is no such process.
    """
    generator = _generator(seed)
    prompts, outputs = drawn_from(requests, n, generator)
    return Requests(
        arrival_s=arrivals(n, rate, burstiness=burstiness, seed=generator),
        prompt_tokens=prompts,
        output_tokens=outputs,
        source=f"{n:,} requests drawn from {requests.source or 'a trace'}, at {rate:g} a second",
    )


def mean_rate(requests: Requests) -> float:
    """Requests a second: gaps by the time from the first request to the last. [1/s]

    Raises:
        InputError: fewer than two requests, or all at one time.
    """
    spans = len(requests) > 1
    span_s = float(requests.arrival_s[-1] - requests.arrival_s[0]) if spans else 0.0
    if not span_s > 0:
        raise InputError(
            "the trace has no mean rate, as its requests are at one time; give one with two times at least"
        )
    return (len(requests) - 1) / span_s


def rescaled(requests: Requests, rate: float) -> Requests:
    """A trace whose time is stretched or squeezed evenly, so that its mean rate is another; bursts stay bursts.

    Args:
        requests: the trace.
        rate: requests a second from the first to the last.

    Raises:
        InputError: no rate above zero, or the trace has none.
    """
    _refuse_unless_positive("rate", rate, "10 requests a second")
    stretch = mean_rate(requests) / rate
    source = f"{requests.source or 'a trace'}, at {rate:g} requests a second"
    return replace(requests, arrival_s=requests.arrival_s * stretch, source=source)


def _generator(seed: Seed) -> np.random.Generator:
    is_seed = isinstance(seed, np.random.Generator) or (_is_whole(seed) and seed >= 0)
    if not is_seed:
        raise InputError(f"seed: {seed} is not a whole number from 0 on; give for example 0")
    return np.random.default_rng(seed)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return _is_whole(value) or isinstance(value, float | np.floating)


def _refuse_count(n: int) -> None:
    if not _is_whole(n) or not 1 <= n <= MOST_REQUESTS:
        raise InputError(f"n: {n} is not a whole number from 1 to {MOST_REQUESTS:,}; give for example 1000")


def _refuse_unless_positive(what: str, value: float, example: str) -> None:
    if not _is_real(value) or not 1 / _HUGE <= value <= _HUGE:
        raise InputError(f"{what}: {str(value)[:40]} is no sensible number above 0; give for example {example}")
