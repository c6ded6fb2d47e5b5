"""The ledger: parts sum to the whole, and the largest batch is the one that brute force finds."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slicewise.costs import memory

MANY = np.arange(1.0, 4001.0)
BUDGET, KV, ACTIVATION, SHARDS = st.integers(-100, 4000), st.integers(1, 300), st.integers(0, 100), st.integers(1, 40)


def whole(budget: int, kv: int, activation: int, shards: int) -> float:
    rounds = memory.full_rounds(budget, kv, activation, shards)
    return float(memory.max_batch_whole(rounds, budget, kv, activation, shards))


def ideal(budget: int, kv: int, activation: int, shards: int) -> float:
    return float(memory.max_batch_ideal(budget, kv, activation))


def copied(budget: int, kv: int, activation: int, shards: int) -> float:
    return float(memory.max_batch_copied(budget, kv, activation, shards))


def whole_bytes(kv: int, activation: int, shards: int) -> np.ndarray:
    return np.ceil(MANY / shards) * shards * kv + MANY * activation


def ideal_bytes(kv: int, activation: int, shards: int) -> np.ndarray:
    return MANY * (kv + activation)


def copied_bytes(kv: int, activation: int, shards: int) -> np.ndarray:
    return MANY * (kv * shards + activation)


@pytest.mark.parametrize(
    ("formula", "needed"),
    [(whole, whole_bytes), (ideal, ideal_bytes), (copied, copied_bytes)],
    ids=lambda f: f.__name__,
)
@settings(max_examples=300)
@given(budget=BUDGET, kv=KV, activation=ACTIVATION, shards=SHARDS)
@example(budget=100, kv=5, activation=5, shards=4)
@example(budget=85, kv=5, activation=5, shards=4)
@example(budget=0, kv=1, activation=0, shards=1)
def test_the_largest_batch_is_the_one_that_brute_force_finds(
    formula: Callable[..., float], needed: Callable[..., np.ndarray], budget: int, kv: int, activation: int, shards: int
) -> None:
    fits = MANY[needed(kv, activation, shards) <= budget]
    assert formula(budget, kv, activation, shards) == (fits[-1] if fits.size else 0)


@given(BUDGET, KV, ACTIVATION, SHARDS)
def test_whole_sequences_never_fit_better_than_fractions_nor_worse_than_copies(
    budget: int, kv: int, activation: int, shards: int
) -> None:
    sizes = [formula(budget, kv, activation, shards) for formula in (copied, whole, ideal)]
    assert sizes == sorted(sizes)


@given(st.integers(1, 10**14), st.integers(1, 10**9))
def test_a_budget_of_exactly_n_sequences_holds_n(n_bytes: int, count: int) -> None:
    assert memory.max_batch_ideal(float(n_bytes) * count, n_bytes, 0.0) >= min(count, 2**52 // n_bytes)


@given(st.integers(-(10**13), 10**13), st.integers(1, 10**9), SHARDS)
def test_neglected_activations_leave_whole_rounds(budget: int, kv: int, shards: int) -> None:
    assert whole(budget, kv, 0, shards) == max(0, budget // (kv * shards)) * shards


def test_worked_batches_of_chapter_8() -> None:
    # 4x4 of 16e9 bytes, 70e9 int8 parameters, 163,840 B a token: floor((256e9 - 70e9) / (163840 S)).
    contexts = np.array([2048, 4096, 8192, 16384, 32768, 65536])
    budget = memory.kv_budget_bytes(memory.hbm_bytes(16, 16e9, 1.0), 70e9)
    assert memory.max_batch_ideal(budget, 163_840 * contexts, 0.0).tolist() == [554, 277, 138, 69, 34, 17]


def test_activations_of_a_decode_step() -> None:
    # Exercise 2: 8B at B = 240 holds 123.1 MB of float32 logits, and 13.8 MB of gate and up in bf16.
    each = memory.activation_bytes_per_sequence(128_256, 14_336, 2.0)
    assert memory.activation_bytes(240, each) == pytest.approx(123.1e6 + 13.8e6, rel=1e-3)
    assert memory.activation_bytes_per_sequence_neglected() == 0


def test_the_ledger_adds_up() -> None:
    # Question 0.2: 41.9e9 + 70e9 = 112.950 GB exactly, 1.88 GB a chip free on 4x2.
    total = memory.total_bytes(70e9, 32 * 8192 * 163_840, 0.0)
    assert total == pytest.approx(112.950e9, rel=1e-5)
    assert memory.free_bytes(memory.hbm_bytes(8, 16e9, 1.0), total) / 8 == pytest.approx(1.88e9, rel=2e-3)
    assert memory.total_bytes_per_chip(total, 8) * 8 == total


@given(st.integers(0, 10**6), st.integers(1, 50), st.integers(1, 300), st.sampled_from([1.0, 1.5, 4.0]))
def test_the_longest_context_fits_and_one_more_token_does_not(
    budget: int, batch: int, per_token_pair: int, replication: float
) -> None:
    per_token = 2 * per_token_pair  # keys and values
    tokens = float(memory.max_context_tokens(budget, 0.0, batch, per_token, replication, math.inf))
    token_bytes = batch * per_token * replication
    assert tokens * token_bytes <= budget < (tokens + 1) * token_bytes


def test_a_window_that_fits_leaves_the_context_unlimited() -> None:
    assert memory.max_context_tokens(1000, 0.0, 1, 1, 1.0, 999) == math.inf
    assert memory.max_context_tokens(1000, 0.0, 1, 1, 1.0, 1001) == 1000
    assert memory.max_context_tokens(-1000, 0.0, 1, 1, 1.0, math.inf) == 0
