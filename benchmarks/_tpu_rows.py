"""Every TPU row of a table of published measurements: what it is compared as, or why it is not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask
from slicewise.units import MS

CHIPS = {"tpu-v4": "v4", "tpu-v5e": "v5e", "tpu-v5p": "v5p", "tpu-v6e": "v6e", "tpu-v7x": "tpu7x"}
DENSE = {
    "Llama-3.1-8B": "llama-3-8b",
    "Llama-3.1-70B": "llama-3-70b",
    "Llama-3.3-70B": "llama-3-70b",
    "Qwen3-8B": "qwen3-8b",
    "Qwen3-32B": "qwen3-32b",
    "Qwen-7B-Chat": "qwen-7b",
    "Gemma-2-27B": "gemma-2-27b",
    "MiMo-7B": "mimo-7b",
}
MIXTURES = {
    "DeepSeek-R1": "deepseek-r1",
    "DeepSeek-V2-Lite": "deepseek-v2-lite",
    "Llama-4-Scout": "llama-4-scout-17b-16e",
    "MiMo-V2-Flash": "mimo-v2-flash",
    "Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen3-Coder-480B-A35B": "qwen3-coder-480b-a35b",
    "Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
}
MODELS = {**DENSE, **MIXTURES}
"""The catalog's names; of a fixed batch and of servers a dense model's rows are shown apart from a mixture's."""

TIMES = ("tpot_mean_ms", "itl_ms", "out_tok_s_per_chip", "out_tok_s")
"""Metrics that tell a server's mean time a token, the most direct one first."""
AS = ("dense steps", "mixture steps", "dense servers", "mixture servers")
"""What rows are compared as."""

AGAIN = "the same run, told in another unit"
QUEUED = "a server's time to the first token, which is a time in its queue"
GAP = "a server's median gap between tokens, which leaves prefills out"
NO_BATCH = "batch or lengths not stated"
NO_MODEL = "model not in the catalog"
NO_PROMPT = "a prefill whose prompt length is not stated"
NO_SLICE = "one chip of a TPU7x, which is no slice"
TOO_MANY = "capacity exceeded: fewer sequences fit than were sent"
NO_TIME = "a metric that is no time of a step"
WHY = (AGAIN, QUEUED, GAP, NO_PROMPT, NO_BATCH, NO_MODEL, NO_SLICE, TOO_MANY, NO_TIME)
"""Why rows are left out."""

HOST_CHIPS = 4
"""Chips of a host of TPU7x, which one source names in place of a slice."""

Row = Mapping[str, str]


def classified(rows: Iterable[Row]) -> list[tuple[Row, str]]:
    """Each TPU row with one of AS or of WHY."""
    kept = [row for row in rows if row["chip"].startswith("tpu")]
    told: dict[tuple[str, ...], str] = {}
    for metric in reversed(TIMES):
        told |= {_run_of(row): metric for row in kept if row["metric"] == metric}
    return [(row, _class_of(row, told)) for row in kept]


def _run_of(row: Row) -> tuple[str, ...]:
    names = ("source", "chip", "n_chips", "parallelism", "model", "weight_dtype", "kv_dtype", "batch")
    return tuple(row[name] for name in (*names, "input_len", "output_len"))


def _class_of(row: Row, told: Mapping[tuple[str, ...], str]) -> str:
    is_fixed = row["note"].startswith("ctrl:fixed_batch")
    why = _unusable(row, told, TIMES if not is_fixed else ("tok_s_per_seq",))
    if why:
        return why
    if not is_fixed and int(row["batch"]) > deployment_of_row(row).value("max_batch"):
        return TOO_MANY
    return f"{'dense' if row['model'] in DENSE else 'mixture'} {'steps' if is_fixed else 'servers'}"


def _unusable(row: Row, told: Mapping[tuple[str, ...], str], times: Sequence[str]) -> str:
    """The first reason for which a row tells no time that can be compared; "" where there is none."""
    metric = row["metric"]
    reasons = {
        QUEUED: metric in ("ttft_mean_ms", "ttft_ms"),
        GAP: metric == "itl_median_ms",
        NO_PROMPT: metric == "prefill_s" and not row["input_len"],
        AGAIN: metric == "hbm_bw_util_pct" or (metric in TIMES and told[_run_of(row)] != metric),
        NO_BATCH: not (row["batch"] and row["input_len"] and (row["output_len"] or metric not in TIMES)),
        NO_MODEL: row["model"] not in MODELS,
        NO_TIME: metric not in times,
        NO_SLICE: row["chip"] == "tpu-v7x" and row["n_chips"] == "1",
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def words_of(row: Row) -> dict[str, Any]:
    """The flags of a row's slice, dtypes and layout; ranks where the source names more than one even cut."""
    n_chips, layout = int(row["n_chips"]), row["parallelism"]
    shape = re.match(r"\d+(x\d+)+", row["topology"])
    topology = shape[0] if shape else "2x2x1" if n_chips == HOST_CHIPS else row["n_chips"]
    words: dict[str, Any] = {"slice": f"{CHIPS[row['chip']]}:{topology}"}
    words |= {"weights": (row["weight_dtype"] or "bf16").split()[0], "kv": row["kv_dtype"] or "bf16"}
    groups = re.search(r"dp(\d+)", layout)
    if groups:
        words |= {"dp": int(groups[1]), "tp": n_chips // int(groups[1])}
    return {**words, "ep": n_chips} if "ep" in layout else words


def deployment_of(model: str, **words: Any) -> Deployment:
    """The deployment of some words."""
    return ask(model, words).deployment()  # type: ignore[arg-type]  # words of a question


def deployment_of_row(row: Row, **more: Any) -> Deployment:
    """The deployment of a row: at the lengths of a server, else at the context that is stated."""
    lengths = (
        {"isl": row["input_len"], "osl": row["output_len"]} if row["output_len"] else {"context": row["input_len"]}
    )
    return deployment_of(MODELS[row["model"]], memory_fraction=1, **{**words_of(row), **lengths, **more})


def measured_s(row: Row) -> float:
    """The time of a step, or of a token of each of a server's sequences. [s]"""
    value, batch = float(row["value"]), int(row["batch"])
    match row["metric"]:
        case "tok_s_per_seq":
            return 1 / value
        case "out_tok_s":
            return batch / value
        case "out_tok_s_per_chip":
            return batch / (value * int(row["n_chips"]))
    return value * MS


def counted(found: Sequence[tuple[Row, str]]) -> list[tuple[str, Counter[str]]]:
    """How many rows of each chip are compared as what, or left out for what reason; all that can be."""
    counts = {each: Counter(row["chip"] for row, told in found if told == each) for each in (*AS, *WHY)}
    strays = Counter(told for _, told in found if told not in counts)
    assert not strays, f"rows without a class: {strays}"
    return list(counts.items())
