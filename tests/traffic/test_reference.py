"""The step-by-step engine: small cases computed by hand, and what holds whatever the requests."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.traffic.reference import simulate
from slicewise.traffic.reference_server import Job, ReferenceServer
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import CHUNKED, POLICIES, PREFILL_FIRST, ROUTES, STATIC, Outcome, Policy, Server
from slicewise.traffic.times import Times

LONGEST = 9000


def made_times(*, step_s=1.0, per_mean_token_s=0.0, prefill_s=2.0, per_prompt_token_s=0.0, longest=LONGEST) -> Times:
    """A step takes step_s + per_mean_token_s × mean of held tokens, a prompt prefill_s and a share a token."""
    knots = np.array([0.0, 100.0, 10_000.0])
    steps_s = np.tile(step_s + per_mean_token_s * knots, (33, 1))
    return Times(knots=knots, steps_s=steps_s, prefills_s=prefill_s + per_prompt_token_s * np.arange(longest + 1))


def made_server(kind=PREFILL_FIRST, *, times=None, n_blocks=100, block_tokens=1, **rules) -> Server:
    policy = Policy(kind=kind, block_tokens=block_tokens, **({"max_num_seqs": 32} | rules))
    return Server(times=made_times() if times is None else times, n_blocks=n_blocks, policy=policy)


def made_requests(*rows, prefixes=(), prefix_block_tokens=0) -> Requests:
    """Of rows of arrival_s, prompt_tokens and output_tokens."""
    return Requests(
        arrival_s=np.array([row[0] for row in rows], dtype=np.float64),
        prompt_tokens=np.array([row[1] for row in rows], dtype=np.int64),
        output_tokens=np.array([row[2] for row in rows], dtype=np.int64),
        prefixes=tuple(prefixes),
        prefix_block_tokens=prefix_block_tokens,
    )


def check(outcome: Outcome, **expected) -> None:
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(outcome, name), values, rtol=1e-12, err_msg=name)


# prefill-first


def test_no_requests():
    assert simulate(made_requests(), made_server()).finish_s.shape == (0,)


def test_one_alone_is_prefilled_and_then_decoded():
    outcome = simulate(made_requests((3, 4, 3), (20, 4, 1)), made_server())
    check(
        outcome, server=[0, 0], start_s=[3, 20], first_token_s=[5, 22], finish_s=[7, 22], preemptions=0, cached_tokens=0
    )


def test_a_step_looks_up_the_tokens_held_before_it():
    server = made_server(times=made_times(per_mean_token_s=1.0))
    # Prefill until 2, steps of 1 + 4 and 1 + 5.
    check(simulate(made_requests((0, 4, 3)), server), finish_s=[13])
    # Prefills until 2 and 4, then both, of 4 and 7 tokens: 1 + 5.5; then the longer alone: 1 + 8.
    check(simulate(made_requests((0, 4, 2), (0, 7, 3)), server), finish_s=[10.5, 19.5])


def test_prompts_go_before_steps():
    outcome = simulate(made_requests((0, 4, 3), (0, 4, 3)), made_server())
    check(outcome, start_s=[0, 2], first_token_s=[2, 4], finish_s=[6, 6])


@pytest.mark.parametrize(
    ("arrival_s", "start_s", "finish_s"),
    [
        pytest.param(2.0, 2, [6, 6], id="exactly-when-an-iteration-begins"),
        pytest.param(2.5, 3, [6, 7], id="within-a-step"),
        pytest.param(4.0, 4, [4, 8], id="when-the-server-falls-idle"),
    ],
)
def test_an_iteration_sees_what_arrived_until_it_begins(arrival_s, start_s, finish_s):
    outcome = simulate(made_requests((0, 4, 3), (arrival_s, 4, 3)), made_server())
    check(outcome, start_s=[0, start_s], finish_s=finish_s)


def test_no_more_sequences_than_the_rules_allow():
    outcome = simulate(made_requests((0, 4, 3), (0, 4, 2)), made_server(max_num_seqs=1))
    check(outcome, start_s=[0, 4], finish_s=[4, 7])


def test_the_latest_is_preempted_and_computed_anew_before_others():
    times = made_times(per_prompt_token_s=0.25)
    requests = made_requests((0, 4, 5), (0, 4, 3), (6.5, 1, 1))
    outcome = simulate(requests, made_server(times=times, n_blocks=10))
    # Prefills of 3 s until 3 and 6, a step until 7; now 5 + 5 tokens are held, and the third finds no free block. Two
    # more are needed, so the second goes, with 2 of its 3 tokens. Its 6 do not fit until the first ends after 3 steps.
    # The third would fit, but stands behind it. Prompts of 6 and 1: 3.5 and 2.25 s.
    check(outcome, start_s=[0, 3, 13.5], first_token_s=[3, 6, 15.75], finish_s=[10, 13.5, 15.75], preemptions=[0, 1, 0])


def test_those_preempted_together_keep_their_order():
    requests = made_requests((0, 3, 4), (0, 3, 2), (0, 3, 2))
    outcome = simulate(requests, made_server(n_blocks=9))
    # Prefills until 6; 12 blocks needed, so the third goes, and 8 suffice: a step until 7 ends the second.
    # 4 blocks held, 5 free: the third is prefilled with 4 tokens until 9, and the first has 2 more steps.
    check(outcome, finish_s=[11, 7, 9], preemptions=[0, 0, 1])
    outcome = simulate(made_requests((0, 3, 3), (0, 1, 3), (0, 1, 3)), made_server(n_blocks=5, block_tokens=1))
    # Prefills until 6; 4 + 2 + 2 needed: the third goes, but 6 > 5, so the second, too. The first steps until
    # 8. Prompts of 2 until 10 and 12; 3 + 3 > 5: the third goes again; a step until 13, a prompt of 3.
    check(outcome, start_s=[0, 2, 4], finish_s=[8, 13, 15], preemptions=[0, 1, 2])


@pytest.mark.parametrize(
    ("prompt_tokens", "finish_s", "preemptions"),
    [
        # 1 + 2 blocks; the step needs 2 + 3, so the second goes; its 9 tokens then take all 3.
        pytest.param(8, [5, 7], 1, id="two-blocks"),
        # 3 blocks, and but 2 are free until the first ends at 3.
        pytest.param(9, [3, 6], 0, id="three-blocks"),
    ],
)
def test_part_of_a_block_is_a_block(prompt_tokens, finish_s, preemptions):
    server = made_server(n_blocks=3, block_tokens=4)
    outcome = simulate(made_requests((0, 4, 2), (0, prompt_tokens, 2)), server)
    check(outcome, finish_s=finish_s, preemptions=[0, preemptions])


# chunked


def test_chunks_fill_the_budget_beside_steps():
    times = made_times(prefill_s=0.5, per_prompt_token_s=0.25)
    requests = made_requests((0, 6, 2), (0, 5, 1))
    outcome = simulate(requests, made_server(CHUNKED, times=times, max_num_seqs=4, max_num_batched_tokens=4))
    # 4 of the first: 0.5 + 1; 2 of the first and 2 of the second: 0.5 + 1; a step with the 3 left: 1 + 0.75.
    check(outcome, start_s=[0, 1.5], first_token_s=[3, 4.75], finish_s=[4.75, 4.75])


def test_steps_leave_the_rest_of_the_budget_to_chunks():
    requests = made_requests((0, 1, 9), (0, 1, 9), (0, 4, 1))
    outcome = simulate(requests, made_server(CHUNKED, max_num_seqs=3, max_num_batched_tokens=3))
    # Both short ones and a token of the third: 2 s, of prefills_s[0]; then steps with 1 token of it each.
    check(outcome, start_s=[0, 0, 0], first_token_s=[2, 2, 5], finish_s=[10, 10, 5])


def test_only_decoders_count_in_a_step_beside_chunks():
    times = made_times(per_mean_token_s=1.0)
    requests = made_requests((0, 4, 3), (0, 6, 2))
    outcome = simulate(requests, made_server(CHUNKED, times=times, max_num_seqs=4, max_num_batched_tokens=4))
    # 4 of the first: 2 s. A step of it, 1 + 4, with 3 of the second; one of 1 + 5 with 3 more; the second's: 1 + 6.
    check(outcome, first_token_s=[2, 13], finish_s=[13, 20])


def test_a_partly_prefilled_one_is_preempted_and_starts_again():
    times = made_times(prefill_s=0.5, per_prompt_token_s=0.25)
    requests = made_requests((0, 4, 4), (0, 6, 1))
    server = made_server(CHUNKED, times=times, n_blocks=11, max_num_seqs=4, max_num_batched_tokens=4)
    # 4 of the first until 1.5; 5 + 6 blocks have room, so a step with 3 of the second until 3.25; then 6 + 6 do not:
    # two steps until 5.25; the second from its first token: 0.5 + 1 and 0.5 + 0.5.
    check(
        simulate(requests, server),
        start_s=[0, 1.5],
        first_token_s=[1.5, 7.75],
        finish_s=[5.25, 7.75],
        preemptions=[0, 1],
    )


def test_room_for_the_next_tokens_goes_before_an_admission():
    requests = made_requests((0, 4, 3), (1, 6, 1))
    rules = {"max_num_seqs": 4, "max_num_batched_tokens": 8}
    # 4 held and 6 more are 10; with the step's token 11.
    check(simulate(requests, made_server(CHUNKED, n_blocks=11, **rules)), start_s=[0, 2], preemptions=0)
    check(simulate(requests, made_server(CHUNKED, n_blocks=10, **rules)), start_s=[0, 4], preemptions=0)


# static


def test_a_batch_keeps_its_slots_until_its_longest_ends():
    times = made_times(per_mean_token_s=1.0)
    requests = made_requests((0, 4, 1), (0, 4, 3), (1, 4, 1))
    outcome = simulate(requests, made_server(STATIC, times=times, max_num_seqs=2))
    # Prefills until 4; steps of 1 + (4 + 4) / 2 and 1 + (4 + 5) / 2.
    check(outcome, start_s=[0, 0, 14.5], first_token_s=[4, 4, 16.5], finish_s=[4, 14.5, 16.5])


def test_a_batch_takes_what_has_arrived():
    outcome = simulate(made_requests((0, 4, 2), (1, 4, 2), (3, 4, 2), (3.5, 4, 1)), made_server(STATIC))
    check(outcome, start_s=[0, 3, 3, 8], first_token_s=[2, 7, 7, 10], finish_s=[3, 8, 8, 10])


def test_a_batch_reserves_all_blocks_and_nobody_overtakes():
    requests = made_requests((0, 4, 3), (0, 4, 2), (0, 1, 1))
    # 6 + 5 > 10, and the third, of 1, waits behind the second.
    check(simulate(requests, made_server(STATIC, n_blocks=10)), start_s=[0, 4, 4], finish_s=[4, 9, 8], preemptions=0)
    check(simulate(requests, made_server(STATIC, n_blocks=11)), start_s=[0, 0, 6], finish_s=[6, 5, 8], preemptions=0)


# prefix cache


def hashes(tokens: range | list[int], size: int) -> tuple[int, ...]:
    """Of each block of a prompt together with all before it; the last may be part of a block."""
    return tuple(hash(tuple(tokens[: end + size])) for end in range(0, len(tokens), size))


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(("shared_tokens", "cached_tokens"), [(1900, 0), (2096, 2096), (4500, 4192)])
def test_shared_tokens_are_cached_by_whole_blocks(kind, shared_tokens, cached_tokens):
    first, second = list(range(6500)), [*range(shared_tokens), *range(-6500, -shared_tokens)]
    prefixes = [hashes(first, 2096), hashes(second, 2096)]
    requests = made_requests((0, 6500, 1), (100, 6500, 1), prefixes=prefixes, prefix_block_tokens=2096)
    times = made_times(per_prompt_token_s=1 / 1024)
    rules = {"n_blocks": 20_000, "max_num_batched_tokens": 8192}
    outcome = simulate(requests, made_server(kind, times=times, caches_prefixes=True, **rules))
    finish_s = 100 + 2 + (6500 - cached_tokens) / 1024
    check(outcome, cached_tokens=[0, cached_tokens], finish_s=[2 + 6500 / 1024, finish_s])
    without = simulate(requests, made_server(kind, times=times, **rules))
    check(without, cached_tokens=0, finish_s=[2 + 6500 / 1024, 100 + 2 + 6500 / 1024])


def test_the_last_token_of_a_prompt_is_computed_anyway():
    requests = made_requests(
        (0, 8, 1), (10, 8, 1), (20, 9, 1), prefixes=[(1, 2)] * 2 + [(1, 2, 3)], prefix_block_tokens=4
    )
    check(simulate(requests, made_server(caches_prefixes=True)), cached_tokens=[0, 4, 8])


def test_part_of_a_block_is_not_put_in():
    requests = made_requests((0, 6, 1), (10, 9, 1), prefixes=[(1, 2), (1, 2, 3)], prefix_block_tokens=4)
    check(simulate(requests, made_server(caches_prefixes=True)), cached_tokens=[0, 4])


@pytest.mark.parametrize(
    ("n_blocks", "cached_tokens"),
    # The first's 8 blocks leave room for 4 // 4, 7 // 4, 8 // 4 and 16 // 4 blocks; of its two the first goes.
    [(12, 0), (15, 0), (16, 8), (24, 8)],
)
def test_the_least_recent_leave_when_blocks_are_taken(n_blocks, cached_tokens):
    requests = made_requests((0, 8, 1), (10, 9, 1), prefixes=[(1, 2), (1, 2, 3)], prefix_block_tokens=4)
    outcome = simulate(requests, made_server(caches_prefixes=True, n_blocks=n_blocks))
    check(outcome, cached_tokens=[0, cached_tokens])


def test_a_hit_becomes_the_most_recent():
    prefixes = [(1,), (2,), (1,), (3,), (1, 9), (2, 9)]
    rows = [(10 * at, 4, 1) for at in range(4)] + [(40, 5, 1), (50, 5, 1)]
    requests = made_requests(*rows, prefixes=prefixes, prefix_block_tokens=4)
    # 4 or 5 taken of 13: two blocks stay. 1; 1 2; 2 1; 1 3; 3 1.
    check(simulate(requests, made_server(caches_prefixes=True, n_blocks=13)), cached_tokens=[0, 0, 0, 0, 4, 0])


def test_one_preempted_finds_its_own_prompt():
    times = made_times(per_prompt_token_s=0.25)
    prefixes = [(1, 2, 3, 4), (5, 6)]
    requests = made_requests((0, 4, 7), (0, 2, 4), prefixes=prefixes, prefix_block_tokens=1)
    outcome = simulate(requests, made_server(times=times, n_blocks=10, caches_prefixes=True))
    # Prefills until 3 and 5.5, two steps until 7.5, then 7 + 5 blocks are needed; the first steps on until 11.5.
    # Of the second's 5 tokens, 2 of its prompt are cached: 2 + 0.75 s. What counts is what it found at first.
    check(outcome, finish_s=[11.5, 14.25], preemptions=[0, 1], cached_tokens=[0, 0])


# arrival and routing


def test_what_never_fits_is_dropped():
    server = made_server(times=made_times(longest=20), n_blocks=4, block_tokens=4)
    rows = [(0, 16, 1), (0, 16, 2), (0, 17, 1), (0, 12, 5), (1, 12, 6), (2, 1, 16)]
    outcome = simulate(made_requests(*rows), server, n_servers=2)
    check(outcome, server=[0, -1, -1, 1, -1, 0], preemptions=0, cached_tokens=0)
    for times in (outcome.start_s, outcome.first_token_s, outcome.finish_s):
        assert np.isnan(times).tolist() == [False, True, True, False, True, False]
    short = made_server(times=made_times(longest=10))
    check(simulate(made_requests((0, 10, 1), (0, 10, 2), (0, 11, 1), (0, 5, 6)), short), server=[0, -1, -1, 0])


@pytest.mark.parametrize(
    ("rows", "servers"),
    [
        pytest.param([(0, 1, 5), (0, 1, 1), (1.5, 1, 1)], [0, 1, 0], id="both-busy"),
        pytest.param([(0, 1, 5), (0, 1, 1), (2, 1, 1)], [0, 1, 1], id="finished-at-the-arrival"),
        pytest.param([(0, 1, 1), (0, 1, 5), (2, 1, 1), (2, 1, 1), (2, 1, 1)], [0, 1, 0, 0, 1], id="at-the-same-time"),
        pytest.param([(0, 1, 1), (9, 1, 1), (20, 1, 1)], [0, 0, 0], id="idle"),
    ],
)
def test_the_least_loaded_is_taken(rows, servers):
    check(simulate(made_requests(*rows), made_server(), n_servers=2, route="least-loaded"), server=servers)


def test_the_one_with_most_of_the_prompt_is_taken():
    prefixes = [(1, 2), (3, 4), (3, 5), (1, 2), (7, 8), (3, 5)]
    rows = [(0, 2, 1), (0, 2, 1), (10, 2, 1), (10, 2, 1), (10, 2, 1), (20, 2, 1)]
    requests = made_requests(*rows, prefixes=prefixes, prefix_block_tokens=1)
    server = made_server(caches_prefixes=True)
    # 1 hit on the second, 2 on the first, none: of three servers the third is idle; at last 2 on the second.
    outcome = simulate(requests, server, n_servers=3, route="prefix-aware")
    check(outcome, server=[0, 1, 1, 0, 2, 1], cached_tokens=[0, 0, 1, 1, 0, 1])
    # Without a cache the least loaded are taken.
    assert simulate(requests, made_server(), 3, "prefix-aware").server.tolist() == [0, 1, 0, 1, 2, 0]


def test_what_begins_at_an_arrival_is_not_cached_yet():
    requests = made_requests((0, 2, 1), (0, 2, 1), (0.5, 2, 1), prefixes=[(1, 2)] * 3, prefix_block_tokens=1)
    outcome = simulate(requests, made_server(caches_prefixes=True), n_servers=2, route="prefix-aware")
    check(outcome, server=[0, 1, 0], cached_tokens=[0, 0, 1])


def test_hits_that_tie_go_to_the_least_loaded_of_them():
    prefixes = [(1, 2), (1, 2), (1, 2), (1, 2)]
    rows = [(0, 2, 9), (0, 2, 1), (5, 2, 1), (5, 2, 1)]
    requests = made_requests(*rows, prefixes=prefixes, prefix_block_tokens=1)
    outcome = simulate(requests, made_server(caches_prefixes=True), n_servers=3, route="prefix-aware")
    # The third server is idle, but has none of the prompt.
    check(outcome, server=[0, 1, 1, 0])


def test_an_unknown_route_is_refused():
    with pytest.raises(ValueError, match="route"):
        simulate(made_requests((0, 1, 1)), made_server(), route="random")


# whatever the requests


@st.composite
def requests_of_all_kinds(draw) -> Requests:
    n = draw(st.integers(0, 25))

    def column(low, high):
        return draw(st.lists(st.integers(low, high), min_size=n, max_size=n))

    gaps, prompts, outputs, families = column(0, 12), column(1, 40), column(1, 20), column(0, 2)
    arrivals = [gap / 4 for gap in accumulate(gaps)]
    size = draw(st.sampled_from([0, 1, 3, 8]))
    prefixes = (
        [tuple(1000 * f + at for at in range(-(-t // size))) for f, t in zip(families, prompts, strict=True)]
        if size
        else ()
    )
    return made_requests(*zip(arrivals, prompts, outputs, strict=True), prefixes=prefixes, prefix_block_tokens=size)


@st.composite
def servers_of_all_kinds(draw, kinds=POLICIES) -> Server:
    seqs = draw(st.integers(1, 8))
    return made_server(
        draw(st.sampled_from(kinds)),
        times=made_times(step_s=0.25, per_mean_token_s=1 / 64, prefill_s=0.5, per_prompt_token_s=1 / 32, longest=55),
        n_blocks=draw(st.integers(0, 60)),
        block_tokens=draw(st.sampled_from([1, 2, 5])),
        max_num_seqs=seqs,
        max_num_batched_tokens=draw(st.integers(seqs, 30)),
        caches_prefixes=draw(st.booleans()),
    )


@given(requests_of_all_kinds(), servers_of_all_kinds(), st.integers(1, 3), st.sampled_from(ROUTES))
def test_what_is_kept_finishes_in_order_of_time(requests, server, n_servers, route):
    outcome = simulate(requests, server, n_servers, route)
    kept = outcome.server >= 0
    most = requests.prompt_tokens + requests.output_tokens - 1
    assert kept.tolist() == [-(-t // server.policy.block_tokens) <= server.n_blocks and t <= 55 for t in most.tolist()]
    assert np.isnan(outcome.finish_s[~kept]).all()
    assert (requests.arrival_s <= outcome.start_s)[kept].all()
    assert (outcome.start_s < outcome.first_token_s)[kept].all()
    least_s = 0.25 * (requests.output_tokens - 1)
    assert (outcome.first_token_s + least_s <= outcome.finish_s)[kept].all()
    assert (outcome.cached_tokens < requests.prompt_tokens)[kept].all()
    assert (outcome.server < n_servers).all()
    if server.policy.kind == STATIC:
        assert not outcome.preemptions.any()
    if not (server.policy.caches_prefixes and requests.prefix_block_tokens):
        assert not outcome.cached_tokens.any()
    if server.policy.kind != CHUNKED and n_servers == 1:
        assert (np.diff(outcome.start_s[kept]) >= 0).all()


@given(requests_of_all_kinds(), servers_of_all_kinds(), st.integers(2, 3), st.sampled_from(ROUTES))
def test_servers_do_not_influence_each_other(requests, server, n_servers, route):
    outcome = simulate(requests, server, n_servers, route)
    for index in range(n_servers):
        rows = np.flatnonzero(outcome.server == index)
        alone = simulate(
            Requests(
                arrival_s=requests.arrival_s[rows],
                prompt_tokens=requests.prompt_tokens[rows],
                output_tokens=requests.output_tokens[rows],
                prefixes=tuple(requests.prefixes[row] for row in rows) if requests.prefixes else (),
                prefix_block_tokens=requests.prefix_block_tokens,
            ),
            server,
        )
        for name in ("start_s", "first_token_s", "finish_s", "preemptions", "cached_tokens"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(outcome, name)[rows])


class CountingTimes(Times):
    """Times that remember what they were asked for."""

    def __init__(self, times: Times) -> None:
        super().__init__(knots=times.knots, steps_s=times.steps_s, prefills_s=times.prefills_s)
        object.__setattr__(self, "batches", [])
        object.__setattr__(self, "chunks", [])
        object.__setattr__(self, "prompts", [])

    def step_s(self, batch, held_tokens):
        self.batches.append(batch)
        return super().step_s(batch, held_tokens)

    def chunk_s(self, done, tokens):
        self.chunks.append(tokens)
        return super().chunk_s(done, tokens)

    def prefill_s(self, tokens, cached=0):
        self.prompts.append(tokens)
        return super().prefill_s(tokens, cached)


@given(requests_of_all_kinds(), servers_of_all_kinds())
def test_tokens_are_conserved(requests, server):
    times = CountingTimes(server.times)
    outcome = simulate(requests, Server(times=times, n_blocks=server.n_blocks, policy=server.policy))
    kept = outcome.server >= 0
    n_generated, n_prompts = requests.output_tokens[kept].sum(), kept.sum()
    if server.policy.kind == PREFILL_FIRST:  # each prefill gives a token, and each step one for each of its batch
        assert sum(times.batches) + len(times.prompts) == n_generated
        assert len(times.prompts) == n_prompts + outcome.preemptions.sum()
    if server.policy.kind == STATIC:
        assert len(times.prompts) == n_prompts
        assert sum(times.batches) >= n_generated - n_prompts
    computed = (requests.prompt_tokens - outcome.cached_tokens)[kept].sum()
    if not outcome.preemptions.any():
        assert sum(times.chunks) == computed
    elif not server.policy.caches_prefixes:
        assert sum(times.chunks) > computed
    if server.policy.kind == CHUNKED and not outcome.preemptions.any():
        assert sum(times.batches) == n_generated - n_prompts


@given(requests_of_all_kinds(), servers_of_all_kinds())
def test_rules_hold_after_each_iteration(requests, server):
    one = ReferenceServer(server, requests.prefix_block_tokens)
    outcome = simulate(requests, server)
    for index in np.flatnonzero(outcome.server == 0).tolist():
        prefix = requests.prefixes[index] if requests.prefixes else ()
        prompt, output = int(requests.prompt_tokens[index]), int(requests.output_tokens[index])
        one.send(Job(index=index, arrival_s=0.0, prompt_tokens=prompt, output_tokens=output, prefix=prefix))
    while one.waiting or one.running:
        before_s, generated = one.now, sum(job.generated for job in one.sent)
        partly = sum(job.done for job in one.running)
        one.iterate()
        assert one.now > before_s
        assert one.free_blocks() >= 0
        assert len(one.running) <= server.policy.max_num_seqs
        assert len(one.lru) * max(one.prefix_block_tokens, 1) <= server.n_blocks * server.policy.block_tokens
        # Something is gained each time, so it ends.
        assert sum(job.generated for job in one.sent) > generated or sum(job.done for job in one.running) > partly
        together = [
            *one.waiting,
            *one.running,
            *(job for job in one.sent if job.is_finished and job not in one.running),
        ]
        assert sorted(job.index for job in together) == sorted(job.index for job in one.sent)


@given(st.integers(1, 40), st.integers(1, 15), st.sampled_from(POLICIES))
def test_one_alone_takes_its_prompt_and_its_steps(prompt_tokens, output_tokens, kind):
    times = made_times(step_s=0.25, per_mean_token_s=1 / 64, prefill_s=0.5, per_prompt_token_s=1 / 32)
    outcome = simulate(made_requests((0, prompt_tokens, output_tokens)), made_server(kind, times=times))
    first_s = 0.5 + prompt_tokens / 32
    held = prompt_tokens + np.arange(output_tokens - 1)
    check(outcome, first_token_s=[first_s], finish_s=[first_s + (0.25 + held / 64).sum()])
