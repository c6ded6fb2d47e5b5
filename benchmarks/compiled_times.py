"""Expected times out of the tables of compiled operations, beside published measurements and whole compiled programs.

Reads a table of published measurements (columns id, chip, n_chips, topology, parallelism, model, weight_dtype,
kv_dtype, batch, input_len, output_len, metric, value, source, note), and makes the tables of docs/calibration.md:

- every TPU row, by what it is compared as or why it is left out;
- decode steps of a fixed batch on v5e: the book, the bound, what is expected, and what was measured; of mixtures of
  experts, too, with what a larger batch and a longer context cost them;
- servers in a closed loop on v6e and TPU7x; their time a token mixes in prefills of other requests, B / G a step.

With --write these go into the page, and their errors into catalog/data/efficiency/tpus.toml, from which the ranges of
TPUs come. With --programs it also compiles decode steps whole: half a minute each, with the extra `verify`.

Run: python benchmarks/compiled_times.py PATH_OF_measured.csv [--write] [--programs]
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _pages import PAGE, placed
from _tpu_rows import AS, CHIPS, DENSE, MODELS, Row, classified, counted, deployment_of, deployment_of_row, words_of
from _tpu_rows import measured_s as measured

from slicewise.calibrate.held_out import COVERED
from slicewise.catalog.efficiency import tpu_errors
from slicewise.planner.deployment import Deployment
from slicewise.planner.step import step
from slicewise.spec.efficiency import Error
from slicewise.units import MS
from slicewise.verify.run import verify

ERRORS = Path(__file__).parents[1] / "src/slicewise/catalog/data/efficiency/tpus.toml"
RANKS = ("tp", "dp", "ep")
TOLD = {"tpot_mean_ms": "TPOT", "itl_ms": "ITL", "out_tok_s_per_chip": "tokens/s", "out_tok_s": "tokens/s"}
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


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 0) -> str:
    """A Markdown table, whose first columns are words."""
    lines = [f"| {' | '.join(columns)} |", f"|{' :-- |' * left}{' --: |' * (len(columns) - left)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def ms(seconds: float) -> str:
    """Milliseconds with two decimals."""
    return f"{seconds / MS:.2f}"


def off(name: str, ratios: list[float]) -> str:
    """Median and worst error of some ratios to the truth."""
    errors = [abs(ratio - 1) for ratio in ratios]
    return f"{name}: {statistics.median(errors):.1%} off in the median, {max(errors):.1%} at worst, of {len(errors)}"


def rows_by_class(found: Sequence[tuple[Row, str]]) -> str:
    """How many rows of each chip are compared, and as what, or left out, and why."""
    chips = [chip for chip in CHIPS if any(row["chip"] == chip for row, _ in found)]
    lines = [
        [told, *(str(counts[chip] or "") for chip in chips), str(counts.total())]
        for told, counts in counted(found)
        if counts
    ]
    of_chip = [sum(row["chip"] == chip for row, _ in found) for chip in chips]
    lines.append(["all", *map(str, of_chip), str(len(found))])
    none = ", ".join(name for chip, name in CHIPS.items() if chip not in chips)
    text = table(("compared as, or left out since", *(CHIPS[chip] for chip in chips), "rows"), lines, left=1)
    return f"{text}\n\n- no rows at all: {none}"


def fixed_batches(rows: Sequence[Row]) -> tuple[str, list[float]]:
    """Decode steps of a fixed batch of a dense model: the table, and measured over expected."""
    ratios: dict[str, list[float]] = {"roofline": [], "overlapped": [], "expected": []}
    lines = []
    for row in rows:
        deployment, batch, truth_s = deployment_of_row(row), int(row["batch"]), measured(row)
        times = {name: float(deployment.value(f"step_{name}_s", batch=batch)) for name in ratios}
        for name, each in times.items():
            ratios[name].append(each / truth_s)
        lines.append(
            [
                row["parallelism"],
                row["batch"],
                f"{int(row['input_len']):,}",
                _book(DENSE[row["model"]], words_of(row), batch, row["input_len"]),
                *map(ms, times.values()),
                ms(truth_s),
                f"{times['expected'] / truth_s - 1:+.0%}",
            ]
        )
    found = table(("layout", "batch", "context", "book", *ratios, "measured", "off by"), lines)
    told = "\n".join(f"- {off(name, each)}" for name, each in ratios.items())
    return f"{found}\n\n{told}", [1 / ratio for ratio in ratios["expected"]]


def mixtures(rows: Sequence[Row]) -> tuple[str, dict[str, list[float]]]:
    """Decode steps of a fixed batch of mixtures of experts: the table, and measured over each time.

    They are expected with the layout that the source names, and as a plan without one has it, cut evenly. The range is
    the wide one, of servers.
    """
    ratios: dict[str, list[float]] = {"roofline": [], "overlapped": [], "expected": [], "expected, cut evenly": []}
    high, lines = tpu_errors("").error.high, []
    for row in rows:
        batch, truth_s = int(row["batch"]), measured(row)
        laid_out, even = deployment_of_row(row), _evenly(row)
        names = ("roofline", "overlapped", "expected")
        times = [float(laid_out.value(f"step_{name}_s", batch=batch)) for name in names]
        times.append(float(even.value("step_expected_s", batch=batch)))
        for each, time in zip(ratios.values(), times, strict=True):
            each.append(truth_s / time)
        lines.append(
            [
                row["model"],
                row["parallelism"],
                row["batch"],
                f"{int(row['input_len']):,}",
                *map(ms, (*times[:3], times[2] * high, times[3], truth_s)),
                f"{times[2] / truth_s - 1:+.0%}",
            ]
        )
    columns = ("roofline", "overlapped", "expected", "at most", "cut evenly", "measured", "off by")
    told = [f"- {off(name, [1 / each for each in found])}" for name, found in ratios.items()]
    told += [
        f"- {name}: the wide range, up to {high:.3g} times, holds {sum(each <= high for each in ratios[name])} of"
        f" {len(rows)}"
        for name in ("expected", "expected, cut evenly")
    ]
    text = table(("model", "layout", "batch", "context", *columns), lines, left=2)
    return f"{text}\n\n" + "\n".join(told), ratios


def _evenly(row: Row) -> Deployment:
    """The deployment of a row as a plan without ranks has it: every matrix and the cache cut evenly."""
    words = {name: word for name, word in words_of(row).items() if name not in RANKS}
    return deployment_of(MODELS[row["model"]], memory_fraction=1, context=row["input_len"], **words)


def growth(rows: Sequence[Row]) -> str:
    """What a larger batch and a longer context cost mixtures, beside the terms that grow: from row to row."""
    parts = ("param_load_s", "kv_load_s", "ici_s", "matmul_core_s", "small_core_s", "step_expected_s")
    lines = []
    for first, last in _ends(rows):
        ends = [
            [float(deployment_of_row(row).value(p, batch=int(row["batch"]))) for p in parts] for row in (first, last)
        ]
        grown = [after - before for before, after in zip(*ends, strict=True)]
        lines.append(
            [
                first["model"],
                " to ".join(f"{row['batch']} x {int(row['input_len']):,}" for row in (first, last)),
                *map(ms, (*grown, measured(last) - measured(first))),
            ]
        )
    columns = ("model", "from, to", "weights", "cache", "network", "matmuls", "small", "expected", "measured")
    return table(columns, lines, left=2)


def _ends(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Pairs of rows that differ in the batch alone, one after the other, and in the context alone, first and last."""
    by_batch: dict[tuple[str, str], list[Row]] = {}
    by_context: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_batch.setdefault((row["model"], row["input_len"]), []).append(row)
        by_context.setdefault((row["model"], row["batch"]), []).append(row)
    least = {model: min(int(length) for of, length in by_batch if of == model) for model, _ in by_batch}
    batches = [
        pair for (model, length), each in by_batch.items() if int(length) == least[model] for pair in pairwise(each)
    ]
    return batches + [(each[0], each[-1]) for each in by_context.values() if len(each) > 1]


def _book(model: str, words: dict[str, Any], batch: int, context: str) -> str:
    """The step as chapter 8 counts it, on the whole slice; of replicas, on one of them."""
    even = {name: word for name, word in words.items() if name not in ("tp", "dp")}
    shared = int(words.get("dp", 1))
    if shared > 1:
        even["slice"] = "v5e:2x4"
    found = step(model, batch=batch // shared, context=context, book=True, **even)
    return ms(found.step_s) if found.step_s else "-"


def closed_loops(rows: Sequence[Row]) -> tuple[str, list[float], set[str]]:
    """Time a token of servers in a closed loop, prefill mixed in: the table, measured over expected, and the models."""
    ratios: list[float] = []
    lines = []
    for row in rows:
        deployment, batch, truth_s = deployment_of_row(row), int(row["batch"]), measured(row)
        names = ("step_overlapped_s", "step_expected_s", "prefill_expected_s")
        bound_s, step_s, prefill_s = (float(deployment.value(name, batch=batch)) for name in names)
        mixed_s = step_s + batch / int(row["output_len"]) * prefill_s
        ratios.append(mixed_s / truth_s)
        lines.append(
            [
                row["model"],
                f"{words_of(row)['slice']} {row['weight_dtype']}",
                row["parallelism"].partition(" (")[0],
                row["batch"],
                f"{row['input_len']} + {row['output_len']}",
                TOLD[row["metric"]],
                *map(ms, (bound_s, step_s, mixed_s, truth_s)),
                f"{mixed_s / truth_s - 1:+.0%}",
            ]
        )
    columns = ("model", "slice", "layout", "batch", "tokens", "told as", "bound", "expected step")
    text = table((*columns, "and prefills", "measured", "off by"), lines, left=3)
    found = [1 / ratio for ratio in ratios]
    return f"{text}\n\n- {off('expected with prefills', ratios)}", found, {row["model"] for row in rows}


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
        "others": ("SGLang-JAX and vLLM in closed loops", "tpu-servers", 16, error_of(servers, n_models)),
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


def compared(rows: Iterable[Row]) -> tuple[dict[str, str], dict[str, Any]]:
    """The tables by their place in the page, and what the ranges are told from."""
    found = classified(rows)
    dense, mixed, servers, mixed_servers = ([row for row, told in found if told == each] for each in AS)
    steps, fixed = fixed_batches(dense)
    loops, plain, plain_models = closed_loops(servers)
    mixed_loops, mixed_ratios, mixed_models = closed_loops(mixed_servers)
    made = {
        "tpu-rows": rows_by_class(found),
        "tpu-steps": steps,
        "tpu-mixtures": mixtures(mixed)[0],
        "tpu-growth": growth(mixed),
        "tpu-servers": loops,
        "tpu-mixture-servers": mixed_loops,
    }
    told = {"fixed": fixed, "servers": [*plain, *mixed_ratios], "models": len(plain_models | mixed_models)}
    return made, told


def run(path: Path, *, write: bool, compiles: bool) -> None:
    """Make the tables, and write or print them."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    made, told = compared(rows)
    if write:
        ERRORS.write_text(errors_toml(told["fixed"], told["servers"], told["models"]), encoding="utf-8")
        tpu_errors.cache_clear()
        made = compared(rows)[0]
    if compiles:
        made["tpu-programs"] = programs()
    if write:
        PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    else:
        print("\n\n".join(made.values()))


if __name__ == "__main__":
    paths = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(paths) != 1:
        sys.exit("compiled_times.py: give the path of a table of measurements")
    run(Path(paths[0]), write="--write" in sys.argv, compiles="--programs" in sys.argv)
