"""Prefill: question 0.10 of chapter 8 in its variants, and attention against brute force."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.costs import prefill
from slicewise.costs.weights import head_params, matmul_params
from slicewise.spec.tensors import weight_tensors

MODEL = load_model("llama-3-70b")
TOKENS = 8192


def seconds(flops: float) -> float:
    """On 16 v5e at 40 % of 1.97e14 FLOP/s."""
    return float(prefill.prefill_flops_s(flops, 16, 1.97e14, 0.4))


def attended(tokens: int, window: float) -> float:
    """Tokens attended to, summed over a prompt."""
    return float(prefill.prefill_attended_tokens(tokens, prefill.prefill_window_tokens(tokens, window)))


def attention(window: float = math.inf) -> float:
    """Attention's FLOPs of 70B."""
    each = attended(TOKENS, window)
    return float(prefill.prefill_attention_flops(MODEL.n_heads, MODEL.head_dim, MODEL.n_layers, each))


@pytest.mark.parametrize(("params", "time_s"), [(70e9, 0.90964), (70_553_706_496, 0.9168)])
def test_question_10_without_attention(params: float, time_s: float) -> None:
    assert seconds(prefill.prefill_flops_book(params, TOKENS)) == pytest.approx(time_s, rel=1e-4)


def test_question_10_with_causal_attention() -> None:
    flops = prefill.prefill_flops(prefill.prefill_flops_book(70e9, TOKENS), attention())
    assert seconds(flops) == pytest.approx(0.9794, rel=1e-4)
    assert attention() / prefill.prefill_flops_book(70e9, TOKENS) == pytest.approx(0.0767, rel=1e-3)


def test_question_10_with_the_head_for_the_last_token_only() -> None:
    tensors = weight_tensors(MODEL)
    flops = prefill.prefill_matmul_flops(matmul_params(tensors), head_params(tensors), TOKENS)
    assert seconds(flops) == pytest.approx(0.8895, rel=1e-4)


@given(st.integers(1, 4000), st.just(math.inf) | st.integers(1, 6000))
def test_attention_is_the_sum_over_tokens(tokens: int, window: float) -> None:
    """Token t attends to min(t, window) others; the area leaves half a position a token out."""
    exact = np.minimum(np.arange(1, tokens + 1), window).sum()
    area = attended(tokens, window)
    assert exact - area == pytest.approx(min(tokens, window) / 2)
    assert area == pytest.approx(exact, rel=1 / min(tokens, window))


def test_a_window_as_long_as_the_prompt_changes_nothing() -> None:
    assert attention(TOKENS) == attention() == 2 * 64 * 128 * 80 * TOKENS**2


@given(st.integers(1, 10**5), st.integers(1, 10**5), st.integers(1, 10**5))
def test_a_wider_window_never_costs_less(tokens: int, window: int, more: int) -> None:
    assert attended(tokens, window) <= attended(tokens, window + more)


def test_collectives_of_a_prompt() -> None:
    # 4 L collectives of b_a T D bytes: 134 MB each for 70B at 8192 tokens.
    n_bytes = prefill.prefill_all_gather_bytes(TOKENS, 8192, 2.0)
    assert n_bytes == pytest.approx(134e6, rel=2e-3)
    each = prefill.prefill_all_gather_s(n_bytes, 9e10, 6e-6)
    assert prefill.prefill_ici_s(80, each) == pytest.approx(320 * n_bytes / 9e10)
    assert prefill.prefill_all_gather_s(1.0, 9e10, 6e-6) == 6e-6


def test_views_differ_by_what_hides_behind_what() -> None:
    flops, load, ici = 2.0, 3.0, 4.0
    assert prefill.prefill_roofline_s(flops, load) == 3.0
    assert prefill.prefill_overlapped_s(flops, load, ici) == 4.0
    assert prefill.prefill_serial_s(flops, load, ici) == 7.0


def test_throughput_of_prefill() -> None:
    assert prefill.prefill_tokens_per_s_per_chip(8192, 0.5, 16) == 1024
