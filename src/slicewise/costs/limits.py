"""Limits: when matmuls turn compute bound, and how far model parallelism goes before the network binds."""

from __future__ import annotations

from slicewise.costs.real import Real


def critical_batch(flops_per_s: Real, hbm_bytes_per_s: Real, weight_bytes_per_param: Real) -> Real:
    """Batch from which matmuls are compute bound: C / W * b_w / 2. []

    Neglects: activations' own bytes, 4 % at D = 8192.
    Source: scaling-book-inference
    """
    return flops_per_s / hbm_bytes_per_s * weight_bytes_per_param / 2


def model_parallel_limit_flops_bound(
    d_ff: Real, all_gather_bytes_per_s: Real, flops_per_s: Real, activation_bytes_per_element: Real
) -> Real:
    """Ways of model parallelism beyond which the network binds, where FLOPs bind otherwise: F (2 / b_a) W_ici / C. []

    W_ici is that of all axes together, M_Y times one axis where they are alike.
    Source: scaling-book-applied-inference
    """
    return d_ff * (2 / activation_bytes_per_element) * all_gather_bytes_per_s / flops_per_s


def model_parallel_limit_hbm_bound(
    d_ff: Real,
    all_gather_bytes_per_s: Real,
    hbm_bytes_per_s: Real,
    weight_bytes_per_param: Real,
    activation_bytes_per_element: Real,
    batch: Real,
) -> Real:
    """Ways of model parallelism beyond which the network binds, where HBM binds otherwise: F b_w W_ici / (b_a W B). []

    Source: scaling-book-inference
    """
    return (
        d_ff
        * weight_bytes_per_param
        * all_gather_bytes_per_s
        / (activation_bytes_per_element * hbm_bytes_per_s * batch)
    )


def gate_matmul_ici_one_axis_s(all_gather_bytes: Real, one_axis_bytes_per_s: Real) -> Real:
    """Collective of one gate matmul, over one axis, bandwidth alone. [s]

    Source: scaling-book-applied-inference
    """
    return all_gather_bytes / one_axis_bytes_per_s


def gate_matmul_hbm_s(
    d_model: Real, d_ff: Real, weight_bytes_per_param: Real, n_chips: Real, hbm_bytes_per_s: Real
) -> Real:
    """Time to read one gate matrix. [s]

    Source: scaling-book-applied-inference
    """
    return d_model * d_ff * weight_bytes_per_param / (n_chips * hbm_bytes_per_s)


def gate_matmul_flops_s(batch: Real, d_model: Real, d_ff: Real, n_chips: Real, flops_per_s: Real) -> Real:
    """FLOPs time of one gate matmul at peak. [s]

    Source: scaling-book-applied-inference
    """
    return 2 * batch * d_model * d_ff / (n_chips * flops_per_s)


def two_dimensional_sharding_chips(d_model: Real, d_ff: Real) -> Real:
    """Chips of a 3D torus from which weights sharded over D and F move less than over F alone: 18 F / D. []

    Over F alone, all three axes: 4 B D / (3 W). Over D on X chips of one axis and F on N / X of two:
    2 B D / (X W) + 4 B F X / (N W) for an MLP of two matrices, least at X = sqrt(N D / (2 F)), where it is
    B sqrt(32 D F / N) / W.
    Valid: full rings; v4, v5p and TPU7x. Neglects: the gate matrix, and hops.
    Source: scaling-book-inference
    """
    return 18 * d_ff / d_model
