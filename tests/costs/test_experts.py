"""Experts that a batch touches: exact enumeration, simulation, and what chapter 7 says of mixtures."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.costs import experts, limits, weights
from slicewise.spec.held import ExpertGroup
from slicewise.spec.tensors import weight_tensors

CHOICES = st.integers(1, 256).flatmap(lambda e: st.tuples(st.just(e), st.integers(1, e)))
TOKENS = st.integers(1, 10_000)


def enumerated(n_experts: int, n_active: int, tokens: int) -> float:
    """Experts touched on average, over every way that the tokens may choose."""
    ways = list(itertools.combinations(range(n_experts), n_active))
    touched = [len(set().union(*choices)) for choices in itertools.product(ways, repeat=tokens)]
    return sum(touched) / len(touched)


# -- against counting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_experts", "n_active", "tokens"),
    [(1, 1, 3), (2, 1, 1), (2, 1, 5), (3, 2, 3), (4, 1, 4), (4, 2, 3), (4, 3, 3), (5, 2, 3), (6, 2, 2), (4, 4, 2)],
)
def test_touched_experts_are_the_mean_over_every_choice(n_experts: int, n_active: int, tokens: int) -> None:
    exact = enumerated(n_experts, n_active, tokens)
    assert experts.experts_touched(tokens, n_active, n_experts) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("n_experts", "n_active", "tokens"), [(8, 2, 4), (128, 8, 32), (256, 8, 1), (256, 8, 64), (16, 1, 16)]
)
def test_touched_experts_are_what_a_simulation_finds(n_experts: int, n_active: int, tokens: int) -> None:
    rng, trials = np.random.default_rng(seed=7), 2000
    chosen = rng.random((trials, tokens, n_experts)).argpartition(n_active - 1, axis=2)[:, :, :n_active]
    touched = [len(np.unique(trial)) for trial in chosen]
    error = 5 * np.std(touched) / math.sqrt(trials) + 1e-9
    assert experts.experts_touched(tokens, n_active, n_experts) == pytest.approx(np.mean(touched), abs=error)


@given(CHOICES, TOKENS, TOKENS)
def test_touched_experts_lie_between_one_tokens_and_all(choice: tuple[int, int], tokens: int, more: int) -> None:
    n_experts, n_active = choice
    touched = float(experts.experts_touched(tokens, n_active, n_experts))
    assert n_active * (1 - 1e-12) <= touched <= min(n_experts, tokens * n_active) * (1 + 1e-12)
    assert touched <= experts.experts_touched(tokens + more, n_active, n_experts)
    assert experts.experts_touched(1, n_active, n_experts) == pytest.approx(n_active)
    assert experts.experts_touched(1e9, n_active, n_experts) == pytest.approx(n_experts)


# -- bytes -----------------------------------------------------------------------------------------------------------

GROUPS = st.lists(
    CHOICES.flatmap(
        lambda choice: st.builds(
            ExpertGroup,
            n_layers=st.integers(1, 60),
            n_experts=st.just(choice[0]),
            n_active=st.just(choice[1]),
            n_bytes=st.floats(1.0, 1e12),
        )
    ),
    max_size=3,
).map(tuple)


@given(GROUPS, TOKENS, st.floats(0.0, 1e12), st.floats(0.0, 1e10))
def test_what_is_read_lies_between_the_active_and_all(
    groups: tuple[ExpertGroup, ...], tokens: int, other_bytes: float, idle_bytes: float
) -> None:
    every = experts.expert_bytes(groups)
    active = sum(group.n_bytes * group.n_active / group.n_experts for group in groups)
    held = every + other_bytes + idle_bytes
    read = experts.param_read_bytes(held, idle_bytes, every, experts.touched_expert_bytes(groups, tokens))
    slack = 1e-9 * held + 1e-9
    assert other_bytes + active - slack <= read <= other_bytes + every + slack
    alone = experts.param_read_bytes(held, idle_bytes, every, experts.touched_expert_bytes(groups, 1))
    assert alone == pytest.approx(other_bytes + active, abs=slack)


@given(GROUPS, st.lists(TOKENS, min_size=1, max_size=5))
def test_a_grid_of_batches_equals_its_points(groups: tuple[ExpertGroup, ...], tokens: list[int]) -> None:
    grid = experts.touched_expert_bytes(groups, np.array(tokens, dtype=float)) + 0.0 * np.array(tokens)
    points = [float(experts.touched_expert_bytes(groups, n)) for n in tokens]
    assert grid.tolist() == pytest.approx(points, rel=1e-14)


def test_a_prompt_reads_the_experts_that_its_tokens_touch() -> None:
    group = ExpertGroup(n_layers=32, n_experts=8, n_active=2, n_bytes=90e9)
    lone = experts.prefill_param_read_bytes(93e9, 0.0, 90e9, (group,), 1)
    assert lone == pytest.approx(3e9 + 90e9 / 4)
    assert experts.prefill_param_read_bytes(93e9, 0.0, 90e9, (group,), 8192) == pytest.approx(93e9)
    assert experts.prefill_param_read_bytes(93e9, 1e9, 90e9, (group,), 8192) == pytest.approx(92e9)


# -- published mixtures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "total", "active"),
    [
        # Chapter 7, worked problem 5, prints 212e9 and 31.2e9.
        ("chapter-7-mixture", 211_658_735_616, 31_270_109_184),
        # 46.7e9 and 12.9e9: https://mistral.ai/news/mixtral-of-experts
        ("mixtral-8x7b", 46_702_792_704, 12_879_925_248),
    ],
)
def test_all_parameters_are_held_and_some_are_used(model: str, total: int, active: int) -> None:
    tensors = weight_tensors(load_model(model))
    assert weights.n_params(tensors) == total
    assert weights.n_active_params(tensors) == active


def test_deepseek_v3_uses_the_37e9_that_its_report_prints() -> None:
    # https://arxiv.org/abs/2412.19437: 671e9, of which 37e9 a token (without the input embedding).
    tensors = weight_tensors(load_model("deepseek-v3"))
    assert weights.n_params(tensors) / 1e9 == pytest.approx(671, abs=0.5)
    assert (weights.n_active_params(tensors) - 129_280 * 7168) / 1e9 == pytest.approx(37, abs=0.5)


def test_the_critical_batch_of_a_mixture_is_that_of_a_dense_model_times_the_experts_of_each_active_one() -> None:
    # Chapter 7: B > 240 E / k on v5e; 1,920 tokens for 16 experts of which 2 are active.
    ratio = experts.experts_per_active(16, 2)
    assert experts.critical_batch(1.97e14, 8.2e11, 2.0, ratio, 1) == pytest.approx(240 * 8, rel=2e-3)
    assert experts.critical_batch(1.97e14, 8.2e11, 2.0, ratio, 4) == pytest.approx(4 * 240 * 8, rel=2e-3)
    # At that batch each expert sees as many tokens as a dense layer at its own critical batch.
    assert experts.tokens_per_expert(1920, ratio) == 240


def test_stages_work_on_a_part_of_the_batch_each() -> None:
    assert experts.routed_tokens(64, 1) == 64
    assert experts.routed_tokens(64, 4) == 16


def test_the_book_counts_the_parameters_that_a_token_uses() -> None:
    # Chapter 7, worked problem 5: 2 x 31.2e9 FLOPs a token.
    assert experts.prefill_flops_book(31_270_109_184, 10) == pytest.approx(20 * 31.2e9, rel=3e-3)


@given(CHOICES, TOKENS)
def test_the_width_that_a_batch_reads_is_that_of_the_experts_that_it_touches(
    choice: tuple[int, int], tokens: int
) -> None:
    (n_experts, n_active), width, shared = choice, 1408, 2816
    touched = experts.experts_touched(tokens, n_active, n_experts)
    read = experts.d_ff_read(n_active * width + shared, touched, n_active, width)
    assert read == pytest.approx(touched * width + shared)
    alone = experts.d_ff_read(n_active * width + shared, n_active, n_active, width)
    assert alone == n_active * width + shared


def test_limits_of_a_mixture_are_those_of_a_dense_model_as_wide_as_what_is_read() -> None:
    # Chapter 8, question 0.9: 49.2 ways at F = 28,672, B = 64 on one ring of v5e.
    assert experts.model_parallel_limit_hbm_bound(28_672, 9e10, 8.2e11, 2.0, 2.0, 64) == pytest.approx(49.2, rel=3e-3)
    assert experts.model_parallel_limit_hbm_bound(28_672, 9e10, 8.2e11, 2.0, 2.0, 64) == (
        limits.model_parallel_limit_hbm_bound(28_672, 9e10, 8.2e11, 2.0, 2.0, 64)
    )
    assert experts.gate_matmul_hbm_s(8192, 28_672, 2.0, 32, 8.2e11) == limits.gate_matmul_hbm_s(
        8192, 28_672, 2.0, 32, 8.2e11
    )
