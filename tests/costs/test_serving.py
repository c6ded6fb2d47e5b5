"""Steady state: questions 0.11 and 0.12 of chapter 8, and flows that are conserved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.costs import serving

TIME, COUNT = st.floats(1e-4, 100.0), st.integers(1, 10_000)


def test_question_11_of_chapter_8() -> None:
    # P = 8192, G = 4096, B = 32: 32 / 4096 sequences finish and 96 tokens leave in a step.
    assert serving.sequences_finished_per_step(32, 4096) == 0.0078125
    assert serving.tokens_evicted_per_step(32, 8192, 4096) == 96


# P = 8192, G = 512. The printed 3 takes B = 32 with the step of B = 43; each with its own step gives the others.
@pytest.mark.parametrize(
    ("batch", "step_s", "prefill_s", "ratio"),
    [
        (32, 0.019, 0.91, 2.993),
        (32, 0.017218, 0.90964, 3.302),
        (43, 0.019469, 0.90964, 3.924),
        (40, 0.019110, 0.90964, 3.719),
    ],
)
def test_question_12_of_chapter_8(batch: int, step_s: float, prefill_s: float, ratio: float) -> None:
    decode_s = serving.decode_s_per_request(512, step_s, batch)
    assert serving.prefill_servers_per_decode_server(prefill_s, decode_s) == pytest.approx(ratio, rel=3e-4)


@given(TIME, TIME, COUNT, COUNT)
def test_the_ratio_balances_what_prefill_gives_and_decode_takes(
    prefill_s: float, step_s: float, output: int, batch: int
) -> None:
    decode_s = serving.decode_s_per_request(output, step_s, batch)
    ratio = serving.prefill_servers_per_decode_server(prefill_s, decode_s)
    assert ratio == pytest.approx(batch * prefill_s / (step_s * output), rel=1e-12)
    assert ratio * serving.prefill_requests_per_s(prefill_s) == pytest.approx(serving.decode_requests_per_s(decode_s))


@given(TIME, TIME, COUNT, COUNT, st.floats(0.01, 1e4))
def test_servers_cover_the_rate_and_one_fewer_would_not(
    prefill_s: float, step_s: float, output: int, batch: int, rate: float
) -> None:
    decode_s = serving.decode_s_per_request(output, step_s, batch)
    both_s = serving.replica_s_per_request(prefill_s, decode_s)
    for servers, each_s in (
        (serving.replicas(rate, both_s), both_s),
        (serving.prefill_servers(rate, prefill_s), prefill_s),
        (serving.decode_servers(rate, decode_s), decode_s),
    ):
        assert servers == int(servers) >= 1
        assert servers / each_s >= rate * (1 - 1e-12)
        assert (servers - 1) / each_s < rate * (1 + 1e-12)


@given(TIME, TIME, COUNT, COUNT)
def test_sharing_the_chips_takes_as_long_as_both_phases(
    prefill_s: float, step_s: float, output: int, batch: int
) -> None:
    both_s = serving.replica_s_per_request(prefill_s, serving.decode_s_per_request(output, step_s, batch))
    assert serving.requests_per_s_shared(both_s) * both_s == pytest.approx(1)
    # In G tokens of each of B sequences there are B prefills.
    assert serving.tpot_shared_s(both_s, batch, output) == pytest.approx(step_s + batch * prefill_s / output)


def test_the_slower_end_decides_the_hand_off() -> None:
    ends = serving.handoff_send_bytes_per_s(16, 3.125e9), serving.handoff_receive_bytes_per_s(4, 6.25e9)
    assert ends == (5e10, 2.5e10)
    assert serving.handoff_bytes_per_s(*ends) == 2.5e10
    assert serving.ttft_split_s(0.5, 0.02) == 0.52


def test_a_sequence_grows_from_its_prompt_to_its_end() -> None:
    # Capacity at T + G, bandwidth at the mean.
    assert serving.longest_context_tokens(8192, 512) == 8704
    held = [8192 + generated for generated in range(513)]
    assert serving.mean_context_tokens(8192, 512) == sum(held) / len(held) == 8448


def test_chips_of_a_fleet() -> None:
    assert serving.replicas_chips(3, 16) == 48
    assert serving.split_chips(3, 2, 16) == 80


def test_a_cache_is_handed_over() -> None:
    # 70B int8, 8192 tokens: 1.342 GB over 16 v5e with 3.125 GB/s each.
    n_bytes = serving.handoff_bytes(8192, 163_840)
    assert n_bytes == 1_342_177_280
    assert serving.handoff_s(n_bytes, serving.handoff_send_bytes_per_s(16, 3.125e9)) == pytest.approx(0.02684, rel=1e-3)
