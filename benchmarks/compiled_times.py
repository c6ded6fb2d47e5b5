"""Expected times out of the tables of compiled operations, beside published measurements and whole compiled programs.

Reads a table of published measurements (columns id, chip, n_chips, topology, parallelism, model, weight_dtype,
kv_dtype, batch, input_len, output_len, metric, value, note), and makes the tables of docs/calibration.md:

- decode steps of a fixed batch on v5e: the book, the bound, what is expected, and what was measured;
- servers in a closed loop on v6e and TPU7x; their time a token mixes in prefills of other requests, B / G a step.

With --write these go into the page, and their errors into catalog/data/efficiency/tpus.toml, from which the ranges of
TPUs come. With --programs it also compiles decode steps whole: half a minute each, with the extra `verify`.

Run: python benchmarks/compiled_times.py PATH_OF_measured.csv [--write] [--programs]
"""

from __future__ import annotations

import csv
import re
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _pages import PAGE, placed

from slicewise.calibrate.held_out import COVERED
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask
from slicewise.planner.step import step
from slicewise.spec.efficiency import Error
from slicewise.units import MS
from slicewise.verify.run import verify

ERRORS = Path(__file__).parents[1] / "src/slicewise/catalog/data/efficiency/tpus.toml"
CHIPS = {"tpu-v5e": "v5e", "tpu-v6e": "v6e", "tpu-v7x": "tpu7x"}
DENSE = {
    "Llama-3.1-8B": "llama-3-8b",
    "Llama-3.1-70B": "llama-3-70b",
    "Llama-3.3-70B": "llama-3-70b",
    "Qwen3-8B": "qwen3-8b",
    "Qwen3-32B": "qwen3-32b",
    "Gemma-2-27B": "gemma-2-27b",
}
TIMES = ("tpot_mean_ms", "itl_ms", "out_tok_s_per_chip")
PROGRAMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("llama-3-70b", {"slice": "v5e:4x4", "weights": "int8", "kv": "int8", "batch": 32, "context": 8192}),
    ("llama-3-70b", {"slice": "v5e:4x4", "weights": "int8", "kv": "int8", "batch": 8, "context": 2048}),
    ("llama-3-8b", {"slice": "v5e:2x2", "weights": "bf16", "kv": "bf16", "batch": 32, "context": 4096}),
    ("llama-3-8b", {"slice": "v5e:2x2", "weights": "int8", "kv": "int8", "batch": 64, "context": 4096}),
    ("llama-3-8b", {"slice": "v5p:2x2x1", "weights": "bf16", "kv": "bf16", "batch": 64, "context": 8192}),
    ("llama-3-70b", {"slice": "v5p:2x2x2", "weights": "bf16", "kv": "bf16", "batch": 32, "context": 8192}),
    ("llama-3-8b", {"slice": "v6e:2x4", "weights": "bf16", "kv": "bf16", "batch": 64, "context": 8192}),
    ("llama-3-70b", {"slice": "v6e:2x4", "weights": "int8", "kv": "int8", "batch": 32, "context": 4096}),
    ("llama-3-8b", {"slice": "tpu7x:2x2x1", "weights": "bf16", "kv": "bf16", "batch": 128, "context": 4096}),
    ("llama-3.2-1b", {"slice": "v5e:1x1", "weights": "bf16", "kv": "bf16", "batch": 16, "context": 2048}),
    ("llama-3-405b", {"slice": "v5e:8x8", "weights": "int8", "kv": "int8", "batch": 32, "context": 8192}),
    ("llama-3.2-1b", {"slice": "v5e:2x2", "weights": "int8", "kv": "int8", "batch": 64, "context": 2048}),
)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(columns)} |", f"|{' --: |' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def deployment_of(model: str, **words: Any) -> Deployment:
    """The deployment of some words."""
    return ask(model, words).deployment()  # type: ignore[arg-type]  # words of a question


def ms(seconds: float) -> str:
    """Milliseconds with two decimals."""
    return f"{seconds / MS:.2f}"


def off(name: str, ratios: list[float]) -> str:
    """Median and worst error of some ratios to the truth."""
    errors = [abs(ratio - 1) for ratio in ratios]
    return f"{name}: {statistics.median(errors):.1%} off in the median, {max(errors):.1%} at worst, of {len(errors)}"


def words_of(row: dict[str, str]) -> dict[str, Any]:
    """The flags of a row's slice, dtypes and layout; ranks where replicas share a slice."""
    chip = CHIPS[row["chip"]]
    topology = (re.match(r"[\dx]+", row["topology"]) or [row["n_chips"]])[0]
    words: dict[str, Any] = {"slice": f"{chip}:{topology}", "weights": row["weight_dtype"] or "bf16"}
    words["kv"] = row["kv_dtype"] or "bf16"
    replicas = re.match(r"dp(\d+)-tp(\d+)", row["parallelism"])
    return {**words, "dp": int(replicas[1]), "tp": int(replicas[2])} if replicas else words


def fixed_batches(rows: list[dict[str, str]]) -> tuple[str, list[float]]:
    """Decode steps of a fixed batch: the table, and measured over expected."""
    ratios: dict[str, list[float]] = {"roofline": [], "overlapped": [], "expected": []}
    lines = []
    for row in rows:
        if row["metric"] != "tok_s_per_seq" or row["model"] not in DENSE or row["chip"] != "tpu-v5e":
            continue
        words, batch = words_of(row), int(row["batch"])
        deployment = deployment_of(DENSE[row["model"]], context=row["input_len"], memory_fraction=1, **words)
        measured_s = 1 / float(row["value"])
        times = {name: float(deployment.value(f"step_{name}_s", batch=batch)) for name in ratios}
        for name, each in times.items():
            ratios[name].append(each / measured_s)
        lines.append(
            [
                row["parallelism"],
                row["batch"],
                f"{int(row['input_len']):,}",
                _book(DENSE[row["model"]], words, batch, row["input_len"]),
                *map(ms, times.values()),
                ms(measured_s),
                f"{times['expected'] / measured_s - 1:+.0%}",
            ]
        )
    found = table(("layout", "batch", "context", "book", *ratios, "measured", "off by"), lines)
    told = "\n".join(f"- {off(name, each)}" for name, each in ratios.items())
    return f"{found}\n\n{told}", [1 / ratio for ratio in ratios["expected"]]


def _book(model: str, words: dict[str, Any], batch: int, context: str) -> str:
    """The step as chapter 8 counts it, on the whole slice; of replicas, on one of them."""
    even = {name: word for name, word in words.items() if name not in ("tp", "dp")}
    shared = int(words.get("dp", 1))
    if shared > 1:
        even["slice"] = "v5e:2x4"
    found = step(model, batch=batch // shared, context=context, book=True, **even)
    return ms(found.step_s) if found.step_s else "-"


def closed_loops(rows: list[dict[str, str]]) -> tuple[str, list[float], int]:
    """Time a token of servers in a closed loop, prefill mixed in: the table, measured over expected, and the models."""
    ratios: list[float] = []
    models: set[str] = set()
    left_out: list[str] = []
    lines = []
    for row in rows:
        if row["metric"] not in TIMES or row["model"] not in DENSE or row["chip"] not in ("tpu-v6e", "tpu-v7x"):
            continue
        batch, words = int(row["batch"]), {**words_of(row), "isl": row["input_len"], "osl": row["output_len"]}
        try:
            deployment = deployment_of(DENSE[row["model"]], memory_fraction=1, **words)
        except InputError as error:
            left_out.append(f"{row['id']}: {error}")
            continue
        if batch > deployment.value("max_batch"):
            left_out.append(f"{row['id']}: only {deployment.value('max_batch'):,.0f} of {batch} sequences fit")
            continue
        value = float(row["value"])
        measured_s = batch / (value * int(row["n_chips"])) if row["metric"] == TIMES[-1] else value * MS
        names = ("step_overlapped_s", "step_expected_s", "prefill_expected_s")
        bound_s, step_s, prefill_s = (float(deployment.value(name, batch=batch)) for name in names)
        mixed_s = step_s + batch / int(row["output_len"]) * prefill_s
        ratios.append(mixed_s / measured_s)
        models.add(row["model"])
        lines.append(
            [
                row["model"],
                f"{words['slice']} {row['weight_dtype']}",
                row["batch"],
                f"{row['input_len']} + {row['output_len']}",
                *map(ms, (bound_s, step_s, mixed_s, measured_s)),
                f"{mixed_s / measured_s - 1:+.0%}",
            ]
        )
    columns = ("model", "slice", "batch", "tokens", "bound", "expected step", "and prefills", "measured", "off by")
    told = [f"- {off('expected with prefills', ratios)}", *(f"- left out: {each}" for each in left_out)]
    return f"{table(columns, lines)}\n\n" + "\n".join(told), [1 / ratio for ratio in ratios], len(models)


def error_of(ratios: Sequence[float], n_models: int) -> Error:
    """Median error and range of measured over expected, each end by itself: nearly all of it took longer."""
    ratio = np.array(ratios)
    low, high = np.quantile(ratio, [(1 - COVERED) / 2, (1 + COVERED) / 2], method="closest_observation")
    return Error(
        n_rows=len(ratio),
        n_models=n_models,
        range_rows=len(ratio),
        median=float(np.median(np.abs(1 / ratio - 1))),
        low=float(min(low, 1.0)),
        high=float(max(high, 1.0)),
    )


def errors_toml(fixed: Sequence[float], servers: Sequence[float], n_models: int) -> str:
    """How far expected steps lie from measured ones, as the catalog has it."""
    heading = "# How far what is expected of TPUs lies from measurements, which tell the ranges alone.\n"
    heading += "# Written by benchmarks/compiled_times.py: do not edit.\n"
    parts = {
        "v5e": ("JAX programs of jax-llm-examples", "jax-llm-examples", 16, error_of(fixed, 1)),
        "others": ("SGLang-JAX and vLLM in closed loops", "tpu-servers", 8, error_of(servers, n_models)),
    }
    for name, (engine, source, chips, error) in parts.items():
        heading += f'\n[{name}]\nengine = "{engine}"\nsources = ["{source}"]\nmost_chips = {chips}\n'
        heading += f"rows = {error.n_rows}\nmodels = {error.n_models}\n"
        heading += f"median = {error.median:.3g}\nlow = {error.low:.3g}\nhigh = {error.high:.3g}\n"
    return heading


def programs() -> str:
    """Decode steps compiled whole."""
    ratios: list[float] = []
    lines = []
    for model, words in PROGRAMS:
        deployment = deployment_of(model, memory_fraction=1, **{k: v for k, v in words.items() if k != "batch"})
        print(f"compiling {model} on {words['slice']}", file=sys.stderr, flush=True)
        whole = verify(model, estimate=True, memory_fraction=1, **words).estimate
        if whole is None:
            continue
        parts = ("matmul_core_s", "small_core_s", "step_expected_s")
        matmul_s, small_s, expected_s = (float(deployment.value(name, batch=words["batch"])) for name in parts)
        ratios.append(expected_s / whole.estimate_s)
        lines.append(
            [
                model,
                f"{words['slice']} {words['weights']}",
                f"{words['batch']} x {words['context']:,}",
                ms(matmul_s + small_s),
                ms(sum(part.core_s for part in whole.parts)),
                ms(whole.overlapped_s),
                ms(expected_s),
                ms(whole.estimate_s),
                f"{ratios[-1] - 1:+.0%}",
            ]
        )
    names = ("model", "slice", "batch", "core here", "core there", "bound", "expected", "whole program", "off by")
    return f"{table(names, lines)}\n\n- {off('expected, to the whole program', ratios)}"


def run(path: Path, *, write: bool, compiles: bool) -> None:
    """Make the tables, and write or print them."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    steps, fixed = fixed_batches([row for row in rows if row["note"].startswith("ctrl:fixed_batch")])
    loops, servers, n_models = closed_loops([row for row in rows if row["note"].startswith("ctrl:closed_loop")])
    made = {"tpu-steps": steps, "tpu-servers": loops, **({"tpu-programs": programs()} if compiles else {})}
    if write:
        ERRORS.write_text(errors_toml(fixed, servers, n_models), encoding="utf-8")
        PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    else:
        print("\n\n".join(made.values()))


if __name__ == "__main__":
    paths = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(paths) != 1:
        sys.exit("compiled_times.py: give the path of a table of measurements")
    run(Path(paths[0]), write="--write" in sys.argv, compiles="--programs" in sys.argv)
