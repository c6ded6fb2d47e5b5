"""The flags of the commands, each declared once with its help. Values stay text: the library reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from slicewise.cli.sections import Sectioned
from slicewise.errors import InputError
from slicewise.planner.vocabulary import WORDS

HEADLINE = "headline"
"""What a bare --explain explains."""

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]
Flag = Callable[[bool], Decorator[Any]]
"""Declares a flag on a command, hidden or not."""

EPILOG = """MODEL is a name of `slicewise catalog models`, the path of a config.json or of its folder, or the id of a
Hugging Face repository, such as Qwen/Qwen3-8B. Exit code: 0 an answer, 1 it does not fit, 2 bad input."""


def option(*names: str, help: str, **kwargs: Any) -> Flag:  # noqa: A002 - click's own word
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


def _word(name: str, *others: str) -> Flag:
    """The flag of a word of the vocabulary, with other names that it goes by."""
    word, flag = WORDS[name], f"--{name.replace('_', '-')}"
    kind: dict[str, Any] = {"metavar": word.kind} if word.kind else {"is_flag": True}
    return option(flag, *others, name, help=word.meaning, **kind, **({"multiple": True} if word.repeats else {}))


_DECLARED: dict[str, Flag] = {
    "slice": _word("slice", "--topology"),
    "chip": _word("chip"),
    "weights": _word("weights"),
    "kv": _word("kv", "--kv-cache-dtype"),
    "compute": _word("compute"),
    "one_model": option("--model", "model", metavar="MODEL", help="The model, where a file does not name it."),
    "one_slice": option("--slice", "slice", metavar="SLICE", help="The slice, where a file does not say: h100:8."),
    "one_weights": option("--weights", "weights", metavar="DTYPE", help="Dtype of the weights, likewise."),
    "one_kv": option("--kv", "--kv-cache-dtype", "kv", metavar="DTYPE", help="Dtype of the KV cache, likewise."),
    "one_compute": option("--compute", "compute", metavar="DTYPE", help="Dtype of the matmuls' FLOPs, likewise."),
    "one_engine": option("--engine", "engine", metavar="NAME", help="Who served, with its version, likewise."),
    "one_isl": option("--isl", "--prompt-tokens", "isl", metavar="N", help="Prompt tokens, likewise."),
    "one_osl": option("--osl", "--output-tokens", "osl", metavar="N", help="Output tokens, likewise."),
    "one_batch": option("--batch", "--max-num-seqs", "batch", metavar="N", help="Sequences at once, likewise."),
    "isl": _word("isl", "--prompt-tokens"),
    "osl": _word("osl", "--output-tokens"),
    "context": _word("context"),
    "contexts": option(
        "--context", "context", metavar="N", multiple=True, help="Context tokens. Repeatable: one line each."
    ),
    "batch": _word("batch", "--max-num-seqs"),
    "tpot": _word("tpot"),
    "ttft": _word("ttft"),
    "rate": _word("rate", "--request-rate"),
    "objective": _word("objective"),
    "price": _word("price"),
    "prefill_slice": _word("prefill_slice"),
    "network": _word("network"),
    "params": _word("params"),
    "hbm": _word("hbm"),
    "memory_fraction": _word("memory_fraction", "--gpu-memory-utilization", "--mem-fraction-static"),
    "mfu": _word("mfu"),
    "ici": _word("ici"),
    "split": _word("split"),
    "kv_split": _word("kv_split"),
    "tp": _word("tp", "--tensor-parallel-size"),
    "pp": _word("pp", "--pipeline-parallel-size"),
    "dp": _word("dp", "--data-parallel-size"),
    "ep": _word("ep", "--expert-parallel-size"),
    "engine": _word("engine"),
    "reserve": _word("reserve"),
    "max_model_len": _word("max_model_len"),
    "max_num_batched_tokens": _word("max_num_batched_tokens"),
    "block_size": _word("block_size"),
    "logged_kv_gib": _word("logged_kv_gib"),
    "logged_kv_tokens": _word("logged_kv_tokens"),
    "verify_prefill": option(
        "--prefill", "prefill", is_flag=True, help="Compile the prefill of one prompt instead of a decode step."
    ),
    "find_max_batch": option(
        "--max-batch", "max_batch", is_flag=True, help="Find the largest batch that compiles, by bisection."
    ),
    "estimate": option(
        "--estimate", "estimate", is_flag=True,
        help="Add up the compiler's own estimates of time; takes half a minute.",
    ),
    "clock": option(
        "--clock", metavar="RATE", help="Cycles a second of the chip, for --estimate: 1.75GHz.  [default: catalog's]"
    ),
    "compiler": option(
        "--compiler", metavar="NAME", help="tpu | cpu.  [default: the TPU's, where libtpu can be installed]"
    ),
    "hlo": option(
        "--hlo", metavar="FILE", type=click.Path(path_type=Path), help="Save the compiled program's text."
    ),
    "fresh": option("--fresh", "fresh", is_flag=True, help="Compile even what was compiled before."),
    "view": _word("view"),
    "efficiency": _word("efficiency"),
    "book": _word("book"),
    "out": option(
        "--out", metavar="FILE", type=click.Path(path_type=Path),
        help="Write the figures (.html .svg .png) or the columns (.csv .json)."
    ),
    "page": option(
        "--out", "out", metavar="FILE", type=click.Path(path_type=Path), help="Also write the answer as one HTML file."
    ),
    "explain": option(
        "--explain", metavar="[NAME]", is_flag=False, flag_value=HEADLINE,
        help="Derive NAME, NAME:low (:high, :bound), or the headline number.",
    ),
    "json": option("--json", "as_json", is_flag=True, help="Print JSON, in base units."),
    "md": option("--md", "as_md", is_flag=True, help="Print GitHub Markdown."),
    "csv": option("--csv", "as_csv", is_flag=True, help="Print the main table as CSV."),
}  # fmt: skip

SHOWN = ("explain", "json", "md", "csv")

model = click.argument("model", metavar="MODEL")
"""Catalog name, or path of a config.json or of a folder that holds one."""


def command(name: str | None = None) -> Callable[..., click.Command]:
    """Declare a command about a MODEL."""
    return click.command(name, cls=Sectioned, epilog=EPILOG)


def options(*names: str, unused: tuple[str, ...] = (), more: Mapping[str, Flag] | None = None) -> Decorator[Any]:
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
