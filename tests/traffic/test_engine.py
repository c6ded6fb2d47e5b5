"""The event engine against the step-by-step one, which shares no code with it, on traces drawn at random.

The two sum steps in another order. Where times are such that no sum is rounded, they meet arrivals exactly; else they
are such that they do not meet them at all, so that it does not hang on rounding what comes first.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from helpers.traffic import (
    LONGEST,
    assert_same,
    even_tables,
    even_times,
    made_requests,
    small_servers,
    small_traces,
    uneven_tables,
)
from slicewise.errors import InputError
from slicewise.traffic import engine, reference
from slicewise.traffic.fleets import Fleet, PrefillPool, outcome_of
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import DECODE, POLICIES, PREFILL_FIRST, ROUTES, STATIC, Outcome, Policy, Server
from slicewise.traffic.times import Times

KINDS = (*POLICIES, DECODE)
EXAMPLES = 170
"""Of each policy and route: 510 traces a policy, as each route draws its own."""
EACH = list(enumerate(product(KINDS, ROUTES)))


def drawn(number: int, check: Callable[..., None], *strategies: st.SearchStrategy) -> None:
    """Call a check with so many examples, of draws of its own by a number."""
    settings(max_examples=EXAMPLES)(seed(number)(given(*strategies)(check)))()


@pytest.mark.parametrize(("number", "kind", "route"), [(at, *each) for at, each in EACH])
def test_both_engines_agree(number: int, kind: str, route: str) -> None:
    seen: Counter[str] = Counter()

    def agree(requests: Requests, server: Server, n_servers: int) -> None:
        right = reference.simulate(requests, server, n_servers, route)
        assert_same(engine.simulate(requests, server, n_servers, route), right)
        count(seen, requests, right)

    drawn(number, agree, small_traces(), small_servers(kind), st.integers(1, 3))
    # Traces on which nothing happens would prove nothing.
    assert seen["traces"] >= EXAMPLES
    assert seen["dropped"] > EXAMPLES / 5
    assert seen["queued"] > EXAMPLES / 3
    assert seen["cached"] > EXAMPLES / 20
    assert seen["several servers"] > EXAMPLES / 5
    assert seen["at one time"] > EXAMPLES / 4
    if kind != STATIC:  # a static batch has room for all that it will hold
        assert seen["preempted"] > EXAMPLES / 10
        assert seen["preempted again"] > EXAMPLES / 100
        assert seen["cached and preempted"] > EXAMPLES / 100


def count(seen: Counter[str], requests: Requests, outcome: Outcome) -> None:
    """Note what a trace led to."""
    led_to = {
        "traces": True,
        "dropped": (outcome.server < 0).any(),
        "queued": (outcome.start_s > requests.arrival_s).any(),
        "cached": outcome.cached_tokens.any(),
        "preempted": outcome.preemptions.any(),
        "preempted again": (outcome.preemptions > 1).any(),
        "cached and preempted": outcome.cached_tokens.any() and outcome.preemptions.any(),
        "several servers": (outcome.server > 0).any(),
        "at one time": (np.diff(requests.arrival_s) == 0).any(),
    }
    seen.update(name for name, is_so in led_to.items() if is_so)


# --- prefill servers before decode servers --------------------------------------------------------------------------


class PoolServer:
    """A prefill server: when it was last free, and what it keeps of prompts, the least recent first."""

    def __init__(self, number: int) -> None:
        self.number, self.free_s, self.blocks = number, 0.0, list[int]()

    def hits(self, prefix: tuple[int, ...]) -> int:
        return next((at for at, block in enumerate(prefix) if block not in self.blocks), len(prefix))

    def keep(self, prefix: tuple[int, ...], most: int) -> None:
        self.blocks = [*(block for block in self.blocks if block not in prefix), *prefix]
        self.blocks = self.blocks[max(len(self.blocks) - most, 0) :]


def pool_by_steps(requests: Requests, fleet: Fleet, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """When each prompt begins and ends, and what is cached: from one moment at which something changes to the next."""
    pool = fleet.prefill
    assert pool is not None
    begins_s, ends_s = (np.full(len(requests), np.nan) for _ in range(2))
    cached = np.zeros(len(requests), dtype=np.int64)
    coming, queue = [int(at) for at in np.flatnonzero(kept)], list[int]()
    servers = [PoolServer(number) for number in range(pool.n_servers)]
    size = requests.prefix_block_tokens if pool.cache_tokens else 0
    now_s = 0.0
    while coming or queue:
        while coming and requests.arrival_s[coming[0]] == now_s:
            queue.append(coming.pop(0))
        while queue and (idle := [each for each in servers if each.free_s <= now_s]):
            request = queue.pop(0)
            tokens = int(requests.prompt_tokens[request])
            prefix = requests.prefixes[request] if size else ()
            # Of those that have most of the prompt, where it matters, the one that is idle for longest.
            # A prompt that waited takes the first that is free.
            wanted = prefix if fleet.route == "prefix-aware" and now_s == requests.arrival_s[request] else ()
            server = min((-each.hits(wanted), each.free_s, each.number, each) for each in idle)[-1]
            if size:
                cached[request] = size * min(server.hits(prefix), (tokens - 1) // size)
                server.keep(prefix[: tokens // size], max(pool.cache_tokens - tokens, 0) // size)
            begins_s[request] = now_s
            work_s = pool.prefills_s[0] + (pool.prefills_s[tokens] - pool.prefills_s[cached[request]])
            server.free_s = ends_s[request] = now_s + work_s
        moments = [each.free_s for each in servers if each.free_s > now_s]
        now_s = min([*moments, *([requests.arrival_s[coming[0]]] if coming else [])], default=now_s)
    return begins_s, ends_s, cached


def split_by_steps(requests: Requests, fleet: Fleet) -> Outcome:
    """What becomes of requests on a split fleet, step by step."""
    pool = fleet.prefill
    assert pool is not None
    held = requests.prompt_tokens + requests.output_tokens - 1
    blocks = -(-held // fleet.server.policy.block_tokens)
    longest = len(fleet.server.times.prefills_s) - 1
    kept = (blocks <= fleet.server.n_blocks) & (held <= longest)
    kept &= requests.prompt_tokens < len(pool.prefills_s)
    start_s, end_s, cached = pool_by_steps(requests, fleet, kept)
    first_s = end_s + requests.prompt_tokens * pool.handoff_s_per_token
    rows = sorted(np.flatnonzero(kept & (requests.output_tokens > 1)), key=lambda row: first_s[row])
    handed = made_requests([(first_s[row], requests.prompt_tokens[row], requests.output_tokens[row]) for row in rows])
    decoder = replace(fleet.server, policy=replace(fleet.server.policy, kind=DECODE))
    decoded = reference.simulate(handed, decoder, fleet.n_servers, fleet.route)
    finish_s, server, preemptions = first_s.copy(), np.where(kept, 0, -1), np.zeros(len(requests), dtype=np.int64)
    finish_s[rows], server[rows], preemptions[rows] = decoded.finish_s, decoded.server, decoded.preemptions
    return Outcome(
        server=server,
        start_s=start_s,
        first_token_s=first_s,
        finish_s=finish_s,
        preemptions=preemptions,
        cached_tokens=cached,
        gaps=decoded.gaps,
    )


@st.composite
def pools_and_servers(draw: st.DrawFn) -> tuple[PrefillPool, Server]:
    """Both of even times, or both not: a mixture would meet by rounding."""
    tables, handoffs_s = draw(
        st.sampled_from([(even_tables(), [0.0, 1 / 64, 0.25]), (uneven_tables(), [0.0, 0.01, 0.3])])
    )
    pool = PrefillPool(
        n_servers=draw(st.integers(1, 3)),
        prefills_s=draw(tables).prefills_s[: draw(st.integers(30, LONGEST + 1))],
        handoff_s_per_token=draw(st.sampled_from(handoffs_s)),
        cache_tokens=draw(st.sampled_from([0, 20, 60, 200])),
        n_chips=1,
        usd_per_hour=None,
    )
    kind = draw(st.sampled_from(POLICIES))  # a decode server is one whatever else it was
    return pool, draw(small_servers(kind, tables))


@pytest.mark.parametrize(("number", "route"), list(enumerate(ROUTES)))
def test_split_fleets_agree(number: int, route: str) -> None:
    seen: Counter[str] = Counter()

    def agree(requests: Requests, made: tuple[PrefillPool, Server], n_servers: int) -> None:
        pool, server = made
        fleet = Fleet(server=server, n_servers=n_servers, route=route, prefill=pool)
        right = split_by_steps(requests, fleet)
        assert_same(outcome_of(requests, fleet), right)
        count(seen, requests, right)
        kept_s = right.first_token_s[right.server >= 0]
        seen["overtaken"] += bool((np.diff(kept_s) < 0).any())

    drawn(100 + number, agree, small_traces(), pools_and_servers(), st.integers(1, 3))
    assert seen["dropped"] > EXAMPLES / 5
    assert seen["queued"] > EXAMPLES / 3
    assert seen["preempted"] > EXAMPLES / 10
    assert seen["overtaken"] > EXAMPLES / 5
    assert seen["cached"] > EXAMPLES / 20


def test_a_fleet_that_is_not_split_is_its_servers() -> None:
    requests = made_requests([(0, 9, 4), (0, 7, 5), (1, 3, 2)])
    server = Server(times=even_times(0.25, 0, 0, 0.25), n_blocks=90, policy=Policy(block_tokens=1, max_num_seqs=2))
    found = outcome_of(requests, Fleet(server=server, n_servers=2, route="round-robin"))
    assert_same(found, reference.simulate(requests, server, 2, "round-robin"))


# --- longer runs ----------------------------------------------------------------------------------------------------


def long_trace(rng: np.random.Generator, n: int) -> Requests:
    """Prompts and outputs of hundreds of tokens, in bursts, with prompts that begin alike."""
    prompts, outputs = rng.integers(1, 600, n), rng.integers(1, 500, n)
    arrivals_s = np.sort(rng.choice([0.0, 40.0, 95.0], n) + rng.exponential(7.0, n))
    families = rng.integers(0, 5, n)
    prefixes = tuple(
        tuple((family if at < 4 else 100 + row) * 1000 + at for at in range(-(-int(tokens) // 64)))
        for row, (tokens, family) in enumerate(zip(prompts, families.tolist(), strict=True))
    )
    return made_requests(list(zip(arrivals_s, prompts, outputs, strict=True)), prefixes, 64)


def long_server(rng: np.random.Generator, kind: str) -> Server:
    """Steps of up to 16 sequences, with kinks in the middle of the outputs; room for some 7 of the requests."""
    knots = np.array([0.0, 150.0, 290.0, 700.0, 2000.0])
    steps_s = np.cumsum(rng.uniform(0.002, 0.02, (17, 5)), axis=1)
    prefills_s = np.cumsum(rng.uniform(0, 0.001, 1101)) + 0.01
    policy = Policy(
        kind=kind, max_num_seqs=16, max_num_batched_tokens=256, block_tokens=16, caches_prefixes=kind != DECODE
    )
    return Server(times=Times(knots=knots, steps_s=steps_s, prefills_s=prefills_s), n_blocks=250, policy=policy)


@pytest.mark.parametrize("kind", KINDS)
def test_engines_agree_where_many_steps_are_one_sum(kind: str) -> None:
    for number in range(2):
        rng = np.random.default_rng([number, KINDS.index(kind)])
        requests, server = long_trace(rng, 120), long_server(rng, kind)
        for n_servers, route in ((1, "round-robin"), (2, "least-loaded")):
            right = reference.simulate(requests, server, n_servers, route)
            assert_same(engine.simulate(requests, server, n_servers, route), right)
            assert right.preemptions.sum() > 10 or kind == STATIC
            assert right.cached_tokens.any() or kind == DECODE


# --- runs that are stopped, and words that are off --------------------------------------------------------------------


class Stop:
    """Progress that is stopped as by Ctrl-C once so many have arrived."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, done: int, of: int) -> None:
        if min(self.after, of) <= done:
            raise KeyboardInterrupt


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_of_a_stopped_run_is_what_the_whole_run_says(kind: str, route: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    requests, server = long_trace(rng, 200), long_server(rng, kind)
    whole = engine.simulate(requests, server, 2, route)
    stopped = engine.simulate(requests, server, 2, route, Stop(after=150))
    assert whole.is_whole
    assert not stopped.is_whole
    assert 150 <= len(stopped) < 200
    now_s = requests.arrival_s[len(stopped) - 1]
    for name in ("start_s", "first_token_s", "finish_s"):
        part, full = getattr(stopped, name), getattr(whole, name)[: len(stopped)]
        known = np.isfinite(part)
        np.testing.assert_allclose(part[known], full[known], rtol=1e-12)
        assert known[full < now_s].all()
    assert np.isnan(stopped.finish_s).sum() > 2
    np.testing.assert_array_equal(stopped.server, whole.server[: len(stopped)])


def test_a_stopped_split_fleet_says_what_is_known() -> None:
    rng = np.random.default_rng(5)
    requests, server = long_trace(rng, 200), long_server(rng, PREFILL_FIRST)
    pool = PrefillPool(
        n_servers=2, prefills_s=server.times.prefills_s, handoff_s_per_token=1e-5, n_chips=1, usd_per_hour=None
    )
    fleet = Fleet(server=server, n_servers=2, prefill=pool)
    whole, stopped = outcome_of(requests, fleet), outcome_of(requests, fleet, Stop(after=150))
    assert (whole.is_whole, stopped.is_whole) == (True, False)
    known = np.isfinite(stopped.finish_s)
    assert 100 < known.sum() < len(requests)
    np.testing.assert_allclose(stopped.finish_s[known], whole.finish_s[: len(stopped)][known], rtol=1e-12)


def test_progress_is_told_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    requests = made_requests([(at, 3, 2) for at in range(500)])
    server = Server(times=even_times(0.25, 0, 0, 0.25), n_blocks=90, policy=Policy(max_num_seqs=4))
    engine.simulate(requests, server, progress=lambda *each: told.append(each))
    assert told[-1] == (500, 500)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert 100 < len(told) <= 502


@pytest.mark.parametrize(
    ("n_servers", "route", "fix"), [(0, "round-robin", "at least 1"), (1, "random", "least-loaded")]
)
def test_words_that_are_off_are_refused(n_servers: int, route: str, fix: str) -> None:
    server = Server(times=even_times(0.25, 0, 0, 0.25), n_blocks=90, policy=Policy(max_num_seqs=4))
    with pytest.raises(InputError, match=fix) as refused:
        engine.simulate(made_requests([(0, 3, 2)]), server, n_servers, route)
    assert len(str(refused.value).splitlines()) == 1


def test_the_engines_share_no_code() -> None:
    shared = {"requests", "server", "times"}
    for first, second in (("engine batch policies", "reference reference_server"),):
        names = {name: imported(name) for name in (*first.split(), *second.split())}
        assert not {each for name in first.split() for each in names[name]} & {*second.split()}
        assert {each for name in second.split() for each in names[name]} <= shared | {*second.split()}


def imported(name: str) -> set[str]:
    """Modules of `traffic` that one of them imports."""
    text = Path(engine.__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return set(re.findall(r"^from slicewise\.traffic\.(\w+) import", text, flags=re.MULTILINE))
