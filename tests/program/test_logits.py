"""Logits of whole programs against those that transformers computed for the same configs and weights."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

from helpers.made_llamas import CONFIGS, N_TOKENS, made_tokens, made_weights
from helpers.programs import EXACT, decoded, laid_out, mesh, prefilled, read, untouched
from slicewise.program.build import decode_program, prefill_program, put_prompt

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "logits.toml").read_text(encoding="utf-8"))
FIRST = 6


def test_every_model_has_logits() -> None:
    assert GOLDEN.keys() == CONFIGS.keys()


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_are_those_of_transformers(name: str) -> None:
    config, golden = CONFIGS[name], np.asarray(GOLDEN[name]["logits"])
    llama, weights, tokens = read(config), made_weights(config), made_tokens(config)
    decode = decode_program(llama, EXACT, mesh(), batch=1, context=N_TOKENS)
    prefill = prefill_program(llama, EXACT, mesh(), prompt_tokens=FIRST)
    laid = laid_out(decode, llama, weights, "fp32", loop=False)

    alone, _ = decoded(decode, laid, untouched(decode), tokens)
    assert alone[0] == pytest.approx(golden, abs=1e-4)

    last, prompt = prefilled(prefill, laid, tokens[0, :FIRST])
    assert last == pytest.approx(golden[FIRST - 1], abs=1e-4)
    cache = put_prompt(untouched(decode), prompt, 0, FIRST)
    after, _ = decoded(decode, laid, cache, tokens[:, FIRST:], lengths=FIRST, slot=FIRST)
    assert after[0] == pytest.approx(golden[FIRST:], abs=1e-4)
