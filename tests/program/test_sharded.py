"""Programs on eight devices against one: in float32 they add up in another order, and differ in nothing else."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

import jax
from jax.sharding import Mesh

from helpers.made_llamas import CONFIGS, made_tokens, made_weights
from helpers.programs import alike, decoded, laid_out, mesh, prefilled, read, untouched, wide
from slicewise.program.build import decode_program, prefill_program
from slicewise.spec.precision import Precision

BATCH, SLOTS, STEPS = 5, 8, 4
SAME = 2e-5
"""Logits are near one, of sums of some fifty products: a few times 2**-24 for each of a dozen sums in a row."""

TWO_AXES = ((2, 4), (2, 1), 8, 2)
WHOLE_HEADS = [
    pytest.param(((8, 1), (8, 1), 8, 8), id="8x1 by heads"),
    pytest.param(((8,), (1,), 8, 1), id="8 by batch"),
    pytest.param(TWO_AXES, id="2x4, the first axis by heads"),
    pytest.param(((2, 4), (1, 2), 8, 2), id="2x4, half of the second axis by heads"),
    pytest.param(((2, 2, 2), (2, 1, 2), 8, 4), id="2x2x2, two axes by heads"),
]
IN_PARTS = [
    pytest.param(((2, 4), (2, 1), 4, 2), id="2x4, half a query head a chip"),
    pytest.param(((4, 2), (2, 1), 8, 4), id="4x2, two KV heads for four chips"),
]
"""Splits for decode alone: prefill needs whole heads."""
DTYPES = ["fp32", "bf16", "int8", "int4", "fp8"]
Case = tuple[tuple[int, ...], tuple[int, ...], int, int]


def config(heads: int, kv_heads: int) -> dict[str, Any]:
    """A model of biases, with a vocabulary and a width that do not divide over the devices."""
    sizes = {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "vocab_size": 41, "intermediate_size": 50}
    return {**CONFIGS["qwen2"], **sizes, "head_dim": 8}


@cache
def decode(
    heads: int, kv_heads: int, on: Mesh, precision: Precision, *, loop: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Logits of some steps of ragged sequences, padding and all, and the cache of all layers."""
    made = config(heads, kv_heads)
    llama = read(made)
    program = decode_program(llama, precision, on, batch=BATCH, context=SLOTS, loop=loop)
    weights = laid_out(program, llama, made_weights(made), precision.weights, loop=loop)
    kept, tokens = untouched(program), made_tokens(made, BATCH, STEPS)
    # The numbers that fill the cache count as tokens.
    logits, kept = decoded(program, weights, kept, tokens, lengths=[0, 4, 1, 3, 0], slot=6)
    return logits, wide(kept) if loop else np.stack([wide(layer) for layer in kept])


@cache
def prefill(
    heads: int, kv_heads: int, on: Mesh, precision: Precision, *, loop: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The same of a prompt."""
    made = config(heads, kv_heads)
    llama = read(made)
    program = prefill_program(llama, precision, on, prompt_tokens=7, loop=loop)
    weights = laid_out(program, llama, made_weights(made), precision.weights, loop=loop)
    logits, kept = prefilled(program, weights, made_tokens(made, 1, 7)[0])
    return logits[None], wide(kept) if loop else np.stack([wide(layer) for layer in kept])


def check(run: Any, case: Case, precision: Precision, *, loop: bool) -> None:
    shape, split, heads, kv_heads = case
    logits, kept = run(heads, kv_heads, mesh(shape, split), precision, loop=loop)
    expected, expected_kept = run(heads, kv_heads, mesh(), precision, loop=True)
    vocab, rows = expected.shape[-1], expected_kept.shape[2]
    assert logits.shape[-1] == 48
    assert (logits[..., vocab:] < -1e29).all()
    same = alike(kept[:, :, :rows], expected_kept, SAME)
    assert len(same) >= (rows if precision.kv == "fp32" else rows // 2)
    assert np.mean(np.abs(kept[:, :, :rows] - expected_kept) > SAME) < 0.05
    # A prompt attends to keys and values before they are narrow.
    compared = same if run is decode else range(rows)
    assert logits[compared, ..., :vocab] == pytest.approx(expected[compared], abs=SAME)


EXACT = Precision(weights="fp32", kv="fp32", compute="fp32")


@pytest.mark.parametrize("case", [*WHOLE_HEADS, *IN_PARTS])
def test_decode_is_that_of_one_device(case: Case) -> None:
    check(decode, case, EXACT, loop=True)


@pytest.mark.parametrize("case", WHOLE_HEADS)
def test_prefill_is_that_of_one_device(case: Case) -> None:
    check(prefill, case, EXACT, loop=True)


@pytest.mark.parametrize("run", [decode, prefill])
def test_layers_written_out_are_those_of_the_loop(run: Any) -> None:
    check(run, TWO_AXES, EXACT, loop=False)


@pytest.mark.parametrize(("run", "dtype"), [(decode, "int8"), (decode, "int4"), (decode, "fp8"), (prefill, "int8")])
def test_narrow_weights_and_caches_are_those_of_one_device(run: Any, dtype: str) -> None:
    check(run, TWO_AXES, Precision(weights=dtype, kv=dtype, compute="fp32"), loop=True)


@pytest.mark.slow
@pytest.mark.parametrize("run", [decode, prefill])
@pytest.mark.parametrize("weights", DTYPES)
@pytest.mark.parametrize("kv", DTYPES)
def test_every_pair_of_dtypes_is_that_of_one_device(run: Any, weights: str, kv: str) -> None:
    check(run, TWO_AXES, Precision(weights=weights, kv=kv, compute="fp32"), loop=False)


def test_activations_of_16_bits_stay_near() -> None:
    precision = Precision(weights="bf16", kv="bf16", compute="bf16")
    wide_logits, _ = decode(8, 2, mesh(), Precision(weights="bf16", kv="bf16", compute="fp32"), loop=True)
    logits, _ = decode(8, 2, mesh((2, 4), (2, 1)), precision, loop=True)
    off = np.sqrt(np.mean((logits[..., :41] - wide_logits) ** 2)) / wide_logits.std()
    # Some twenty roundings in a row of up to 2**-9 each add up to the root of twenty; twice that is allowed.
    assert 2**-9 < off < 2 * 20**0.5 * 2**-9


def test_each_device_holds_its_part_alone() -> None:
    llama = read(config(8, 2))
    program = decode_program(llama, EXACT, mesh((2, 4), (2, 1)), batch=BATCH, context=SLOTS, loop=True)
    made = (laid_out(program, llama, made_weights(config(8, 2)), "fp32"), untouched(program))
    held = sum(array.addressable_shards[0].data.nbytes for array in jax.tree.leaves(made))
    declared = [array for array in program.arrays() if array.line != "inputs"]
    assert held == sum(array.bytes_per_device(program.mesh.shape) for array in declared)
