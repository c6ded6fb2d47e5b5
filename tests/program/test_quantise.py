"""Narrow dtypes: no number is off by more than half a step of its scale, and products take the scales."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

import jax.numpy as jnp

from slicewise.program.quantise import LARGEST, TINY, cast, matmul, narrowed, quantise

DTYPES = st.sampled_from(sorted(LARGEST))
NUMBERS = st.floats(-(2.0**40), 2.0**40, width=32, allow_subnormal=False) | st.floats(-8, 8, width=32)
EVEN = st.builds(
    lambda seed, power: np.random.default_rng(seed).uniform(-1, 1, (4, 6)).astype(np.float32) * np.float32(2.0**power),
    st.integers(0, 1000),
    st.integers(-20, 20),
)
MATRICES = EVEN | hnp.arrays(np.float32, (4, 6), elements=NUMBERS)
AXES = st.sampled_from([0, 1, -1])
KEPT = st.sampled_from(["fp32", "bf16"])


def as_floats(x: NDArray[np.float32], dtype: str, axis: int, kept: str) -> tuple[Any, Any]:
    """Numbers, and scales with the axis that they cover."""
    numbers, scales = quantise(jnp.asarray(x), dtype, axis, kept)
    assert scales.shape == tuple(np.delete(x.shape, axis))
    wide, beside = (np.asarray(each.astype(jnp.float32)).astype(np.float64) for each in (numbers, scales))
    return wide, np.expand_dims(beside, axis)


def half_step(x: NDArray[np.float64], scale: NDArray[np.float64], dtype: str) -> NDArray[np.float64]:
    """Half of what neighbours of a number are apart: one scale, or for fp8 an eighth of the power of two below."""
    if dtype != "fp8":
        return scale / 2
    power = np.exp2(np.floor(np.log2(np.maximum(np.abs(x) / scale, 2.0**-6))))
    return scale * power / 16


def test_the_largest_numbers_are_those_of_the_dtypes() -> None:
    largest = {"int8": jnp.iinfo(jnp.int8).max, "int4": jnp.iinfo(jnp.int4).max, "fp8": jnp.finfo("float8_e4m3fn").max}
    assert largest == LARGEST


@given(x=MATRICES, dtype=DTYPES, axis=AXES, kept=KEPT)
def test_a_number_is_off_by_half_a_step_and_no_more(x: NDArray[np.float32], dtype: str, axis: int, kept: str) -> None:
    numbers, scale = as_floats(x, dtype, axis, kept)
    # A float32 quotient is rounded before it is made whole.
    assert np.all(np.abs(numbers * scale - x) <= half_step(x.astype(np.float64), scale, dtype) * (1 + 1e-4))


@given(x=MATRICES, dtype=DTYPES, axis=AXES, kept=KEPT)
def test_zeros_stay_zero_and_signs_stay(x: NDArray[np.float32], dtype: str, axis: int, kept: str) -> None:
    numbers, scale = as_floats(x, dtype, axis, kept)
    assert np.all(numbers[x == 0] == 0)
    assert np.all(numbers * x >= 0)
    assert np.all(scale > 0)


@given(x=MATRICES, dtype=DTYPES, axis=AXES, kept=KEPT)
def test_the_largest_of_a_group_is_the_largest_number(x: NDArray[np.float32], dtype: str, axis: int, kept: str) -> None:
    numbers, _ = as_floats(x, dtype, axis, kept)
    at = np.expand_dims(np.abs(x).argmax(axis), axis)
    seen = np.abs(np.take_along_axis(x, at, axis)) > TINY
    assert np.all(np.abs(np.take_along_axis(numbers, at, axis))[seen] == LARGEST[dtype])
    assert np.all(np.abs(numbers) <= LARGEST[dtype])


@given(x=MATRICES, dtype=DTYPES, power=st.integers(-8, 8))
def test_groups_have_scales_of_their_own(x: NDArray[np.float32], dtype: str, power: int) -> None:
    once, again = (
        as_floats(each, dtype, 0, "fp32") for each in (x, np.concatenate([x[:, :1] * 2.0**power, x[:, 1:]], 1))
    )
    assert np.array_equal(once[0][:, 1:], again[0][:, 1:])
    assert np.array_equal(once[1][:, 1:], again[1][:, 1:])


@given(x=MATRICES)
def test_whole_numbers_without_scales_are_rounded_and_cut_off(x: NDArray[np.float32]) -> None:
    for dtype in ("int8", "int4"):
        found = np.asarray(cast(jnp.asarray(x), dtype).astype(jnp.float32))
        assert np.array_equal(found, np.clip(np.round(x), -LARGEST[dtype], LARGEST[dtype]))
    fp8 = np.asarray(cast(jnp.asarray(x), "fp8").astype(jnp.float32))
    assert np.all(np.isfinite(fp8))
    assert np.array_equal(np.asarray(cast(jnp.asarray(x), "fp32")), x)


@given(x=hnp.arrays(np.float32, (2, 3, 8), elements=NUMBERS), dtype=DTYPES)
def test_a_cache_has_a_scale_for_each_token_and_head(x: NDArray[np.float32], dtype: str) -> None:
    found = narrowed(jnp.asarray(x), {"kv", "kv_scale"}, dtype)
    assert (found["kv"].shape, found["kv_scale"].shape) == (x.shape, x.shape[:-1])
    assert found["kv_scale"].dtype == jnp.bfloat16
    wide = found["kv"].astype(jnp.float32) * found["kv_scale"].astype(jnp.float32)[..., None]
    largest = np.abs(x).max(-1, keepdims=True)
    assert np.all(np.abs(wide - x) <= np.maximum(largest, TINY) / {"int8": 254, "int4": 14, "fp8": 28}[dtype] * 1.01)
    assert list(narrowed(jnp.asarray(x), {"kv"}, dtype)) == ["kv"]


@pytest.mark.parametrize("dtype", sorted(LARGEST))
def test_a_product_is_that_of_what_numbers_and_scales_stand_for(dtype: str) -> None:
    x, w = (
        np.random.default_rng(seed).normal(size=size).astype(np.float32) for seed, size in ((0, (3, 8)), (1, (8, 5)))
    )
    numbers, scales = quantise(jnp.asarray(w), dtype, axis=0)
    found = matmul(jnp.asarray(x), {"w": numbers, "w_scale": scales}, "w")
    assert np.asarray(found) == pytest.approx(
        x @ (np.asarray(numbers.astype(jnp.float32)) * np.asarray(scales)), abs=1e-5
    )
    assert np.asarray(matmul(jnp.asarray(x), {"w": jnp.asarray(w)}, "w")) == pytest.approx(x @ w, abs=1e-5)


def test_products_are_added_up_in_float32() -> None:
    x, w = jnp.ones((1, 4096), jnp.bfloat16), jnp.ones((4096, 1), jnp.bfloat16)
    w = w.at[0].set(4096)
    assert matmul(x, {"w": w}, "w", dtype=jnp.float32).item() == 4096 + 4095
    assert matmul(x, {"w": w}, "w").dtype == jnp.bfloat16
