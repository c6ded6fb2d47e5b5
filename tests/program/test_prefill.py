"""Prefill: blocks of a long prompt, the cache that is left, and slices on which heads do not lie whole."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

from helpers.made_llamas import CONFIGS, made_tokens, made_weights
from helpers.programs import EXACT, decoded, laid_out, mesh, prefilled, read, untouched, wide
from slicewise.errors import InputError
from slicewise.program import attention
from slicewise.program.build import decode_program, prefill_program
from slicewise.spec.precision import Precision

CONFIG = CONFIGS["qwen2"]
LLAMA, WEIGHTS, TOKENS = read(CONFIG), made_weights(CONFIG), made_tokens(CONFIG)[0]


def test_a_prompt_longer_than_a_block_is_what_it_is_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> tuple[np.ndarray, list[np.ndarray]]:
        program = prefill_program(LLAMA, EXACT, mesh(), prompt_tokens=len(TOKENS))
        logits, kept = prefilled(program, laid_out(program, LLAMA, WEIGHTS, "fp32", loop=False), TOKENS)
        return logits, [wide(layer) for layer in kept]

    logits, kept = run()
    monkeypatch.setattr(attention, "PROMPT_BLOCK", 4)
    in_blocks, kept_in_blocks = run()
    assert in_blocks == pytest.approx(logits, abs=1e-5)
    assert np.stack(kept_in_blocks) == pytest.approx(np.stack(kept), abs=1e-5)


@pytest.mark.parametrize("dtype", ["bf16", "int8"])
def test_the_first_layer_keeps_what_decode_would(dtype: str) -> None:
    precision = Precision(weights="fp32", kv=dtype, compute="fp32")
    prefill = prefill_program(LLAMA, precision, mesh(), prompt_tokens=len(TOKENS), loop=True)
    decode = decode_program(LLAMA, precision, mesh(), batch=1, context=len(TOKENS), loop=True)
    weights = laid_out(prefill, LLAMA, WEIGHTS, "fp32")
    _, kept = prefilled(prefill, weights, TOKENS)
    _, step_by_step = decoded(decode, weights, untouched(decode), TOKENS[None])
    assert kept.keys() == step_by_step.keys()
    assert wide(kept)[0] == pytest.approx(wide(step_by_step)[0], abs=1e-5)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "shape", "split"),
    [
        pytest.param(4, 2, (2, 4), (2, 1), id="half a query head a chip"),
        pytest.param(8, 4, (2, 4), (2, 1), id="two KV heads for four chips"),
    ],
)
def test_heads_that_do_not_lie_whole_are_refused(
    heads: int, kv_heads: int, shape: tuple[int, ...], split: tuple[int, ...]
) -> None:
    llama = read({**CONFIG, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": 8})
    with pytest.raises(InputError) as refused:
        prefill_program(llama, EXACT, mesh(shape, split), prompt_tokens=4)
    message = f"--prefill: {heads} query heads over {kv_heads} KV heads do not lie whole on 8 chips; give a slice"
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
    decode_program(llama, EXACT, mesh(shape, split), batch=4, context=4)
