"""How far published decode steps lie above the bound: measured over roofline, by chip and engine.

Reads a table of published measurements with a controlled batch (columns chip, n_chips, parallelism, model,
weight_dtype, kv_dtype, batch, input_len, output_len, metric, value, note, engine), and compares each decode step with
the roofline view of the same point. Run: python benchmarks/measured.py PATH_OF_measured.csv
"""

from __future__ import annotations

import csv
import re
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

from slicewise.errors import InputError
from slicewise.planner.step import step
from slicewise.units import MS

CHIPS = {"h100-sxm": "h100", "h200-sxm": "h200", "a100-80g-sxm": "a100", "l40s": "l40s", "tpu-v5e": "v5e"}
MODELS = {
    "Llama-2-13B": "llama-2-13b",
    "Llama-2-70B": "llama-2-70b",
    "Llama-3-8B": "llama-3-8b",
    "Llama-3.1-8B": "llama-3-8b",
    "Llama-3-70B": "llama-3-70b",
    "Llama-3.1-70B": "llama-3-70b",
}
CONTROLLED = ("ctrl:fixed_batch", "ctrl:bs1")


def step_s(row: dict[str, str]) -> float | None:
    """The measured step. [s]"""
    value = float(row["value"])
    return {"decode_step_ms": value * MS, "tpot_p50_ms": value * MS, "tok_s_per_seq": 1 / value}.get(row["metric"])


def ratio(row: dict[str, str]) -> float | str:
    """Measured step over the roofline of the same point; or why the row is left out."""
    measured_s = step_s(row)
    if row["chip"] not in CHIPS or row["model"] not in MODELS:
        return "chip or model not in the catalog"
    if measured_s is None:
        return "not a time a token"
    if not (row["batch"] and row["input_len"]):
        return "batch or lengths not stated"
    weights = row["weight_dtype"] or "bf16"
    words = {"weights": weights, "kv": row["kv_dtype"] or "bf16", "batch": row["batch"], "isl": row["input_len"]}
    slice_ = f"{CHIPS[row['chip']]}:{row['n_chips']}"
    replicas = re.match(r"dp(\d+)-tp(\d+)$", row["parallelism"])
    if replicas:
        words |= {"dp": replicas[1], "tp": replicas[2]}
    try:
        bound = step(MODELS[row["model"]], slice=slice_, osl=row["output_len"] or "1", memory_fraction=1, **words)
    except InputError as error:
        return f"refused: {str(error)[:40]}"
    return measured_s / bound.step_roofline_s if bound.step_roofline_s else "does not fit at the stated length"


def run(path: Path) -> None:
    """Print the table."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["phase"] != "decode" or not row["note"].startswith(CONTROLLED):
                continue
            value = ratio(row)
            if isinstance(value, str):
                left_out[value] += 1
            else:
                found[row["chip"], row["engine"]].append(value)
    print("| chip | engine | rows | least | median | most |\n| :-- | :-- | --: | --: | --: | --: |")
    for (chip, engine), ratios in sorted(found.items()):
        numbers = f"{min(ratios):.2f} | {statistics.median(ratios):.2f} | {max(ratios):.2f}"
        print(f"| {chip} | {engine} | {len(ratios)} | {numbers} |")
    everything = [value for ratios in found.values() for value in ratios]
    span = f"{min(everything):.2f} to {max(everything):.2f}, median {statistics.median(everything):.2f}"
    print(f"\n{len(everything)} rows: {span}.")
    for reason, count in left_out.most_common():
        print(f"Left out: {count} × {reason}.")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print("measured.py: give the path of a table of measurements; nothing was compared")
    else:
        run(Path(sys.argv[1]))
