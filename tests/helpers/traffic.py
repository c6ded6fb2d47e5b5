"""Small traces and servers drawn at random, for engines to agree on."""

from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from slicewise.traffic.requests import Requests
from slicewise.traffic.server import CHUNKED, Outcome, Policy, Server
from slicewise.traffic.times import Times

MOST_PROMPT, MOST_OUTPUT, MOST_SEQS, LONGEST = 40, 24, 6, 60
"""Of what is drawn. Not all of it fits tables of the longest, so that some is dropped."""
UNEVEN = 0.7390851332151607
"""Times are multiples of it where arrivals are multiples of a quarter: the two never meet but by chance."""


def made_requests(
    rows: list[tuple[float, int, int]], prefixes: tuple[tuple[int, ...], ...] = (), prefix_block_tokens: int = 0
) -> Requests:
    """Requests of rows of arrival, prompt and output."""
    columns: Any = zip(*rows, strict=True) if rows else ((), (), ())
    arrival_s, prompt_tokens, output_tokens = columns
    return Requests(
        arrival_s=np.array(arrival_s, dtype=np.float64),
        prompt_tokens=np.array(prompt_tokens, dtype=np.int64),
        output_tokens=np.array(output_tokens, dtype=np.int64),
        prefixes=prefixes,
        prefix_block_tokens=prefix_block_tokens,
    )


@st.composite
def small_traces(draw: st.DrawFn) -> Requests:
    """Up to 25 requests, many of them at one time or while others wait, some with prompts that begin alike."""
    n = draw(st.integers(0, 25) | st.integers(8, 25))

    def column(values: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=n, max_size=n))

    gaps = column(st.sampled_from([0, 0, 1, 2, 5, 12, 60, 200]))
    prompts, outputs = column(st.integers(1, MOST_PROMPT)), column(st.integers(1, MOST_OUTPUT))
    size = draw(st.sampled_from([0, 1, 3, 8]))
    prefixes = []
    if size:
        families, shared = column(st.integers(0, 2)), column(st.integers(0, MOST_PROMPT))
        for request, (tokens, family, same) in enumerate(zip(prompts, families, shared, strict=True)):
            # Blocks are those of the family as far as they are shared, and then the request's own.
            blocks = range(-(-tokens // size))
            prefixes.append(tuple((family if at < same else 1000 + request) * 1000 + at for at in blocks))
    arrivals = [gap / 4 for gap in accumulate(gaps)]
    return made_requests(list(zip(arrivals, prompts, outputs, strict=True)), tuple(prefixes), size)


def even_times(step_s: float, per_sequence_s: float, per_held_token_s: float, prompt_s: float) -> Times:
    """Times of which sums are exact in floating point, given multiples of powers of two: nothing is ever rounded.

    A step takes a share for each token that is held, in all: as a line over the mean it rises with the batch.
    """
    batches, knots = np.arange(MOST_SEQS + 1.0)[:, None], np.array([0.0, 64.0, 128.0])
    steps_s = step_s + per_sequence_s * batches + per_held_token_s * batches * knots
    return Times(knots=knots, steps_s=steps_s, prefills_s=0.5 + prompt_s * np.arange(LONGEST + 1.0))


@st.composite
def even_tables(draw: st.DrawFn) -> Times:
    """Times that meet arrivals exactly, again and again."""
    return even_times(
        draw(st.sampled_from([0.25, 0.5, 1.0])),
        draw(st.sampled_from([0.0, 0.25])),
        draw(st.sampled_from([0.0, 1 / 64])),
        draw(st.sampled_from([0.0, 0.25])),
    )


@st.composite
def uneven_tables(draw: st.DrawFn) -> Times:
    """Times with kinks, up or down, and rows that know nothing of each other."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    inner = np.unique(rng.integers(1, 2 * LONGEST, rng.integers(1, 6)))
    steps = rng.integers(1, 100, (MOST_SEQS + 1, len(inner) + 1)) * draw(st.sampled_from([1 / 64, 1 / 4]))
    # Beyond the last knot a line goes on, and may not fall below nothing.
    steps[:, -1] = np.maximum(steps[:, -1], steps[:, -2])
    prefills = np.cumsum([rng.integers(1, 50), *rng.integers(0, 10, LONGEST)]) / 32
    shared = draw(st.sampled_from([None, 0.0, 0.25, 2.0]))
    # What prompts of an iteration share: None of it told, nothing, a little, or more than short prompts' own work.
    works = None if shared is None else np.maximum(prefills - shared * prefills[min(20, LONGEST)], 0) * UNEVEN**0.5
    return Times(
        knots=np.array([0.0, *inner]), steps_s=steps * UNEVEN, prefills_s=prefills * UNEVEN**0.5, works_s=works
    )


@st.composite
def small_servers(draw: st.DrawFn, kind: str, tables: st.SearchStrategy[Times] | None = None) -> Server:
    """A server whose cache may be too small for two requests, or hold them all."""
    seqs = draw(st.integers(1, MOST_SEQS) | st.just(MOST_SEQS))
    block_tokens = draw(st.sampled_from([1, 2, 5, 16]))
    room = draw(st.integers(0, 60) | st.integers(50, 90) | st.integers(60, 300))
    return Server(
        times=draw(even_tables() | uneven_tables() if tables is None else tables),
        n_blocks=room // block_tokens,
        policy=Policy(
            kind=kind,
            max_num_seqs=seqs,
            max_num_batched_tokens=draw(st.integers(1, 30)) if kind == CHUNKED else 8192,
            block_tokens=block_tokens,
            caches_prefixes=draw(st.booleans()),
        ),
    )


def assert_same(found: Outcome, right: Outcome) -> None:
    """Two outcomes are alike: counts exactly, times to rounding."""
    for name in ("server", "preemptions", "cached_tokens"):
        np.testing.assert_array_equal(getattr(found, name), getattr(right, name), err_msg=name)
    for name in ("start_s", "first_token_s", "finish_s"):
        np.testing.assert_allclose(getattr(found, name), getattr(right, name), rtol=1e-9, atol=0, err_msg=name)
    # Gaps are differences of times, and rounded as those are.
    np.testing.assert_allclose(each_gap_s(found), each_gap_s(right), rtol=1e-9, atol=1e-12, err_msg="gaps")


def each_gap_s(outcome: Outcome) -> NDArray[np.float64]:
    """The gap before each token but the first ones, the shortest first. [s]"""
    gaps = [
        np.repeat(first_s + growth_s * np.arange(n_steps), int(sequences))
        for _, first_s, growth_s, n_steps, sequences in outcome.gaps
    ]
    return np.sort(np.concatenate([np.zeros(0), *gaps]))
