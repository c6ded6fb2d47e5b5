"""Experts on other chips: who gets how many tokens, and what it takes to send them there."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.costs import layered_step, spread_experts

WAYS, ACTIVE, TOKENS = st.sampled_from([2, 4, 8, 16, 64, 256]), st.integers(1, 16), st.integers(1, 100_000)
COUNT, TIME = st.integers(0, 500), st.floats(0.0, 1e-3)
D_MODEL = 7168


def test_tokens_of_a_chip_are_shared_out_evenly_on_average() -> None:
    # DeepSeek-V3's 8 experts a token over 64 chips.
    assert spread_experts.expert_tokens_per_chip(4096, 8, 64) == 512
    assert spread_experts.expert_tokens_per_chip(4096, 8, 1) == 4096 * 8


@pytest.mark.parametrize(("ways", "mean"), [(8, 16), (8, 512), (64, 64), (64, 512), (256, 1024)])
def test_the_busiest_chip_is_about_that_of_a_simulation(ways: int, mean: float) -> None:
    rng = np.random.default_rng(seed=11)
    busiest = rng.poisson(mean, size=(4000, ways)).max(axis=1).mean()
    estimate = float(spread_experts.fullest_expert_tokens_per_chip(mean, ways))
    # The estimate of the largest deviation leaves out its slower terms, and is somewhat above it.
    assert busiest <= estimate
    assert estimate - mean == pytest.approx(busiest - mean, rel=0.5)


@given(st.floats(0.0, 1e6), WAYS)
def test_the_busiest_chip_sees_no_less_than_the_mean(mean: float, ways: int) -> None:
    busiest = spread_experts.fullest_expert_tokens_per_chip(mean, ways)
    assert busiest >= mean
    assert busiest <= spread_experts.fullest_expert_tokens_per_chip(mean, 2 * ways)
    assert spread_experts.fullest_expert_tokens_per_chip(mean, 1) == mean


@pytest.mark.parametrize(
    ("n_experts", "ways", "n_active"), [(256, 8, 8), (256, 64, 8), (128, 16, 8), (16, 16, 1), (8, 2, 2)]
)
def test_a_token_travels_to_the_chips_that_hold_its_experts(n_experts: int, ways: int, n_active: int) -> None:
    """Its experts are of different places, which the formula leaves out: it is low by less than their share of all."""
    each = n_experts // ways
    exact = ways * (1 - math.comb(n_experts - each, n_active) / math.comb(n_experts, n_active))
    estimate = float(spread_experts.expert_copies(ways, n_active))
    assert estimate <= exact * (1 + 1e-12)
    assert estimate == pytest.approx(exact, rel=n_active / n_experts)


@given(WAYS, ACTIVE)
def test_a_token_goes_to_one_chip_at_least_and_to_each_once_at_most(ways: int, n_active: int) -> None:
    copies = float(spread_experts.expert_copies(ways, n_active))
    assert 1 - 1e-9 <= copies <= min(ways, n_active) * (1 + 1e-12)
    assert copies <= spread_experts.expert_copies(ways, n_active + 1)


def test_bytes_to_the_experts_are_those_of_the_tokens_that_travel() -> None:
    # b_a D of each token and copy, to each chip that holds a part of the expert; in prefill a prompt of every group.
    assert spread_experts.expert_all_to_all_bytes(64, 5.25, 1, D_MODEL, 2.0) == 64 * 5.25 * D_MODEL * 2
    assert spread_experts.expert_all_to_all_bytes(64, 5.25, 4, D_MODEL, 2.0) == 4 * 64 * 5.25 * D_MODEL * 2
    assert spread_experts.prefill_expert_all_to_all_bytes(64, 8, 5.25, 1, D_MODEL, 2.0) == 8 * 64 * 5.25 * D_MODEL * 2


def test_an_exchange_takes_its_latency_at_least() -> None:
    for formula in (spread_experts.expert_all_to_all_s, spread_experts.prefill_expert_all_to_all_s):
        assert formula(10.0, 1e10, 4e-6) == 4e-6
        assert formula(1e10, 1e10, 4e-6) == 1.0


@given(COUNT, TIME, COUNT, TIME, COUNT, TIME)
def test_collectives_are_those_of_cut_experts_and_the_exchanges(
    gathers: int, gather_s: float, queries: int, query_s: float, exchanges: int, exchange_s: float
) -> None:
    found = spread_experts.ici_s(gathers, gather_s, queries, query_s, exchanges, exchange_s)
    beside = layered_step.ici_s(gathers, gather_s, queries, query_s)
    assert found == pytest.approx(beside + exchanges * exchange_s)
    prompt = spread_experts.prefill_ici_s(gathers, gather_s, exchanges, exchange_s)
    assert prompt == pytest.approx(layered_step.prefill_ici_s(gathers, gather_s) + exchanges * exchange_s)


@given(TOKENS, WAYS, ACTIVE, st.floats(1e9, 1e12), st.floats(1.0, 8.0))
def test_more_bandwidth_is_never_slower(tokens: int, ways: int, n_active: int, rate: float, factor: float) -> None:
    n_bytes = spread_experts.expert_all_to_all_bytes(
        tokens, spread_experts.expert_copies(ways, n_active), 1, D_MODEL, 2.0
    )
    slow, fast = (spread_experts.expert_all_to_all_s(n_bytes, w, 2e-6) for w in (rate, rate * factor))
    assert fast <= slow


def test_a_grid_equals_its_points() -> None:
    tokens = np.array([1.0, 64.0, 4096.0])
    n_bytes = spread_experts.expert_all_to_all_bytes(tokens, 5.0, 1, D_MODEL, 2.0)
    grid = spread_experts.expert_all_to_all_s(n_bytes, 1e11, 4e-6)
    points = [
        float(
            spread_experts.expert_all_to_all_s(
                spread_experts.expert_all_to_all_bytes(n, 5.0, 1, D_MODEL, 2.0), 1e11, 4e-6
            )
        )
        for n in tokens
    ]
    assert grid.tolist() == points
