"""The flags of the commands, each declared once with its help. Values stay text: the library reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from slicewise.cli.sections import Sectioned
from slicewise.errors import InputError
from slicewise.planner.conventions import CHOICES
from slicewise.planner.question import ENGINES, OBJECTIVES

HEADLINE = "headline"
"""What a bare --explain explains."""

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]

_DTYPES = "bf16 fp16 fp32 int8 fp8 int4 fp4 nvfp4 mxfp4"


EPILOG = """MODEL is a name of `slicewise catalog models`, the path of a config.json or of its folder, or the id of a
Hugging Face repository, such as Qwen/Qwen3-8B. Exit code: 0 an answer, 1 it does not fit, 2 bad input."""


def _option(*names: str, help: str, **kwargs: Any) -> Callable[[bool], Decorator[Any]]:  # noqa: A002 - click's own word
    """A flag, hidden from the help of a command that takes it for the sake of one vocabulary but has no use for it."""
    if not kwargs.keys() & {"multiple", "is_flag"}:
        # Given twice, a flag would silently keep its last value: it is taken as a list, and must be alone in it.
        kwargs |= {"multiple": True, "callback": _once}
    return lambda hidden: click.option(*names, help=help, hidden=hidden, **kwargs)


def _once(ctx: click.Context, option: click.Parameter, values: tuple[Any, ...]) -> Any:
    del ctx
    if len(values) > 1:
        raise InputError(f"{option.opts[0]} is given {len(values)} times; give it once")
    return values[0] if values else None


def _words(name: str) -> str:
    return " | ".join(CHOICES[name])


_DECLARED: dict[str, Callable[[bool], Decorator[Any]]] = {
    "slice": _option(
        "--slice", "--topology", "slice", metavar="SLICE", multiple=True,
        help="Chip and slice: v5e:4x4, v6e-8, v5p-8 (4 chips), h100:8.",
    ),
    "chip": _option(
        "--chip", metavar="CHIP", multiple=True, help="Chip; the slice is chosen. Repeatable.  [default: v5e]"
    ),
    "weights": _option(
        "--weights", metavar="DTYPE", multiple=True,
        help=f"Dtype of the weights, repeatable in plan: {_DTYPES}.  [default: as stored]",
    ),
    "kv": _option(
        "--kv", "--kv-cache-dtype", "kv", metavar="DTYPE", multiple=True,
        help="Dtype of the KV cache, repeatable in plan.  [default: bf16]",
    ),
    "compute": _option(
        "--compute", metavar="DTYPE", multiple=True, help="Dtype of the matmuls' FLOPs.  [default: bf16]"
    ),
    "one_model": _option("--model", "model", metavar="MODEL", help="The model, where a file does not name it."),
    "one_slice": _option("--slice", "slice", metavar="SLICE", help="The slice, where a file does not say: h100:8."),
    "one_weights": _option("--weights", "weights", metavar="DTYPE", help="Dtype of the weights, likewise."),
    "one_kv": _option("--kv", "--kv-cache-dtype", "kv", metavar="DTYPE", help="Dtype of the KV cache, likewise."),
    "one_compute": _option("--compute", "compute", metavar="DTYPE", help="Dtype of the matmuls' FLOPs, likewise."),
    "one_engine": _option("--engine", "engine", metavar="NAME", help="Who served, with its version, likewise."),
    "one_isl": _option("--isl", "--prompt-tokens", "isl", metavar="N", help="Prompt tokens, likewise."),
    "one_osl": _option("--osl", "--output-tokens", "osl", metavar="N", help="Output tokens, likewise."),
    "one_batch": _option("--batch", "--max-num-seqs", "batch", metavar="N", help="Sequences at once, likewise."),
    "isl": _option("--isl", "--prompt-tokens", "isl", metavar="N", help="Prompt tokens.  [default: 8192]"),
    "osl": _option("--osl", "--output-tokens", "osl", metavar="N", help="Output tokens.  [default: 512]"),
    "context": _option("--context", metavar="N", help="Tokens that a sequence holds, for memory and time alike."),
    "contexts": _option(
        "--context", "context", metavar="N", multiple=True, help="Context tokens. Repeatable: one line each."
    ),
    "batch": _option(
        "--batch", "--max-num-seqs", "batch", metavar="N",
        help="Sequences in a decode step.  [default: plan chooses; memory 1; else the most that fit]",
    ),
    "tpot": _option("--tpot", metavar="TIME", help="Limit on the time per output token, such as 15ms."),
    "ttft": _option("--ttft", metavar="TIME", help="Limit on the time to the first token, such as 2s."),
    "rate": _option("--rate", "--request-rate", "rate", metavar="RATE", help="Requests per second to serve."),
    "objective": _option("--objective", metavar="WORD", help=f"{' | '.join(OBJECTIVES)}.  [default: cost]"),
    "price": _option(
        "--price", metavar="USD", multiple=True,
        help="Price of a chip-hour: 1.2, or v6e=2.7.  [default: the catalog's]",
    ),
    "prefill_slice": _option(
        "--prefill-slice", metavar="SLICE", help="Slice of the prefill servers.  [default: that of decode]"
    ),
    "network": _option(
        "--network", metavar="RATE", help="Rate at which a slice sends a cache out: 400Gb/s or 50GB/s."
    ),
    "params": _option(
        "--params", metavar="COUNT", help="Override a dense model's count: 70e9.  [default: exact]"
    ),
    "hbm": _option("--hbm", metavar="SIZE", help="HBM per chip: 16GB or 15.75GiB.  [default: what is usable]"),
    "memory_fraction": _option(
        "--memory-fraction", "--gpu-memory-utilization", "--mem-fraction-static", "memory_fraction", metavar="SHARE",
        help="Share of HBM to use, as the engine's.  [default: 0.95]",
    ),
    "mfu": _option("--mfu", metavar="SHARE", help="FLOPs utilisation in prefill.  [default: expected; bounds: 0.4]"),
    "ici": _option(
        "--ici", metavar="WORD", help=f"{_words('ici')}: as wired, the book's rings, no network."
    ),
    "split": _option(
        "--split", metavar="WORD", help=f"{_words('split')}: whole sequences, or fractions of them."
    ),
    "kv_split": _option(
        "--kv-split", metavar="WORD", help=f"{_words('kv_split')}: what chips beyond the KV heads do."
    ),
    "tp": _option(
        "--tp", "--tensor-parallel-size", "tp", metavar="N", help="Ranks that cut heads, widths and vocabulary."
    ),
    "pp": _option("--pp", "--pipeline-parallel-size", "pp", metavar="N", help="Stages that share the layers."),
    "dp": _option(
        "--dp", "--data-parallel-size", "dp", metavar="N", help="Groups of tp ranks, each with a part of the batch."
    ),
    "ep": _option(
        "--ep", "--expert-parallel-size", "ep", metavar="N",
        help="Ways that whole experts are spread over tp × dp ranks.",
    ),
    "engine": _option(
        "--engine", metavar="NAME",
        help=f"{' | '.join(ENGINES)}: its layouts, reserve and padding; vllm-0.19 for the rules of that version.",
    ),
    "reserve": _option(
        "--reserve", metavar="SIZE",
        help="Kept of a chip beside weights and cache.  [default: by engine]",
    ),
    "max_model_len": _option(
        "--max-model-len", metavar="N", help="Longest request of the engine.  [default: the context held]"
    ),
    "max_num_batched_tokens": _option(
        "--max-num-batched-tokens", metavar="N", help="Most tokens of the engine's batch.  [default: 8192]"
    ),
    "block_size": _option(
        "--block-size", metavar="N", help="Tokens of a block of the engine's cache.  [default: the engine's]"
    ),
    "logged_kv_gib": _option(
        "--logged-kv-gib", metavar="GIB", help="The cache that it logged, GiB a chip: what that implies."
    ),
    "logged_kv_tokens": _option(
        "--logged-kv-tokens", metavar="N", help="The tokens that it logged: what they imply."
    ),
    "verify_prefill": _option(
        "--prefill", "prefill", is_flag=True, help="Compile the prefill of one prompt instead of a decode step."
    ),
    "find_max_batch": _option(
        "--max-batch", "max_batch", is_flag=True, help="Find the largest batch that compiles, by bisection."
    ),
    "estimate": _option(
        "--estimate", "estimate", is_flag=True,
        help="Add up the compiler's own estimates of time; takes half a minute.",
    ),
    "clock": _option(
        "--clock", metavar="RATE", help="Cycles a second of the chip, for --estimate: 1.75GHz.  [default: catalog's]"
    ),
    "compiler": _option(
        "--compiler", metavar="NAME", help="tpu | cpu.  [default: the TPU's, where libtpu can be installed]"
    ),
    "hlo": _option(
        "--hlo", metavar="FILE", type=click.Path(path_type=Path), help="Save the compiled program's text."
    ),
    "fresh": _option("--fresh", "fresh", is_flag=True, help="Compile even what was compiled before."),
    "view": _option(
        "--view", metavar="WORD",
        help=f"{_words('view')}: the time that decides.  [default: expected in plan and compare, else overlapped]",
    ),
    "efficiency": _option(
        "--efficiency", metavar="FILE",
        help="Expect what `slicewise calibrate` wrote of your own measurements.  [default: published ones]",
    ),
    "book": _option("--book", is_flag=True, help="Chapter 8's conventions at once; also --params 70e9."),
    "out": _option(
        "--out", metavar="FILE", type=click.Path(path_type=Path),
        help="Write the figures (.html .svg .png) or the columns (.csv .json)."
    ),
    "explain": _option(
        "--explain", metavar="[NAME]", is_flag=False, flag_value=HEADLINE,
        help="Print the derivation of NAME, or of the headline number.",
    ),
    "json": _option("--json", "as_json", is_flag=True, help="Print JSON, in base units."),
    "md": _option("--md", "as_md", is_flag=True, help="Print GitHub Markdown."),
    "csv": _option("--csv", "as_csv", is_flag=True, help="Print the main table as CSV."),
}  # fmt: skip

LENGTHS = ("isl", "osl", "context", "batch")
PLACE = ("slice", "chip", "weights", "kv", "compute")
RANKS = ("tp", "pp", "dp", "ep", "engine", "reserve")
LOGGED = ("max_model_len", "max_num_batched_tokens", "block_size", "logged_kv_gib", "logged_kv_tokens")
COUNTED = (*RANKS, "params", "hbm", "memory_fraction", "mfu", "ici", "split", "kv_split", "view", "efficiency", "book")
SHOWN = ("explain", "json", "md", "csv")

model = click.argument("model", metavar="MODEL")
"""Catalog name, or path of a config.json or of a folder that holds one."""


def command(name: str | None = None) -> Callable[..., click.Command]:
    """Declare a command about a MODEL."""
    return click.command(name, cls=Sectioned, epilog=EPILOG)


def options(
    *names: str, unused: tuple[str, ...] = (), more: Mapping[str, Callable[[bool], Decorator[Any]]] | None = None
) -> Decorator[Any]:
    """Declare the named flags on a command, in this order.

    Args:
        names: flags of the table above.
        unused: those that the command takes, so that one set of flags serves every command, but has no use for.
        more: flags of some commands alone, which go before those of the table.
    """
    declared = {**_DECLARED, **(more or {})}

    def declare(function: Command) -> Command:
        for name in reversed(names):
            function = declared[name](name in unused)(function)
        return function

    return declare


def given(words: dict[str, Any]) -> dict[str, Any]:
    """The flags that were given; the rest are left out, so that the library's defaults hold."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in words.items()
        if value not in (None, (), False)
    }
