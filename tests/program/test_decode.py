"""The decode step: a ring of slots that wraps round, sequences of all lengths, and a cache that is taken over."""

from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

import jax

from helpers.made_llamas import CONFIGS, made_tokens, made_weights
from helpers.programs import EXACT, decoded, laid_out, mesh, prefilled, read, untouched, wide
from slicewise.program.build import Program, decode_program, prefill_program, put_prompt

CONFIG = CONFIGS["qwen3"]
LLAMA, WEIGHTS = read(CONFIG), made_weights(CONFIG)
SLOTS, STEPS = 12, 4
PROMPTS = (2, 8, 0, 5)
"""Tokens of each sequence before the first step; the longest is then as long as there are slots."""
TOKENS = made_tokens(CONFIG, len(PROMPTS), SLOTS)


@cache
def decode(batch: int) -> tuple[Program, Any]:
    program = decode_program(LLAMA, EXACT, mesh(), batch=batch, context=SLOTS)
    return program, laid_out(program, LLAMA, WEIGHTS, "fp32", loop=False)


@cache
def prefill(n_tokens: int) -> Program:
    return prefill_program(LLAMA, EXACT, mesh(), prompt_tokens=n_tokens)


def after_prompts(program: Program, weights: Any, slot: int, rows: tuple[int, ...]) -> tuple[Any, Any]:
    """Logits [B, STEPS, V] of steps after prompts, and the cache."""
    kept = untouched(program)
    for at, row in enumerate(rows):
        if PROMPTS[row]:
            _, prompt = prefilled(prefill(PROMPTS[row]), weights, TOKENS[row, : PROMPTS[row]])
            kept = put_prompt(kept, prompt, at, slot)
    new = np.stack([TOKENS[row, PROMPTS[row] : PROMPTS[row] + STEPS] for row in rows])
    return decoded(program, weights, kept, new, lengths=[PROMPTS[row] for row in rows], slot=slot)


@pytest.mark.parametrize("slot", [8, 3, 11], ids=["from the start", "the prompt wraps", "the steps wrap"])
def test_prompts_and_steps_are_one_long_prompt(slot: int) -> None:
    program, weights = decode(len(PROMPTS))
    logits, kept = after_prompts(program, weights, slot, (0, 1, 2, 3))
    for row, held in enumerate(PROMPTS):
        total = held + STEPS
        last, whole = prefilled(prefill(total), weights, TOKENS[row, :total])
        assert logits[row, -1] == pytest.approx(last, abs=1e-4)
        slots = (slot - held + np.arange(total)) % SLOTS
        for layer, expected in zip(kept, whole, strict=True):
            assert wide(layer)[:, row][:, :, slots] == pytest.approx(wide(expected)[:, 0], abs=1e-5)


@pytest.mark.parametrize("row", range(len(PROMPTS)))
def test_a_sequence_in_a_batch_is_what_it_is_alone(row: int) -> None:
    together, _ = after_prompts(*decode(len(PROMPTS)), 7, (0, 1, 2, 3))
    alone, _ = after_prompts(*decode(1), 2, (row,))
    assert together[row] == pytest.approx(alone[0], abs=1e-5)


def test_sequences_may_change_places() -> None:
    program, weights = decode(len(PROMPTS))
    one, other = (after_prompts(program, weights, 8, rows)[0] for rows in ((0, 1, 2, 3), (3, 1, 0, 2)))
    assert other == pytest.approx(one[[3, 1, 0, 2]], abs=1e-5)


def test_a_step_writes_its_slot_and_no_other() -> None:
    program, weights = decode(len(PROMPTS))
    _, kept = decoded(program, weights, untouched(program), TOKENS[:, :1], lengths=4, slot=5)
    for layer in kept:
        changed = (wide(layer) != 3).any(axis=(0, 2, 4))
        assert np.array_equal(changed, np.broadcast_to(np.arange(SLOTS) == 5, changed.shape))


def test_a_full_ring_forgets_the_oldest_token() -> None:
    # Of one layer: the keys of another hold something of every token before them.
    llama = read({**CONFIG, "num_hidden_layers": 1})
    program = decode_program(llama, EXACT, mesh(), batch=2, context=SLOTS)
    weights = laid_out(program, llama, WEIGHTS, "fp32", loop=False)
    tokens = np.repeat(made_tokens(CONFIG, 1, SLOTS + 1), 2, axis=0)
    tokens[1, 0] = (tokens[1, 0] + 1) % CONFIG["vocab_size"]
    (one, other), _ = decoded(program, weights, untouched(program), tokens)
    assert np.abs(one - other).max(-1)[-2] > 1e-3
    assert one[-1] == pytest.approx(other[-1], abs=1e-6)


def test_the_cache_is_taken_over() -> None:
    program, weights = decode(1)
    kept = untouched(program)
    decoded(program, weights, kept, TOKENS[:1, :1])
    assert program.donated == (1,)
    assert all(array.is_deleted() for array in jax.tree.leaves(kept))
    assert not any(array.is_deleted() for array in jax.tree.leaves(weights))
