"""Rows of a user's CSV of measurements."""

import csv

from helpers.synthetic import measured
from slicewise.calibrate.terms import point_of


def row(**words):
    plain = {"model": "llama-3-8b", "slice": "h100:1", "weights": "bf16", "kv": "bf16", "phase": "decode", "batch": 8}
    return {**plain, "isl": 1024, "osl": 256, "ms": 8.5, **words}


def file_of(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, row().keys())
        out.writeheader()
        out.writerows(rows)
    return path


def tpu_rows(step_ratio, prefill_ratio):
    """Rows of every phase on a v5e-8, at so many times what the compiler's table has."""
    rows = []
    for batch in (1, 8, 32):
        for phase in ("decode", "prefill", "end_to_end"):
            words = {"slice": "v5e:2x4", "isl": 2048, "osl": 65, "batch": batch, "phase": phase}
            point = point_of(
                measured(slice="v5e:2x4", prompt_tokens=2048, output_tokens=65, batch=batch, phase=phase, seconds=9.0)
            )
            steps_s, prefills_s = point.compiled_s
            rows.append(row(**words, ms=1000 * (step_ratio * steps_s + prefill_ratio * prefills_s)))
    return rows
