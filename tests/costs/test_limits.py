"""Limits: critical batches and ways of model parallelism, as chapters 7 and 8 work them out."""

import pytest

from slicewise.costs import limits

V5E_HBM, V5E_BF16, V5E_INT8 = 8.2e11, 1.97e14, 3.94e14
RING, TWO_RINGS, TWO_LINES = 9e10, 1.8e11, 9e10
F_70B = 28672


@pytest.mark.parametrize(
    ("flops_per_s", "width", "batch"),
    [(V5E_BF16, 2.0, 240.24), (V5E_BF16, 1.0, 120.12), (V5E_INT8, 1.0, 240.24), (V5E_BF16, 0.5, 60.06)],
    ids=["bf16-bf16", "int8-bf16", "int8-int8", "int4-bf16"],
)
def test_critical_batches_of_question_4(flops_per_s: float, width: float, batch: float) -> None:
    assert limits.critical_batch(flops_per_s, V5E_HBM, width) == pytest.approx(batch, rel=1e-4)


@pytest.mark.parametrize(
    ("network", "ways"), [(TWO_RINGS, 26.2), (TWO_LINES, 13.1)], ids=["as-the-book-two-rings", "as-4x4-is-two-lines"]
)
def test_ways_where_flops_bind_of_question_9(network: float, ways: float) -> None:
    assert limits.model_parallel_limit_flops_bound(F_70B, network, V5E_BF16, 2.0) == pytest.approx(ways, rel=2e-3)


@pytest.mark.parametrize(
    ("batch", "network", "width", "ways"),
    [
        (64, RING, 2.0, 49.2),
        (138, RING, 2.0, 22.8),
        (138, TWO_RINGS, 2.0, 45.6),
        (43, RING, 1.0, 36.6),
        (43, RING, 0.5, 18.3),
        (138, RING, 1.0, 11.4),
    ],
)
def test_ways_where_hbm_binds_of_question_9(batch: int, network: float, width: float, ways: float) -> None:
    found = limits.model_parallel_limit_hbm_bound(F_70B, network, V5E_HBM, width, 2.0, batch)
    assert found == pytest.approx(ways, rel=3e-3)


def test_one_gate_matmul_on_4x8_at_batch_64() -> None:
    # Question 0.9 prints 11, 18 and 4 us, truncated.
    assert limits.gate_matmul_ici_one_axis_s(2 * 64 * 8192, RING) == pytest.approx(11.65e-6, rel=1e-3)
    assert limits.gate_matmul_hbm_s(8192, F_70B, 2.0, 32, V5E_HBM) == pytest.approx(17.90e-6, rel=1e-3)
    assert limits.gate_matmul_flops_s(64, 8192, F_70B, 32, V5E_BF16) == pytest.approx(4.77e-6, rel=1e-3)


def test_the_limits_are_where_the_times_cross() -> None:
    d_model, batch, width = 8192, 64, 2.0
    ways = limits.model_parallel_limit_hbm_bound(F_70B, RING, V5E_HBM, width, 2.0, batch)
    assert limits.gate_matmul_hbm_s(d_model, F_70B, width, ways, V5E_HBM) == pytest.approx(
        limits.gate_matmul_ici_one_axis_s(2.0 * batch * d_model, RING)
    )
    ways = limits.model_parallel_limit_flops_bound(F_70B, RING, V5E_BF16, 2.0)
    assert limits.gate_matmul_flops_s(batch, d_model, F_70B, ways, V5E_BF16) == pytest.approx(
        limits.gate_matmul_ici_one_axis_s(2.0 * batch * d_model, RING)
    )


def test_two_dimensional_sharding_pays_from_72_chips() -> None:
    # Chapter 7, worked problem 7, F = 4 D.
    assert limits.two_dimensional_sharding_chips(4096, 4 * 4096) == 72
