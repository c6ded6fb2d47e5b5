"""Whole programs with narrow weights and caches: they compute with what the numbers stand for, and rounding is all."""

from collections.abc import Container
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

import jax
import jax.numpy as jnp

from helpers.made_llamas import CONFIGS, Weights, made_tokens, made_weights
from helpers.programs import EXACT, alike, as_kept, decoded, laid_out, mesh, prefilled, read, untouched, wide
from slicewise.program import decode as decode_module
from slicewise.program.build import Program, decode_program, prefill_program
from slicewise.program.quantise import LARGEST, narrowed
from slicewise.spec.precision import Precision

N_TOKENS, BATCH = 6, 4
NARROW = sorted(LARGEST)
TIED, BIASED = "qwen3", "qwen2"
MODELS = pytest.mark.parametrize("name", [TIED, BIASED], ids=["norms of queries and keys, tied", "biases"])


def precision(**dtypes: str) -> Precision:
    return replace(EXACT, **dtypes)


def decode(name: str, kept: Precision) -> Program:
    return decode_program(read(CONFIGS[name]), kept, mesh(), batch=BATCH, context=N_TOKENS, loop=True)


once = cache(decode)


def steps(name: str, weights: Weights, program: Program, dtype: str = "fp32") -> tuple[NDArray[np.float32], Any]:
    """Logits of every token of some sequences, one step after the other, and the cache."""
    laid = laid_out(program, read(CONFIGS[name]), weights, dtype)
    return decoded(program, laid, untouched(program), made_tokens(CONFIGS[name], BATCH, N_TOKENS))


def logits(name: str, weights: Weights, kept: Precision = EXACT) -> NDArray[np.float32]:
    return steps(name, weights, once(name, kept), kept.weights)[0]


def error(found: NDArray[np.float32], exact: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean((found - exact) ** 2)) / exact.std())


@MODELS
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_weights_are_what_their_scales_make_them(name: str, dtype: str) -> None:
    weights = made_weights(CONFIGS[name])
    found = logits(name, weights, precision(weights=dtype))
    assert found == pytest.approx(logits(name, as_kept(weights, dtype)), abs=1e-4)


def test_prefill_takes_them_alike() -> None:
    llama, weights, tokens = read(CONFIGS[TIED]), made_weights(CONFIGS[TIED]), made_tokens(CONFIGS[TIED])[0]

    def run(weights: Weights, dtype: str) -> NDArray[np.float32]:
        program = prefill_program(llama, precision(weights=dtype), mesh(), prompt_tokens=len(tokens), loop=True)
        return prefilled(program, laid_out(program, llama, weights, dtype), tokens)[0]

    assert run(weights, "int8") == pytest.approx(run(as_kept(weights, "int8"), "fp32"), abs=1e-4)


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_caches_are_what_their_scales_make_them(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    def rounded(kv: jax.Array, _names: Container[str], _dtype: str) -> dict[str, jax.Array]:
        kept = narrowed(kv, {"kv", "kv_scale"}, dtype)
        return {"kv": kept["kv"].astype(jnp.float32) * kept["kv_scale"].astype(jnp.float32)[..., None]}

    weights = made_weights(CONFIGS[TIED])
    found, kept = steps(TIED, weights, once(TIED, precision(kv=dtype)))
    monkeypatch.setattr(decode_module, "narrowed", rounded)
    expected, expected_kept = steps(TIED, weights, decode(TIED, EXACT))
    rows = alike(wide(kept), wide(expected_kept))
    assert len(rows) >= BATCH / 2
    assert found[rows] == pytest.approx(expected[rows], abs=1e-4)


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_logits_are_off_as_far_as_rounding_explains(dtype: str) -> None:
    weights, rng = made_weights(CONFIGS[BIASED]), np.random.default_rng(0)
    exact = logits(BIASED, weights)

    def shaken(array: NDArray[np.float32]) -> NDArray[np.float32]:
        """Each number off by anything up to half a step of its output, as rounding may have it."""
        if array.ndim == 1:
            return array
        step = np.abs(array).max(1, keepdims=True) / LARGEST[dtype]
        return (array + step * rng.uniform(-0.5, 0.5, array.shape)).astype(np.float32)

    by_chance = [
        error(logits(BIASED, {name: shaken(array) for name, array in weights.items()}), exact) for _ in range(8)
    ]
    found = error(logits(BIASED, weights, precision(weights=dtype)), exact)
    assert min(by_chance) / 1.5 < found < max(by_chance) * 1.5


@pytest.mark.parametrize("part", ["weights", "kv"])
def test_fewer_bits_are_further_off(part: str) -> None:
    weights = made_weights(CONFIGS[TIED])
    exact = logits(TIED, weights)
    off = [error(logits(TIED, weights, precision(**{part: dtype})), exact) for dtype in ("bf16", "int8", "fp8", "int4")]
    assert 0 < off[0] < off[1] < off[2] < off[3] < 0.5
    # A step of int4 is 127 / 7 of one of int8.
    assert off[3] / off[1] == pytest.approx(127 / 7, rel=0.5)
