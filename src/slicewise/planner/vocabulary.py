"""The words of a question, each with its meaning, told once for whoever offers them: the command line and the web."""

from __future__ import annotations

from dataclasses import dataclass

from slicewise.planner.conventions import CHOICES
from slicewise.planner.engines import ENGINES
from slicewise.planner.flags import OBJECTIVES


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question.

    Attributes:
        kind: what its value is, as help shows it: SLICE, TIME, N ...; "" for one that is either said or not.
        meaning: what it sets, with examples, its choices and its default.
        repeats: whether it may be given several times.
    """

    kind: str
    meaning: str
    repeats: bool = False


def _choices(name: str) -> str:
    return " | ".join(CHOICES[name])


_DTYPES = "bf16 fp16 fp32 int8 fp8 int4 fp4 nvfp4 mxfp4"

WORDS: dict[str, Word] = {
    "slice": Word("SLICE", "Chip and slice: v5e:4x4, v6e-8, v5p-8 (4 chips), h100:8.", repeats=True),
    "chip": Word("CHIP", "Chip; the slice is chosen. Repeatable.  [default: v5e]", repeats=True),
    "weights": Word(
        "DTYPE", f"Dtype of the weights, repeatable in plan: {_DTYPES}.  [default: as stored]", repeats=True
    ),
    "kv": Word("DTYPE", "Dtype of the KV cache, repeatable in plan.  [default: bf16]", repeats=True),
    "compute": Word("DTYPE", "Dtype of the matmuls' FLOPs.  [default: bf16]", repeats=True),
    "isl": Word("N", "Prompt tokens.  [default: 8192]"),
    "osl": Word("N", "Output tokens.  [default: 512]"),
    "context": Word("N", "Tokens that a sequence holds, for memory and time alike."),
    "batch": Word("N", "Sequences in a decode step.  [default: plan chooses; memory 1; else the most that fit]"),
    "tpot": Word("TIME", "Limit on the time per output token, such as 15ms."),
    "ttft": Word("TIME", "Limit on the time to the first token, such as 2s."),
    "rate": Word("RATE", "Requests per second to serve."),
    "objective": Word("WORD", f"{' | '.join(OBJECTIVES)}.  [default: cost]"),
    "price": Word("USD", "Price of a chip-hour: 1.2, or v6e=2.7.  [default: the catalog's]", repeats=True),
    "prefill_slice": Word("SLICE", "Slice of the prefill servers.  [default: that of decode]"),
    "network": Word("RATE", "Rate at which a slice sends a cache out: 400Gb/s or 50GB/s."),
    "params": Word("COUNT", "Override a dense model's count: 70e9.  [default: exact]"),
    "hbm": Word("SIZE", "HBM per chip: 16GB or 15.75GiB.  [default: what is usable]"),
    "memory_fraction": Word("SHARE", "Share of HBM to use, as the engine's.  [default: 0.95]"),
    "mfu": Word("SHARE", "FLOPs utilisation in prefill.  [default: expected; bounds: 0.4]"),
    "ici": Word("WORD", f"{_choices('ici')}: as wired, the book's rings, no network."),
    "split": Word("WORD", f"{_choices('split')}: whole sequences, or fractions of them."),
    "kv_split": Word("WORD", f"{_choices('kv_split')}: what chips beyond the KV heads do."),
    "tp": Word("N", "Ranks that cut heads, widths and vocabulary."),
    "pp": Word("N", "Stages that share the layers."),
    "dp": Word("N", "Groups of tp ranks, each with a part of the batch."),
    "ep": Word("N", "Ways that whole experts are spread over tp × dp ranks."),
    "engine": Word(
        "NAME",
        f"{' | '.join(ENGINES)}: its layouts, reserve and padding; vllm-0.19 for the rules of that version.",
    ),
    "reserve": Word("SIZE", "Kept of a chip beside weights and cache.  [default: by engine]"),
    "max_model_len": Word("N", "Longest request of the engine.  [default: the context held]"),
    "max_num_batched_tokens": Word("N", "Most tokens of the engine's batch.  [default: 8192]"),
    "block_size": Word("N", "Tokens of a block of the engine's cache.  [default: the engine's]"),
    "logged_kv_gib": Word("GIB", "The cache that it logged, GiB a chip: what that implies."),
    "logged_kv_tokens": Word("N", "The tokens that it logged: what they imply."),
    "view": Word(
        "WORD",
        f"{_choices('view')}: the time that decides.  [default: expected; overlapped in step and frontier]",
    ),
    "efficiency": Word(
        "FILE", "Expect what `slicewise calibrate` wrote of your own measurements.  [default: published ones]"
    ),
    "book": Word("", "Chapter 8's conventions at once; also --params 70e9."),
}
"""Every word by its name in Python; the flag is `--` and the name, with dashes."""

PLACE = ("slice", "chip", "weights", "kv", "compute")
LENGTHS = ("isl", "osl", "context", "batch")
RANKS = ("tp", "pp", "dp", "ep", "engine", "reserve")
LOGGED = ("max_model_len", "max_num_batched_tokens", "block_size", "logged_kv_gib", "logged_kv_tokens")
COUNTED = (*RANKS, "params", "hbm", "memory_fraction", "mfu", "ici", "split", "kv_split", "view", "efficiency", "book")

TAKES: dict[str, tuple[str, ...]] = {
    "plan": (*PLACE, *LENGTHS, "tpot", "ttft", "rate", "objective", "price", "network", *COUNTED),
    "step": (*PLACE, *LENGTHS, "price", *COUNTED),
    "prefill": (*PLACE, "isl", "price", *COUNTED),
    "memory": (*PLACE, *LENGTHS, *COUNTED, *LOGGED),
    "limits": (*PLACE, *LENGTHS, *COUNTED),
    "frontier": (*PLACE, "isl", "osl", "context", "tpot", *COUNTED),
    "disaggregate": (
        *("slice", "prefill_slice", *PLACE[1:]),
        *(*LENGTHS, "tpot", "ttft", "rate", "price", "network"),
        *COUNTED,
    ),
    "compare": (*PLACE[2:], *LENGTHS, "tpot", "ttft", "objective", "price", *COUNTED),
}
"""The words that each question takes."""
