"""Published measurements as a table of rows, read into measurements, or left out with the reason."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from slicewise.calibrate.measurement import Measurement
from slicewise.calibrate.terms import Point, point_of
from slicewise.catalog.hf import model_from_config
from slicewise.catalog.load import load_model
from slicewise.errors import InputError
from slicewise.spec.model import Model
from slicewise.units import GIB, MS

CHIPS = {
    "a100-80g-sxm": "a100", "h100-sxm": "h100", "h200-sxm": "h200", "l40s": "l40s", "b200": "b200",
    "mi300x": "mi300x", "tpu-v5e": "v5e", "tpu-v6e": "v6e", "tpu-v7x": "tpu7x",
}  # fmt: skip
ENGINES = {
    "trt09dli": "TensorRT-LLM 0.9.0",
    "ft": "FasterTransformer 5",
    "gptfast": "gpt-fast 2024-09",
    "llamacpp": "llama.cpp 2024-05",
    "dstack": "vLLM 2024-11",
}
"""The sources with a controlled batch on GPUs, by the beginning of their ids."""
MODELS = {
    "Llama-2-7B": "llama-2-7b", "Llama-2-13B": "llama-2-13b", "Llama-2-70B": "llama-2-70b",
    "Llama-3-8B": "llama-3-8b", "Llama-3.1-8B": "llama-3-8b", "Llama-3-70B": "llama-3-70b",
    "Llama-3.1-70B": "llama-3-70b", "Llama-3.1-405B": "llama-3-405b", "Llama-3.3-70B": "llama-3-70b",
    "Mistral-7B": "mistral-7b-v0.1", "GPT-J-6B": "gpt-j-6b", "Qwen3-8B": "qwen3-8b", "Qwen3-32B": "qwen3-32b",
    "Gemma-2-27B": "gemma-2-27b", "MiMo-7B": "mimo-7b", "Qwen-7B-Chat": "qwen-7b",
}  # fmt: skip
Q4_K_M_BYTES = {"Llama-3-8B": 4.58 * GIB, "Llama-3-70B": 39.59 * GIB}
"""Sizes of the files of q4_k_m, as the source prints them."""
GPT_FAST_OUTPUT = 200
"""Tokens that gpt-fast generates unless told otherwise; its README does not say."""


def _gpt(layers: int, width: int, heads: int) -> dict[str, Any]:
    """FasterTransformer's benchmark models: GPT-2's arrays with a vocabulary of 51,200."""
    return {
        "model_type": "gpt2", "n_layer": layers, "n_embd": width, "n_head": heads, "n_positions": 2048,
        "vocab_size": 51200, "activation_function": "gelu_new",
    }  # fmt: skip


CONFIGS: dict[str, dict[str, Any]] = {
    "Falcon-180B": {
        "model_type": "falcon", "num_hidden_layers": 80, "hidden_size": 14848, "num_attention_heads": 232,
        "num_kv_heads": 8, "new_decoder_architecture": True, "parallel_attn": True, "multi_query": True,
        "bias": False, "alibi": False, "vocab_size": 65024,
    },
    "Megatron-530B": _gpt(105, 20480, 128),
    "GPT-175B": _gpt(96, 12288, 96),
    "GPT-89B": _gpt(48, 12288, 96),
    "GPT-20B": _gpt(44, 6144, 48),
    "GPT-6.7B": _gpt(32, 4096, 32),
}  # fmt: skip


@cache
def model_of(name: str) -> Model:
    """A model of the table."""
    return model_from_config(CONFIGS[name], name, name) if name in CONFIGS else load_model(MODELS[name])


def rows(path: Path) -> list[dict[str, str]]:
    """The table's rows."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def source_of(row: Mapping[str, str]) -> str:
    """The beginning of a row's id, which names its source."""
    return row["id"].rsplit("-", 1)[0]


def points(path: Path, sources: tuple[str, ...] = tuple(ENGINES)) -> tuple[list[Point], Counter[str]]:
    """Every usable measurement of the named sources with its terms, and how many rows were left out, by reason."""
    found, left_out = [], Counter[str]()
    for row in rows(path):
        if source_of(row) not in sources:
            continue
        measurement = measurement_of(row)
        if isinstance(measurement, str):
            left_out[measurement] += 1
            continue
        try:
            found.append(point_of(measurement, model_of(row["model"])))
        except InputError as error:
            left_out[_reason(str(error))] += 1
    return found, left_out


def measurement_of(row: Mapping[str, str]) -> Measurement | str:
    """A row as a measurement, or why it is none."""
    why = _unusable(row)
    if why:
        return why
    told = _told(row)
    if told is None:
        return "the same run, told in another unit"
    phase, seconds, prompt, output = told
    weights = row["weight_dtype"].split("-")[0]
    q4 = weights == "q4_k_m"
    return Measurement(
        model=row["model"],
        slice=f"{CHIPS[row['chip']]}:{row['n_chips']}",
        weights="int4" if q4 else weights,
        kv=row["kv_dtype"] or row["act_dtype"],
        compute=row["act_dtype"],
        phase=phase,
        batch=int(row["batch"]),
        prompt_tokens=prompt,
        output_tokens=output,
        context_tokens=None,
        layout={},
        seconds=seconds,
        engine=ENGINES[source_of(row)],
        where=row["id"],
        weight_bytes=Q4_K_M_BYTES[row["model"]] if q4 else None,
    )


def _unusable(row: Mapping[str, str]) -> str:
    """Why a row tells nothing of a step or a prefill; "" where it does."""
    reasons = {
        "routing: experts, or made-up weights that touch too few of them": row["model"] == "Mixtral-8x7B",
        "chip not in the catalog": row["chip"] not in CHIPS,
        "model not described": row["model"] not in {*MODELS, *CONFIGS, "Mixtral-8x7B"},
        "said to be untuned": "outlier" in row["note"],
        "data parallel": "dp" in row["parallelism"],
        "pipeline stages": "pp" in row["parallelism"],
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _told(row: Mapping[str, str]) -> tuple[str, float, int, int] | None:
    """Phase, seconds, prompt and output tokens of a row; None for a second telling of the same run."""
    value, metric = float(row["value"]), row["metric"]
    prompt, output = int(row["input_len"] or 0), int(row["output_len"] or 0)
    if source_of(row) == "gptfast":
        output = GPT_FAST_OUTPUT
    found: dict[str, tuple[str, float, int, int]] = {
        "decode_step_ms": ("decode", value * MS, prompt, output),
        "first_token_ms": ("prefill", value * MS, prompt, 1),
        "tok_s_per_seq": ("decode", 1 / value, prompt, output),
        "in_tok_s": ("prefill", prompt / value, prompt, 1),
        # FasterTransformer runs a step for the first token too.
        "e2e_latency_ms": ("end_to_end", value * MS, prompt, output + 1),
        "e2e_latency_s": ("end_to_end", value, prompt, output),
    }
    return found.get(metric)


def _reason(message: str) -> str:
    """The kind of a refusal."""
    kinds = {"than fit at once": "capacity exceeded", "does not fit": "capacity exceeded", "has no peak rate": "dtype"}
    return next((kind for words, kind in kinds.items() if words in message), message[:60])
