"""Start-up of the main job, and of reading a config, against that of `import numpy`: whole processes, in turn.

Median and ratio.

Run: python benchmarks/startup.py [RUNS]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MIXTURE = {
    "model_type": "qwen3_moe",
    "hidden_size": 4096,
    "num_hidden_layers": 94,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "norm_topk_prob": True,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
}
"""Qwen3-235B-A22B, as its config.json gives it."""


def commands(config: Path) -> dict[str, list[str]]:
    """What is timed, by the words that are printed."""

    def slicewise(*words: str) -> list[str]:
        return [sys.executable, "-c", f"from slicewise.cli.main import main; main({list(words)!r})"]

    return {
        "python -c 'pass'": [sys.executable, "-c", "pass"],
        "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
        "slicewise plan llama-3-70b": slicewise("plan", "llama-3-70b"),
        "slicewise memory deepseek-v3 --slice h200:8": slicewise("memory", "deepseek-v3", "--slice", "h200:8"),
        "slicewise memory config.json --slice h200:8": slicewise("memory", str(config), "--slice", "h200:8"),
        "slicewise --version": slicewise("--version"),
    }


def seconds(command: list[str]) -> float:
    """Wall time of one process. [s]"""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def run(runs: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(MIXTURE), encoding="utf-8")
        timed = commands(config)
        for command in timed.values():
            seconds(command)
        times: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(runs):
            for name, command in timed.items():
                times[name].append(seconds(command))
    numpy = times["python -c 'import numpy'"]
    print(f"| whole process, {runs} runs in turn | median | over `import numpy` |\n| :-- | --: | --: |")
    for name, found in times.items():
        ratio = statistics.median(a / b for a, b in zip(found, numpy, strict=True))
        print(f"| `{name}` | {statistics.median(found):.3f} s | {ratio:.2f} |")


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
