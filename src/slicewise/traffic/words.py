"""The words of a load and of servers' rules, and the reading of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from slicewise.errors import InputError
from slicewise.planner.flags import DEFAULT_ISL, DEFAULT_OSL, Quantity, positive, truth
from slicewise.traffic import synthetic
from slicewise.traffic.read import read_trace
from slicewise.traffic.requests import Floats, Ints, Requests
from slicewise.traffic.server import CHUNKED, POLICIES, PREFILL_FIRST, ROUTES, Policy
from slicewise.units import parse, parse_count

DEFAULT_REQUESTS = 2000
LEAST_S = 300.0
"""Time for which a load comes where no count of requests is given."""
MOST_BY_DEFAULT = 200_000
DEFAULT_SEQUENCES = 256
"""Sequences of a batch where none are given: an engine's default for years."""
DEFAULT_TOKENS = 8192
DEFAULT_BLOCK = 16
DEFAULT_ROUTE = "least-loaded"
LENGTHS = ("isl", "osl", "sigma")
MADE = ("requests", "burstiness", "on", "off")
"""Words of arrivals that no trace has."""
MOST_SEQUENCES = 2**16
"""Of a batch: engines stay far below."""
MOST_SEED = 2**53
"""Larger whole numbers are no longer told apart."""
MOST_SPAN_S = 10**9
"""From the first arrival to the last, 30 years: over more, rounding eats into the time of a step."""


class LoadWords(TypedDict, total=False):
    """What is asked of the servers; each is the command line's flag of that name. None: not given."""

    trace: str | Path | Requests | None
    requests: Quantity | None
    isl: Quantity | None
    osl: Quantity | None
    sigma: Quantity | None
    burstiness: Quantity | None
    on: Quantity | None
    off: Quantity | None


class RuleWords(TypedDict, total=False):
    """How servers take requests; each is the command line's flag of that name. None: not given."""

    policy: str | None
    batch: Quantity | None
    max_num_batched_tokens: Quantity | None
    block_size: Quantity | None
    prefix_cache: bool | None
    route: str | None


LOAD, RULES = tuple(LoadWords.__annotations__), tuple(RuleWords.__annotations__)


def requests_of(words: Mapping[str, Any], rate: float | None, seed: int) -> Requests:
    """The requests that words describe: a trace, one with another rate, or some that are made.

    - A trace as it is; with a rate its time is stretched evenly, so that bursts stay.
    - With requests, burstiness, or on and off: so many, with lengths drawn from the trace and arrivals made.
    - Without a trace: lengths of isl and osl, all alike or (sigma) lognormal, and arrivals made.

    Args:
        words: those of `LoadWords`.
        rate: requests a second; None for the trace's own.
        seed: of what is random.

    Raises:
        InputError: a word is off, or some do not go together.
    """
    trace = words.get("trace")
    if trace is None:
        return _made(words, rate, seed)
    given = next((name for name in LENGTHS if words.get(name) is not None), None)
    if given:
        raise InputError(f"--{given}: the trace has lengths; leave out --trace, or --{given}")
    found = _trace(trace)
    if any(words.get(name) is not None for name in MADE):
        return _drawn(found, words, rate, seed)
    return _spanning(found if rate is None else synthetic.rescaled(found, rate))


def seed_of(value: object) -> int:
    """A seed; 0 where none is given.

    Raises:
        InputError: it is no whole number from 0 on, or too large to be told from its neighbours.
    """
    seed = 0.0 if value is None else parse(value, "count", "--seed")  # type: ignore[arg-type]  # refused there
    if not 0 <= seed < MOST_SEED or seed != int(seed):
        raise InputError(f"--seed: {value} is no whole number from 0 to {MOST_SEED - 1:,}; write for example 0")
    return int(seed)


def policy_of(words: Mapping[str, Any], requests: Requests) -> Policy:
    """The rules of a server.

    Raises:
        InputError: a word is off, or the prompts' blocks are not known to a prefix cache.
    """
    kind = kind_of(words)
    caches = truth(words.get("prefix_cache"), "--prefix-cache")
    if caches and not requests.prefixes:
        raise InputError(
            "--prefix-cache: no hashes of the prompts' blocks are known; give a trace with hash_ids, as it is"
        )
    if not caches and words.get("route") == "prefix-aware":
        raise InputError("--route prefix-aware: there is no cache to look into; add --prefix-cache, or leave it out")
    tokens = words.get("max_num_batched_tokens")
    if tokens is not None and kind != CHUNKED:
        raise InputError(f"--max-num-batched-tokens: {kind} cuts no prompts; add --policy {CHUNKED}, or leave it out")
    policy = Policy(
        kind=kind,
        max_num_seqs=_count(words, "batch", DEFAULT_SEQUENCES, "sequences", MOST_SEQUENCES),
        max_num_batched_tokens=_count(words, "max_num_batched_tokens", DEFAULT_TOKENS),
        block_tokens=_count(words, "block_size", DEFAULT_BLOCK),
        caches_prefixes=caches,
    )
    if kind == CHUNKED and policy.max_num_seqs > policy.max_num_batched_tokens:
        raise InputError(
            f"--max-num-batched-tokens: {policy.max_num_batched_tokens:,} is fewer than a token for each of"
            f" {policy.max_num_seqs:,} sequences; give more, or a smaller --batch"
        )
    return policy


def route_of(words: Mapping[str, Any]) -> str:
    """How requests find their server.

    Raises:
        InputError: it is not known.
    """
    return _choice(words, "route", ROUTES, DEFAULT_ROUTE)


def kind_of(words: Mapping[str, Any]) -> str:
    """How a server takes requests.

    Raises:
        InputError: it is not known.
    """
    return _choice(words, "policy", POLICIES, PREFILL_FIRST)


def _trace(trace: object) -> Requests:
    """The requests of a file, or those that are given.

    Raises:
        InputError: they are none, or not as `Requests` has them.
    """
    if isinstance(trace, str | Path):
        return read_trace(trace)
    if not isinstance(trace, Requests):
        raise InputError(f"--trace: {str(trace)[:40]!r} is no file; give its path, or Requests")
    columns = (trace.arrival_s, trace.prompt_tokens, trace.output_tokens)
    if len({len(column) for column in columns}) > 1 or len(trace.prefixes) not in (0, len(trace)):
        raise InputError(
            "--trace: the columns of these Requests are not as long as each other; give an entry a request"
        )
    if not len(trace):
        raise InputError("--trace: these Requests hold none; give at least one")
    if not np.isfinite(trace.arrival_s).all() or trace.arrival_s[0] < 0 or (np.diff(trace.arrival_s) < 0).any():
        raise InputError("--trace: arrivals of these Requests fall, or are no times from 0 on; sort them")
    if min(trace.prompt_tokens.min(), trace.output_tokens.min()) < 1:
        raise InputError("--trace: some of these Requests have fewer than one token; leave them out")
    if trace.prefixes and trace.prefix_block_tokens < 1:
        raise InputError("--trace: these Requests have prefixes of no size; give prefix_block_tokens")
    return trace


def _spanning(requests: Requests) -> Requests:
    """Requests whose arrivals are close enough to tell times between them.

    Raises:
        InputError: they are not.
    """
    span_s = float(requests.arrival_s[-1] - requests.arrival_s[0])
    if span_s > MOST_SPAN_S:
        raise InputError(
            f"requests arrive over {span_s:.3g} s, and more than {MOST_SPAN_S:,} s are not simulated; give a higher"
            " --rate, or fewer requests"
        )
    return requests


def _choice(words: Mapping[str, Any], name: str, offered: tuple[str, ...], default: str) -> str:
    value = words.get(name)
    if value is None:
        return default
    if value not in offered:
        raise InputError(f"--{name} '{str(value)[:40]}' is not offered; choose {', '.join(offered)}")
    return str(value)


def _count(words: Mapping[str, Any], name: str, default: int, unit: str = "count", most: int | None = None) -> int:
    value, flag = words.get(name), f"--{name.replace('_', '-')}"
    found = default if value is None else parse_count(value, flag, unit)
    if most is not None and found > most:
        raise InputError(f"{flag}: {found:,} is more than the {most:,} that are simulated; give fewer")
    return found


def _number(words: Mapping[str, Any], name: str, default: float) -> float:
    value = words.get(name)
    return default if value is None else parse(value, "fraction", f"--{name}")


def _made(words: Mapping[str, Any], rate: float | None, seed: int) -> Requests:
    if rate is None:
        raise InputError("there is no load: give --trace FILE, or --rate with --isl and --osl")
    # At a high rate so few would be over before a queue shows that the rate is too much.
    lasting = max(DEFAULT_REQUESTS, min(int(rate * LEAST_S), MOST_BY_DEFAULT))
    n = _count(words, "requests", lasting, most=synthetic.MOST_REQUESTS)
    prompt, output = (
        _count(words, name, default, most=synthetic.MOST_TOKENS)
        for name, default in (("isl", DEFAULT_ISL), ("osl", DEFAULT_OSL))
    )
    generator, sigma = np.random.default_rng(seed), _number(words, "sigma", 0.0)
    prompts, outputs = (
        synthetic.lognormal(n, tokens, sigma, generator) if sigma else synthetic.fixed(n, tokens)
        for tokens in (prompt, output)
    )
    spread = f", lognormal with sigma {sigma:g}" if sigma else ""
    arrival_s, how = _arrivals(words, n, rate, generator)
    source = f"{n:,} requests of {prompt:,} and {output:,} tokens{spread}, {how}"
    return _spanning(Requests(arrival_s=arrival_s, prompt_tokens=prompts, output_tokens=outputs, source=source))


def _drawn(trace: Requests, words: Mapping[str, Any], rate: float | None, seed: int) -> Requests:
    generator = np.random.default_rng(seed)
    n = _count(words, "requests", len(trace), most=synthetic.MOST_REQUESTS)
    drawn: tuple[Ints, Ints] = synthetic.drawn_from(trace, n, generator)
    arrival_s, how = _arrivals(words, n, rate or synthetic.mean_rate(trace), generator)
    source = f"{n:,} requests drawn from {trace.source}, {how}"
    return _spanning(
        Requests(
            arrival_s=arrival_s, prompt_tokens=drawn[0], output_tokens=drawn[1], source=source, dropped=trace.dropped
        )
    )


def _at_rate(arrival_s: Floats, rate: float) -> Floats:
    """Arrivals stretched to come at a mean rate, from the first to the last, which chance misses by some percent."""
    span_s = float(arrival_s[-1] - arrival_s[0])
    return arrival_s * ((len(arrival_s) - 1) / span_s / rate) if span_s > 0 else arrival_s


def _arrivals(words: Mapping[str, Any], n: int, rate: float, seed: np.random.Generator) -> tuple[Floats, str]:
    """Arrivals, and how they come, in words. Shape (n,)."""
    on_s, off_s = positive(words.get("on"), "s", "--on"), positive(words.get("off"), "s", "--off")
    if (on_s is None) != (off_s is None):
        raise InputError("--on and --off: one is given; give both, or neither")
    burstiness = _number(words, "burstiness", 1.0)
    if on_s is None or off_s is None:
        kind = "Poisson arrivals" if burstiness == 1 else f"Gamma arrivals of burstiness {burstiness:g}"
        return _at_rate(synthetic.arrivals(n, rate, burstiness=burstiness, seed=seed), rate), kind
    if words.get("burstiness") is not None:
        raise InputError("--burstiness: what is on and off is a Poisson process while it is on; leave one of them out")
    return synthetic.on_off(n, rate, on_s=on_s, off_s=off_s, seed=seed), f"on for {on_s:g} s, then off for {off_s:g} s"
