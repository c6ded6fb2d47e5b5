"""Programs against transformers itself, over configs made at random. The dependency group `reference` has it."""

import importlib.util
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the programs need jax: pip install 'slicewise[verify]'")

from helpers.made_llamas import STRETCH, made_tokens, made_weights
from helpers.programs import EXACT, decoded, laid_out, mesh, prefilled, read, untouched
from slicewise.program.build import decode_program, prefill_program, put_prompt

pytestmark = pytest.mark.reference
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_golden_logits.py"
BATCH, N_TOKENS, N_CONFIGS = 3, 20, 24


@cache
def script() -> ModuleType:
    """The script that asks transformers."""
    for name in ("torch", "transformers"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install --group reference")
    spec = importlib.util.spec_from_file_location("make_golden_logits", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made_config(seed: int) -> dict[str, Any]:
    """A config of any of the families, of transformers 5 or of its time before."""
    rng = np.random.default_rng(seed)
    kv_heads, head_dim = int(rng.choice([1, 2, 4])), int(rng.choice([4, 8, 16]))
    heads = kv_heads * int(rng.choice([1, 2, 3]))
    config: dict[str, Any] = {
        "model_type": str(rng.choice(["llama", "mistral", "qwen2", "qwen3"])),
        "hidden_size": head_dim * heads if rng.random() < 0.5 else 24,
        "intermediate_size": int(rng.integers(8, 80)),
        "num_hidden_layers": int(rng.integers(1, 4)),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "vocab_size": int(rng.integers(10, 90)),
        "max_position_embeddings": 512,
        "torch_dtype": "float32",
    }
    if config["hidden_size"] == heads * head_dim and config["model_type"] != "qwen3":
        del config["head_dim"]
    if config["model_type"] == "mistral":
        config["sliding_window"] = None
    some = {"tie_word_embeddings": True, "rms_norm_eps": float(10 ** rng.uniform(-7, -2))}
    config |= {key: value for key, value in some.items() if rng.random() < 0.5}
    theta = {"rope_theta": float(10 ** rng.uniform(2, 6))} if rng.random() < 0.7 else {}
    stretch = {**STRETCH, "factor": float(rng.uniform(1, 32))} if rng.random() < 0.5 else {}
    if rng.random() < 0.5:
        return {**config, **theta, **({"rope_scaling": stretch} if stretch else {})}
    return {**config, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, **stretch, **theta}}


@pytest.mark.parametrize("seed", range(N_CONFIGS))
def test_prefill_and_decode_after_it_are_transformers(seed: int) -> None:
    config = made_config(seed)
    llama, weights, tokens = read(config), made_weights(config, seed), made_tokens(config, BATCH, N_TOKENS, seed)
    expected = script().logits(config, weights, tokens)
    prompt, slots = 5 + seed % 10, N_TOKENS + seed % 3
    prefill = prefill_program(llama, EXACT, mesh(), prompt_tokens=prompt)
    decode = decode_program(llama, EXACT, mesh(), batch=BATCH, context=slots)
    laid, cache = laid_out(decode, llama, weights, "fp32", loop=False), untouched(decode)
    slot = int(np.random.default_rng(seed).integers(slots))
    for row in range(BATCH):
        last, kept = prefilled(prefill, laid, tokens[row, :prompt])
        assert last == pytest.approx(expected[row, prompt - 1], abs=1e-4)
        cache = put_prompt(cache, kept, row, slot)
    after, _ = decoded(decode, laid, cache, tokens[:, prompt:], lengths=prompt, slot=slot)
    assert after == pytest.approx(expected[:, prompt:], abs=1e-4)


def test_the_golden_file_is_what_transformers_says() -> None:
    kept, found = (tomllib.loads(text) for text in (script().GOLDEN.read_text(encoding="utf-8"), script().golden()))
    assert kept.keys() == found.keys()
    for name, each in kept.items():
        assert np.asarray(each["logits"]) == pytest.approx(np.asarray(found[name]["logits"]), abs=1e-5)
