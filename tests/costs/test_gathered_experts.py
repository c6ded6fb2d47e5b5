"""Experts cut over groups that work on parts of the batch: all tokens pass all chips of a stage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.costs import gathered_experts

D_MODEL = 7168


def test_bytes_are_those_of_all_groups() -> None:
    # b_a D of each token of the batch, and of one prompt of every group.
    assert gathered_experts.expert_gather_bytes(1504, D_MODEL, 2.0) == 1504 * D_MODEL * 2
    assert gathered_experts.prefill_expert_gather_bytes(8192, 8, D_MODEL, 2.0) == 8 * 8192 * D_MODEL * 2


def test_deepseek_v3_over_eight_groups_pays_for_what_its_experts_gather() -> None:
    """Two collectives in 58 layers of V (n - 1) / (n w): 1,504 tokens over 8 H200s at 4.5e11 B/s each."""
    step = slicewise.step("deepseek-v3", slice="h200:8", dp=8, ep=1, batch=1504, isl=2000, osl=1000)
    assert step.ici_s == pytest.approx(2 * 58 * 1504 * D_MODEL * 2 * 7 / (8 * 4.5e11), rel=1e-9)


@given(st.integers(1, 10**6), st.integers(1, 64), st.floats(1e9, 1e12))
def test_a_prompt_of_each_group_is_as_many_tokens(tokens: int, groups: int, rate: float) -> None:
    prompts = gathered_experts.prefill_expert_gather_bytes(tokens, groups, D_MODEL, 2.0)
    assert prompts == gathered_experts.expert_gather_bytes(tokens * groups, D_MODEL, 2.0)
    decode = gathered_experts.expert_gather_s(prompts, rate, 2e-6)
    assert gathered_experts.prefill_expert_gather_s(prompts, rate, 2e-6) == decode >= 2e-6


def test_collectives_of_groups_and_of_experts_add_up() -> None:
    assert gathered_experts.ici_s(4, 1.0, 2, 3.0, 5, 7.0) == 4 + 6 + 35
    assert gathered_experts.prefill_ici_s(4, 1.0, 5, 7.0) == 39
