"""Writes tests/golden/logits.toml: what transformers computes for small models of the LLaMA family.

    python scripts/make_golden_logits.py     needs the dependency group `reference`, and neither jax nor slicewise

The models are those of tests/helpers/made_llamas.py, whose weights come from a seed. tests/program/test_logits.py holds
the programs to the file, and tests/program/test_reference.py to transformers itself, where it is installed.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.made_llamas import CONFIGS, Weights, made_tokens, made_weights

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "logits.toml"


def logits(config: dict[str, Any], weights: Weights, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
    """The logits after each token of each sequence, [B, T, V], in float32.

    Raises:
        RuntimeError: the weights are not those that the config asks for.
    """
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(**deepcopy(config)), dtype=torch.float32, attn_implementation="eager"
    )
    given = {name: torch.from_numpy(array) for name, array in weights.items()}
    if config.get("tie_word_embeddings"):
        given["lm_head.weight"] = given["model.embed_tokens.weight"]
    model.load_state_dict(given, strict=True)
    with torch.no_grad():
        found: NDArray[np.float32] = model.eval()(torch.from_numpy(tokens).long()).logits.numpy()
    return found


def golden() -> str:
    """The text of the file."""
    versions = f"transformers {transformers.__version__} with torch {torch.__version__.split('+')[0]}"
    lines = [
        f"# Logits of {versions}, in float32.",
        "# Written by scripts/make_golden_logits.py for the models of tests/helpers/made_llamas.py: a row is a token.",
    ]
    for name, config in CONFIGS.items():
        rows = logits(config, made_weights(config), made_tokens(config))[0]
        lines += ["", f"[{name}]", "logits = [", *(f"  [{', '.join(f'{x:.6f}' for x in row)}]," for row in rows), "]"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(golden(), encoding="utf-8")
    print(f"wrote {GOLDEN}")
