"""Gaps between tokens: the fast engine's runs of steps against the step-by-step engine's list of every gap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise.traffic import reference
from slicewise.traffic.engine import simulate
from slicewise.traffic.gaps import gap_summary
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import CHUNKED, DECODE, PREFILL_FIRST, STATIC, Policy, Server
from slicewise.traffic.summary import summary
from slicewise.traffic.times import Times

KINDS = (PREFILL_FIRST, CHUNKED, STATIC, DECODE)


def listed(gaps: np.ndarray) -> np.ndarray:
    """Every gap of the rows, in order of length."""
    found = [
        first_s + growth_s * step
        for _, first_s, growth_s, n_steps, sequences in gaps
        for step in range(int(n_steps))
        for _ in range(int(sequences))
    ]
    return np.sort(np.array(found))


def made(seed: int, kind: str) -> tuple[Requests, Server]:
    rng = np.random.default_rng(seed)
    n, most = int(rng.integers(1, 25)), int(rng.integers(1, 8))
    arrival_s = np.sort(rng.choice([0, 1, 2.5, 3, 7, 9, 20], n) + rng.random(n) * rng.choice([0, 1]))
    steps_s = np.zeros((most + 1, 4))
    steps_s[1:] = 0.5 + np.cumsum(rng.random((most, 4)) * 0.2, axis=1)
    times = Times(knots=np.array([0, 10.0, 33, 80]), steps_s=steps_s, prefills_s=0.3 + np.cumsum(rng.random(81) * 0.05))
    policy = Policy(
        kind=kind,
        max_num_seqs=most,
        max_num_batched_tokens=int(rng.integers(most, 60)),
        block_tokens=int(rng.integers(1, 9)),
    )
    requests = Requests(arrival_s=arrival_s, prompt_tokens=rng.integers(1, 40, n), output_tokens=rng.integers(1, 30, n))
    return requests, Server(times=times, n_blocks=int(rng.integers(12, 60)), policy=policy)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_gaps_are_those_of_the_step_by_step_engine(kind: str, seed: int) -> None:
    requests, server = made(seed, kind)
    fast, slow = simulate(requests, server, 2), reference.simulate(requests, server, 2)
    np.testing.assert_allclose(listed(fast.gaps), np.sort(slow.gaps[:, 1]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_gaps_of_a_request_add_up_to_its_decoding(kind: str, seed: int) -> None:
    requests, server = made(seed, kind)
    outcome = simulate(requests, server)
    since_s = requests.arrival_s if kind == DECODE else outcome.first_token_s
    decoding_s = np.where(requests.output_tokens > 1, outcome.finish_s - since_s, 0.0)
    assert listed(outcome.gaps).sum() == pytest.approx(np.nansum(decoding_s), rel=1e-9, abs=1e-9)


def test_random_traces_preempt_and_stall() -> None:
    seeds = range(100)
    preempted = sum(int(simulate(*made(seed, PREFILL_FIRST)).preemptions.sum()) for seed in seeds)
    assert preempted > 100


@given(
    rows=st.lists(
        st.tuples(st.floats(0, 10), st.floats(0.001, 5), st.floats(0, 0.1), st.integers(1, 16), st.integers(1, 5)),
        min_size=1,
        max_size=8,
    )
)
def test_percentiles_are_those_of_the_list_of_all_gaps(rows: list[tuple[float, ...]]) -> None:
    gaps = np.array(rows)
    found, expected = gap_summary(gaps), summary(listed(gaps))
    assert found is not None
    assert expected is not None
    for name in ("mean", "p50", "p90", "p95", "p99", "most"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)


def test_long_runs_are_told_in_parts_within_their_growth() -> None:
    gaps = np.array([[0.0, 0.010, 1e-6, 1000.0, 32.0]])
    found, expected = gap_summary(gaps), summary(listed(gaps))
    assert found is not None
    assert expected is not None
    assert found.mean == pytest.approx(expected.mean, rel=1e-12)
    assert found.p99 == pytest.approx(expected.p99, abs=1000 / 16 * 1e-6)


def test_gaps_of_the_warm_up_are_left_out() -> None:
    gaps = np.array([[0.0, 9.0, 0.0, 1.0, 1.0], [5.0, 1.0, 0.0, 1.0, 1.0]])
    found = gap_summary(gaps, since_s=5.0)
    assert found is not None
    assert found.most == 1.0
    assert gap_summary(gaps, since_s=6.0) is None


@given(
    rows=st.lists(
        st.tuples(st.floats(0, 10), st.floats(0.01, 2), st.floats(0, 0.1), st.integers(1, 16), st.integers(1, 5)),
        min_size=1,
        max_size=6,
    ),
    since_s=st.floats(0, 30),
)
def test_of_a_row_that_begins_before_a_time_the_later_steps_count(
    rows: list[tuple[float, ...]], since_s: float
) -> None:
    kept: list[float] = []
    for begin_s, first_s, growth_s, n_steps, sequences in rows:
        at_s = begin_s
        for step in range(int(n_steps)):
            gap_s = first_s + growth_s * step
            if abs(at_s - since_s) < 1e-9:
                return
            kept += [gap_s] * int(sequences) * (at_s >= since_s)
            at_s += gap_s
    found = gap_summary(np.array(rows), since_s)
    if not kept:
        assert found is None
        return
    right = summary(np.array(kept))
    assert found is not None
    assert right is not None
    for name in ("mean", "p50", "p90", "p99", "most"):
        assert getattr(found, name) == pytest.approx(getattr(right, name), rel=1e-9), name
