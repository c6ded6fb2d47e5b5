"""Plans beside the TPU's compiler, each a process of its own: how far they agree, the time it takes, and the memory.

What was compiled before is compiled again. Needs the extra `verify`. Run: python benchmarks/verifications.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from slicewise.units import GB, GIB

KIB = 1024

QUESTIONS = (
    "llama-3-70b --slice v5e:2x4 --weights int8 --kv int8 --batch 32 --context 8192",
    "llama-3-70b --slice v5e:4x4 --weights int8 --kv int8 --batch 32 --context 8192",
    "llama-3-70b --slice v5e:4x4 --weights bf16 --kv bf16 --batch 42 --context 8192",
    "llama-3-70b --slice v5e:2x2 --weights int4 --kv int4 --batch 43 --context 8192",
    "llama-3-8b --slice v5e:4x4 --weights int8 --kv int8 --batch 240 --context 8192",
    "llama-3-405b --slice v5e:8x8 --weights int8 --kv int8 --batch 56 --context 28488",
    "llama-3-70b --slice v5p:2x2x2 --weights bf16 --kv bf16 --batch 64 --context 8192",
    "llama-3-70b --slice v6e:2x4 --weights int8 --kv int8 --batch 64 --context 8192",
    "llama-3-70b --slice tpu7x:2x2x1 --weights bf16 --kv bf16 --batch 64 --context 8192",
    "llama-3-70b --slice v5e:4x4 --weights int8 --kv int8 --isl 8192 --prefill",
    "llama-3-70b --slice v5e:4x4 --weights int8 --kv int8 --batch 32 --context 8192 --estimate",
)
COLUMNS = ("question", "plan, a chip", "compiler", "ratio", "beside the arguments", "matmuls", "form", "time", "memory")


def asked(question: str) -> tuple[dict[str, Any], float, float]:
    """The answer, the process's wall time [s], and its peak memory [B]."""
    call = f"from slicewise.cli.main import main; main({['verify', *question.split(), '--json']!r})"
    with tempfile.TemporaryDirectory() as kept, tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", call], stdout=output, env={**os.environ, "SLICEWISE_CACHE": kept}
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            sys.exit(f"refused: slicewise verify {question}")
        output.seek(0)
        return json.load(output), seconds, float(used.ru_maxrss) * KIB


def row(question: str) -> list[str]:
    """A line of the table."""
    answer, seconds, memory = asked(question)
    rows = {each["name"]: each for each in answer["rows"]}
    total, beside = rows["all of it"], rows.get("logits and activations") or rows["activations and the prompt's cache"]
    return [
        question.replace(" --", ", "),
        f"{total['plan'] / GB:.4f} GB",
        f"{total['compiler'] / GB:.4f} GB",
        f"{total['ratio']:.4f}",
        f"{1000 * beside['compiler'] / GB:,.1f} MB",
        f"{rows['matmuls']['ratio']:.4f}",
        answer["form"],
        f"{seconds:.1f} s",
        f"{memory / GIB:.1f} GiB",
    ]


def run() -> None:
    """Print the table."""
    print(f"| {' | '.join(COLUMNS)} |\n| :-- |{' --: |' * (len(COLUMNS) - 1)}")
    for question in QUESTIONS:
        print(f"| {' | '.join(row(question))} |", flush=True)


if __name__ == "__main__":
    run()
