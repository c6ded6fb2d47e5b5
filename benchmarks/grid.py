"""A million decode steps through the formulas, against the same arithmetic written straight in numpy.

The grid is batch × context × slice: 500 × 500 × 4 v5e slices. Both sides compute every term of a step and its
overlapped view from the same inputs; the results are compared first. Run: python benchmarks/grid.py [RUNS]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slicewise.catalog.load import load_model
from slicewise.catalog.slices import load_slice
from slicewise.planner.deployment import Deployment
from slicewise.planner.frontier import step_grid
from slicewise.planner.question import ask

SLICES = ("v5e:4x8", "v5e:8x8", "v5e:8x16", "v5e:16x16")
BATCH = np.arange(1.0, 501.0)
CONTEXT = np.linspace(1_000.0, 100_000.0, 500).round()


def deployments() -> list[Deployment]:
    """LLaMA 3-70B in int8 on four slices."""
    question = ask(load_model("llama-3-70b"), {"slice": list(SLICES), "weights": "int8", "kv": "int8"})
    return [question.deployment(load_slice(name)) for name in SLICES]


def straight(found: list[Deployment]) -> dict[str, NDArray[np.float64]]:
    """The same arithmetic, written out."""
    batch, context = BATCH[:, None, None], CONTEXT[None, :, None]
    n_layers, d_model, n_heads, head_dim = 80, 8192, 64, 128
    n_params, matmul_params = 70_553_706_496, 69_501_714_432
    per_token = 2 * n_layers * 8 * head_dim * 1.0
    n_chips = np.array([float(d.slice.n_chips) for d in found])
    gather = np.array([d.value("all_gather_bytes_per_s") for d in found])
    gather_s = np.array([d.value("all_gather_latency_s") for d in found])
    to_all = np.array([d.value("all_to_all_bytes_per_s") for d in found])
    to_all_s = np.array([d.value("all_to_all_latency_s") for d in found])
    heads, shards = 8.0, n_chips / 8.0
    hbm, flops = n_chips * 8.2e11, n_chips * 1.97e14
    replication = np.ceil(batch / shards) * shards / batch
    param_load_s = n_params * 1.0 / hbm
    kv_load_s = batch * context * per_token * replication / hbm
    matmul_s = 2 * batch * matmul_params / flops
    attention_flops_s = 4 * batch * context * n_heads * head_dim * n_layers / flops
    one_gather_s = np.maximum(batch * d_model * 2.0 / gather, gather_s)
    one_to_all_s = np.maximum(batch * n_heads * head_dim * 2.0 / heads / to_all, to_all_s)
    ici_s = n_layers * (4 * one_gather_s + 2 * one_to_all_s)
    step_s = np.maximum(kv_load_s, attention_flops_s) + np.maximum(np.maximum(matmul_s, param_load_s), ici_s)
    return {
        "param_load_s": param_load_s,
        "kv_load_s": kv_load_s,
        "matmul_s": matmul_s,
        "attention_flops_s": attention_flops_s,
        "ici_s": ici_s,
        "step_s": step_s,
    }


def seconds(work: Callable[[], object]) -> float:
    """Time of one call. [s]"""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(runs: int) -> None:
    """Check that both sides agree, then print the table."""
    found = deployments()
    ours, theirs = step_grid(found, BATCH, CONTEXT), straight(found)
    for name, value in theirs.items():
        np.testing.assert_allclose(np.broadcast_to(ours[name], value.shape), value, rtol=1e-12)
    pairs = [(seconds(lambda: step_grid(found, BATCH, CONTEXT)), seconds(lambda: straight(found))) for _ in range(runs)]
    formulas, numpy = ([pair[i] for pair in pairs] for i in (0, 1))
    ratio = statistics.median(a / b for a, b in pairs)
    size = theirs["step_s"].size
    print(f"| {size:,} steps, {runs} runs in turn | median | over plain numpy |\n| :-- | --: | --: |")
    print(f"| formulas through the graph | {statistics.median(formulas):.4f} s | {ratio:.2f} |")
    print(f"| straight numpy | {statistics.median(numpy):.4f} s | 1.00 |")


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
