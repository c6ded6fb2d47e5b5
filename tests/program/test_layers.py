"""Parts of a layer: norms and rotary embeddings by their properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

import jax.numpy as jnp

from helpers.made_llamas import CONFIGS
from helpers.programs import read
from slicewise.program.layers import parted, rms_norm, rotary
from slicewise.program.numerics import rotary_frequencies

LLAMA = read(CONFIGS["llama-stretched"])
ROWS = np.random.default_rng(0).normal(size=(2, 3, LLAMA.head_dim)).astype(np.float32)


def turned(positions: list[int]) -> np.ndarray:
    return np.asarray(rotary(jnp.asarray(ROWS), jnp.asarray(positions), LLAMA))


@given(first=st.integers(0, 1000), second=st.integers(0, 1000), further=st.integers(0, 1000))
def test_scores_depend_on_the_distance_alone(first: int, second: int, further: int) -> None:
    here, there = turned([first, second]), turned([first + further, second + further])
    assert (here[0] * here[1]).sum(-1) == pytest.approx((there[0] * there[1]).sum(-1), abs=5e-3)


@given(position=st.integers(0, 1000))
def test_pairs_half_a_head_apart_turn_by_their_frequencies(position: int) -> None:
    half = LLAMA.head_dim // 2
    before, after = (x[..., :half] + 1j * x[..., half:] for x in (ROWS, turned([position, position])))
    angles = position * rotary_frequencies(LLAMA.numerics, LLAMA.head_dim).astype(np.float64)
    assert after == pytest.approx(before * np.exp(1j * angles), abs=1e-3)


def test_the_first_token_is_not_turned() -> None:
    assert np.array_equal(turned([0, 0]), ROWS)


def test_a_norm_divides_by_the_root_mean_square_of_each_row() -> None:
    x, weight = ROWS * 7, np.linspace(0.5, 2, LLAMA.head_dim, dtype=np.float32)
    expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 0.1)
    assert np.asarray(rms_norm(jnp.asarray(x), None, 0.1)) == pytest.approx(expected, abs=1e-5)
    assert np.asarray(rms_norm(jnp.asarray(x), jnp.asarray(weight), 0.1)) == pytest.approx(expected * weight, abs=1e-5)


def test_a_norm_of_narrow_activations_is_taken_in_float32() -> None:
    x = jnp.full((1, 2**18), 3, jnp.bfloat16)
    assert np.all(rms_norm(x, None, 0.0) == 1)
    assert rms_norm(x, None, 0.0).dtype == jnp.bfloat16


def test_columns_part_into_queries_keys_and_values_of_each_chip() -> None:
    heads, kv_heads = LLAMA.n_heads, LLAMA.n_kv_heads
    columns = np.arange(2 * (heads + 2 * kv_heads)).reshape(1, 2, -1)
    q, k, v = (np.asarray(part)[0] for part in parted(jnp.asarray(columns), LLAMA))
    ends = heads, heads + kv_heads, heads + 2 * kv_heads
    for found, start, end in ((q, 0, ends[0]), (k, ends[0], ends[1]), (v, ends[1], ends[2])):
        assert list(found) == [*range(start, end), *range(start + ends[2], end + ends[2])]
