"""Programs as they are built: what they take, what they refuse, and how they lower."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

import jax
import jax.numpy as jnp

from helpers.made_llamas import CONFIGS, made_tokens, made_weights
from helpers.programs import EXACT, decoded, laid_out, mesh, prefilled, read, untouched
from slicewise.errors import InputError
from slicewise.program.build import Program, decode_program, prefill_program, put_prompt
from slicewise.program.lines import CACHE, INPUTS, WEIGHTS
from slicewise.spec.precision import Precision

CONFIG = {**CONFIGS["qwen2"], "num_attention_heads": 8, "head_dim": 8}
LLAMA = read(CONFIG)
SPLIT = ((2, 4), (2, 1))


def decode(precision: Precision = EXACT, **more: Any) -> Program:
    return decode_program(LLAMA, precision, mesh(*SPLIT), batch=5, context=16, **more)


def prefill(precision: Precision = EXACT, **more: Any) -> Program:
    return prefill_program(LLAMA, precision, mesh(*SPLIT), prompt_tokens=6, **more)


@pytest.mark.parametrize("loop", [True, False])
def test_decode_takes_weights_a_cache_and_numbers_of_each_sequence(loop: bool) -> None:
    weights, cache, tokens, lengths, slot = decode(loop=loop).abstract()
    assert (tokens.shape, lengths.shape, slot.shape) == ((8,), (8,), ())
    assert tokens.dtype == lengths.dtype == slot.dtype == jnp.int32
    kv = cache["kv"] if loop else cache[0]["kv"]
    assert kv.shape == (*([2] * loop), 2, 8, 2, 16, 8)
    assert kv.sharding.shard_shape(kv.shape) == (*([2] * loop), 2, 2, 1, 16, 8)
    assert set(weights) == {"embedding", "lm_head", "final_norm", "layers"}


@pytest.mark.parametrize("make", [decode, prefill])
def test_lines_of_the_ledger_are_all_there(make: Any) -> None:
    lines = {array.line for array in make(Precision(weights="int8", kv="int8")).arrays()}
    wanted = {WEIGHTS, "weight scales", INPUTS}
    assert lines == (wanted if make is prefill else wanted | {CACHE, "KV scales"})


@pytest.mark.parametrize(("make", "dtype"), [(decode, "int8"), (decode, "fp8"), (prefill, "int4")])
def test_without_scales_there_are_none_and_programs_run(make: Any, dtype: str) -> None:
    program = make(Precision(weights=dtype, kv=dtype, compute="fp32"), scaled=False, loop=True)
    paths = jax.tree_util.tree_leaves_with_path(program.abstract())
    assert not [path for path, _ in paths if "scale" in jax.tree_util.keystr(path)]
    large = {name: array if array.ndim == 1 else array * 4 for name, array in made_weights(CONFIG).items()}
    weights = laid_out(program, LLAMA, large, dtype, scaled=False)
    tokens = made_tokens(CONFIG, 5, 6)
    if make is prefill:
        logits, cache = prefilled(program, weights, tokens[0])
    else:
        logits, cache = decoded(program, weights, untouched(program), tokens)
    assert set(cache) == {"kv"}
    assert np.all(np.isfinite(logits))
    assert logits.std() > 0


@pytest.mark.parametrize(("make", "loop"), [(decode, True), (decode, False), (prefill, True)])
def test_the_compiler_sees_the_bytes_that_are_declared(make: Any, loop: bool) -> None:
    program = make(loop=loop)
    memory = program.lower().compile().memory_analysis()
    shape = program.mesh.shape
    assert memory.argument_size_in_bytes == sum(array.bytes_per_device(shape) for array in program.arrays())
    cache = sum(array.bytes_per_device(shape) for array in program.arrays() if array.line == CACHE)
    assert memory.alias_size_in_bytes == cache


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"num_attention_heads": 3, "num_key_value_heads": 1},
            "3 query heads of 4 are 12 columns, which do not divide",
        ),
        ({"num_attention_heads": 6, "num_key_value_heads": 3}, "3 KV heads of 4 are 12 columns, which do not divide"),
    ],
)
@pytest.mark.parametrize("program", [decode_program, prefill_program])
def test_columns_that_do_not_divide_are_refused(program: Any, sizes: dict[str, int], message: str) -> None:
    llama = read({**CONFIGS["llama"], **sizes, "head_dim": 4})
    size = {"batch": 1, "context": 4} if program is decode_program else {"prompt_tokens": 4}
    with pytest.raises(InputError) as refused:
        program(llama, EXACT, mesh((8,), (1,)), **size)
    assert message in str(refused.value)
    assert str(refused.value).endswith("over 8 chips; give a slice of which they are a multiple")


@pytest.mark.parametrize("make", [decode, prefill])
@pytest.mark.parametrize("precision", [Precision(weights="fp4"), Precision(kv="nvfp4"), Precision(compute="fp8")])
def test_dtypes_that_are_not_understood_are_refused(make: Any, precision: Precision) -> None:
    with pytest.raises(InputError, match="the program"):
        make(precision)


@pytest.mark.parametrize(("n_tokens", "slot"), [(3, 3), (3, 1), (5, 0), (5, 4), (1, 5)])
def test_a_prompts_last_token_lies_before_the_next_slot(n_tokens: int, slot: int) -> None:
    cache = [{"kv": jnp.zeros((2, 3, 2, 5, 4)), "kv_scale": jnp.zeros((2, 3, 2, 5))}]
    prompt = [{"kv": 1 + jnp.arange(n_tokens) + jnp.zeros((2, 1, 2, 4, 1)), "kv_scale": jnp.ones((2, 1, 2, n_tokens))}]
    prompt[0]["kv"] = prompt[0]["kv"].swapaxes(3, 4)
    (found,) = put_prompt(cache, prompt, 1, slot)
    order = [(slot - n_tokens + at) % 5 for at in range(n_tokens)]
    assert np.array_equal(np.asarray(found["kv"])[0, 1, 0, order, 0], 1 + np.arange(n_tokens))
    assert np.asarray(found["kv_scale"])[:, 1].sum() == 4 * n_tokens
    assert not np.asarray(found["kv"])[:, [0, 2]].any()
