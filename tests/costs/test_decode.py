"""A decode step: the worked numbers of chapters 7 and 8 of How to Scale Your Model."""

import numpy as np
import pytest

from slicewise.costs import decode

V5E_HBM, V5E_BF16 = 8.2e11, 1.97e14
MS = 1e-3


def book_step_s(batch: int, kv_bytes_each: float, params: float, width: float, n_chips: int) -> float:
    """The book's general formula, put together from the parts."""
    kv = decode.kv_load_s(batch * kv_bytes_each, n_chips, V5E_HBM)
    matmul = decode.matmul_s(decode.matmul_flops(batch, params), n_chips, V5E_BF16)
    return float(decode.step_roofline_s(kv, matmul, decode.param_load_s(params * width, n_chips, V5E_HBM)))


@pytest.mark.parametrize(("batch", "step_ms"), [(4, 2.536), (256, 20.857)])
def test_pop_quiz_of_chapter_7(batch: int, step_ms: float) -> None:
    # 30e9 int8 parameters, bf16 FLOPs, v5e 4x4, 8192 tokens of 100 kB.
    assert book_step_s(batch, 8192 * 100e3, 30e9, 1, 16) == pytest.approx(step_ms * MS, rel=3e-4)


# LLaMA 2-13B on 8 x v5e, bf16, 8192 tokens: step [ms] and tokens/s as printed, KV and parameters only.
@pytest.mark.parametrize(
    ("batch", "step_ms", "tokens_per_s"),
    [
        (1, 4.98, 200.61),
        (8, 12.13, 659.30),
        (16, 20.30, 787.99),
        (32, 36.65, 873.21),
        (64, 69.33, 923.13),
        (240, 249.09, 963.53),
    ],
)
def test_throughput_table_of_chapter_7(batch: int, step_ms: float, tokens_per_s: float) -> None:
    kv, params = decode.kv_load_s(batch * 6.7e9, 8, V5E_HBM), decode.param_load_s(26e9, 8, V5E_HBM)
    step_s = decode.step_roofline_s(decode.attention_s(kv, 0.0), 0.0, params)
    assert step_s == pytest.approx(step_ms * MS, abs=0.006 * MS)
    assert decode.tokens_per_s(batch, step_s) == pytest.approx(tokens_per_s, rel=1e-4)


# Question 0.3: 70e9 int8 parameters, 163,840 B a token, 8192 tokens, B = 32.
@pytest.mark.parametrize(("n_chips", "step_ms"), [(8, 17.218), (16, 8.609)])
def test_question_3_of_chapter_8(n_chips: int, step_ms: float) -> None:
    step_s = book_step_s(32, 8192 * 163_840, 70e9, 1, n_chips)
    assert step_s == pytest.approx(step_ms * MS, rel=1e-4)
    per_chip = decode.tokens_per_s_per_chip(decode.tokens_per_s(32, step_s), n_chips)
    assert per_chip == pytest.approx(232.3, rel=2e-4)


# Spot values of chapter 8's figures: 16 chips, 70e9 int8 parameters.
@pytest.mark.parametrize(
    ("context", "batch", "total_ms", "tokens_per_ms_per_chip"),
    [
        (2048, 1, 5.3609408780487815, 0.011658401280998288),
        (65536, 16, 18.429778341463415, 0.054260012327451305),
        (32768, 33, 18.838978731707318, 0.10948045694901011),
    ],
)
def test_spot_values_of_the_figures_of_chapter_8(
    context: int, batch: int, total_ms: float, tokens_per_ms_per_chip: float
) -> None:
    step_s = book_step_s(batch, context * 163_840, 70e9, 1, 16)
    assert step_s == pytest.approx(total_ms * MS, rel=1e-12)
    per_chip = decode.tokens_per_s_per_chip(decode.tokens_per_s(batch, step_s), 16)
    assert per_chip == pytest.approx(tokens_per_ms_per_chip / MS, rel=1e-12)


def test_flops_and_parameters_of_the_figures_of_chapter_8() -> None:
    assert decode.param_load_s(70e9, 16, V5E_HBM) == pytest.approx(5.335365853658537 * MS, rel=1e-12)
    assert decode.matmul_s(decode.matmul_flops(1, 70e9), 16, V5E_BF16) == pytest.approx(0.044416243654822336 * MS)
    assert decode.kv_load_s(65536 * 163_840, 16, V5E_HBM) == pytest.approx(0.8184007804878048 * MS, rel=1e-12)


# 4 N H L a position. How to Scale Your Model, ch. 8, models used.
@pytest.mark.parametrize(("heads", "layers", "flops"), [(32, 32, 524_288), (64, 80, 2_621_440), (128, 126, 8_257_536)])
def test_attention_flops_of_a_position(heads: int, layers: int, flops: int) -> None:
    assert decode.attention_flops(1, 1, heads, 128, layers) == flops
    assert decode.attention_flops(3, 1000, heads, 128, layers) == 3000 * flops


def test_attention_takes_the_longer_of_cache_and_flops() -> None:
    assert decode.attention_s(3.0, 2.0) == decode.attention_s(2.0, 3.0) == 3.0


def test_collectives_of_a_step_of_405b() -> None:
    # Exercise 1: 4 x 126 collectives of 2 B D bytes take 183.5 us a sequence on one ring or two lines of v5e.
    gather_s = decode.all_gather_s(decode.all_gather_bytes(1, 16384, 2.0), 9e10, 0.0)
    assert decode.ici_s(126, gather_s, 0.0) == pytest.approx(183.5e-6, rel=1e-3)
    # With two AllToAlls a layer beside them.
    assert decode.ici_s(126, gather_s, 1e-6) == pytest.approx(183.5e-6 + 252e-6, rel=1e-3)


def test_collectives_of_a_step_of_70b_on_two_lines() -> None:
    # 4.2 of the errata: full-step collectives of bf16 at B = 138, 4 x 80 of 2 B D bytes at 9e10, are 8.04 ms.
    gather_s = decode.all_gather_s(decode.all_gather_bytes(138, 8192, 2.0), 9e10, 0.0)
    assert decode.ici_s(80, gather_s, 0.0) == pytest.approx(8.04e-3, rel=1e-3)


def test_a_collective_takes_its_latency_at_least() -> None:
    assert decode.all_gather_s(10.0, 1e10, 14e-6) == decode.all_to_all_s(10.0, 1e10, 14e-6) == 14e-6
    assert decode.all_gather_s(1e10, 1e10, 14e-6) == 1.0


def test_an_all_to_all_moves_the_queries_of_one_group() -> None:
    # b_a B N H / Y: 70B, B = 64, 8 head shards.
    assert decode.all_to_all_bytes(64, 64, 128, 8, 2.0) == 2 * 64 * 8192 / 8


def test_views_differ_by_what_hides_behind_what() -> None:
    attention, matmul, load, ici = 1.0, 2.0, 3.0, 4.0
    assert decode.step_roofline_s(attention, matmul, load) == 4.0
    assert decode.step_overlapped_s(attention, matmul, load, ici) == 5.0
    assert decode.step_serial_s(attention, matmul, load, ici) == 8.0
    assert decode.shared_s(load, matmul, ici) == 4.0


def test_a_grid_goes_the_same_way_as_a_point() -> None:
    batch = np.arange(1.0, 512.0)
    grid = decode.step_roofline_s(
        decode.kv_load_s(batch * 2048 * 163_840, 16, V5E_HBM),
        decode.matmul_s(decode.matmul_flops(batch, 70e9), 16, V5E_BF16),
        decode.param_load_s(70e9, 16, V5E_HBM),
    )
    assert grid.tolist() == [book_step_s(int(b), 2048 * 163_840, 70e9, 1, 16) for b in batch]


def test_requests_are_tokens_over_their_length() -> None:
    assert decode.requests_per_s_per_chip(512.0, 512) == 1.0
