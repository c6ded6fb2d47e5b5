"""Attention on one chip: against its formula in numpy, in blocks of queries, and to caches that are narrow."""

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

import jax
import jax.numpy as jnp

from slicewise.program import attention
from slicewise.program.attention import cached_attention, causal_attention
from slicewise.program.quantise import LARGEST, narrowed

HEADS, KV_HEADS, WIDTH = 6, 2, 8
Array = NDArray[np.float32]


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def prompt(n_tokens: int) -> tuple[Array, Array, Array]:
    return (
        normal(n_tokens, HEADS, WIDTH),
        normal(n_tokens, KV_HEADS, WIDTH),
        2 + normal(KV_HEADS, n_tokens, WIDTH).transpose(1, 0, 2),
    )


def by_formula(q: Array, k: Array, v: Array) -> Array:
    """One query [heads, H] to keys and values [tokens, kv_heads, H], head by head."""
    done = []
    for head in range(HEADS):
        of = head * KV_HEADS // HEADS
        weights = np.exp(k[:, of] @ q[head] / np.sqrt(WIDTH))
        done.append(weights @ v[:, of] / weights.sum())
    return np.stack(done)


def as_cache(k: Array, v: Array) -> Array:
    return np.stack([k, v]).transpose(0, 2, 1, 3)[:, None]


def test_each_token_of_a_prompt_attends_to_those_before_it_and_itself() -> None:
    q, k, v = prompt(7)
    found = np.asarray(jax.jit(causal_attention)(q, k, v))
    for at in range(7):
        assert found[at] == pytest.approx(by_formula(q[at], k[: at + 1], v[: at + 1]), abs=1e-5)


@pytest.mark.parametrize("block", [3, 4])
def test_blocks_of_queries_change_nothing(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    q, k, v = prompt(8)
    whole = jax.jit(causal_attention)(q, k, v)
    monkeypatch.setattr(attention, "PROMPT_BLOCK", block)
    blocks = jax.jit(partial(causal_attention))(q, k, v)
    assert np.asarray(blocks) == pytest.approx(np.asarray(whole), abs=1e-6)


def test_a_cached_query_attends_to_the_slots_that_count_and_no_other() -> None:
    q, k, v = normal(3, HEADS, WIDTH), normal(3, 9, KV_HEADS, WIDTH), normal(9, 3, KV_HEADS, WIDTH).swapaxes(0, 1)
    held = np.arange(9) < np.array([[1], [4], [9]])
    held[1] = np.roll(held[1], 7)
    cache = np.concatenate([as_cache(*each) for each in zip(k, v, strict=True)], axis=1)
    found = np.asarray(jax.jit(cached_attention)(q, {"kv": cache}, held))
    for row in range(3):
        assert found[row] == pytest.approx(by_formula(q[row], k[row, held[row]], v[row, held[row]]), abs=1e-5)


@pytest.mark.parametrize("dtype", sorted(LARGEST))
def test_narrow_keys_and_values_are_what_their_scales_make_them(dtype: str) -> None:
    q, k, v = prompt(9)
    sizes = np.exp2(np.arange(9) % 4)[:, None, None].astype(np.float32)
    cache = narrowed(jnp.asarray(as_cache(k * sizes, v / sizes)), {"kv_scale"}, dtype)
    wide = cache["kv"].astype(jnp.float32) * cache["kv_scale"].astype(jnp.float32)[..., None]
    held = np.ones((1, 9), bool)
    found, expected = (jax.jit(cached_attention)(q[:1], each, held) for each in (cache, {"kv": wide}))
    assert np.asarray(found) == pytest.approx(np.asarray(expected), abs=1e-5)


def test_large_scores_overflow_nowhere() -> None:
    q, k, v = prompt(5)
    found = jax.jit(cached_attention)(q[:1] * 1e4, {"kv": as_cache(k, v)}, np.ones((1, 5), bool))
    assert np.all(np.isfinite(np.asarray(found)))
    assert np.all(np.isfinite(np.asarray(jax.jit(causal_attention)(q * 1e4, k, v))))
