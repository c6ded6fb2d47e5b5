"""The flags of the commands, each declared once with its help. Values stay text: the library reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from slicewise.errors import InputError
from slicewise.planner.conventions import CHOICES
from slicewise.planner.question import OBJECTIVES

HEADLINE = "headline"
"""What a bare --explain explains."""

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]

_DTYPES = "bf16 fp16 fp32 int8 fp8 int4 fp4"


EPILOG = """MODEL is a name of `slicewise catalog models`, or the path of a Hugging Face config.json or of its folder.
Exit code: 0 an answer, 1 it does not fit, 2 bad input."""


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
        "--slice", "--topology", "slice", multiple=True, help="Chip and slice: v5e:4x4, v6e-8, v5p-8 (4 chips), h100:8."
    ),
    "chip": _option("--chip", multiple=True, help="Chip; the planner chooses the slice. Repeatable.  [default: v5e]"),
    "weights": _option("--weights", multiple=True, help=f"Dtype of the weights: {_DTYPES}. Repeatable in plan."),
    "kv": _option("--kv", "--kv-cache-dtype", "kv", multiple=True, help="Dtype of the KV cache. Repeatable in plan."),
    "compute": _option("--compute", multiple=True, help="Dtype of the matmuls' FLOPs.  [default: bf16]"),
    "isl": _option("--isl", "--prompt-tokens", "isl", help="Prompt tokens.  [default: 8192]"),
    "osl": _option("--osl", "--output-tokens", "osl", help="Output tokens.  [default: 512]"),
    "context": _option("--context", help="Context tokens that a sequence holds; sets it outright."),
    "contexts": _option("--context", "context", multiple=True, help="Context tokens. Repeatable: one line each."),
    "batch": _option(
        "--batch", "--max-num-seqs", "batch",
        help="Sequences in a decode step.  [default: plan chooses; memory 1; else the most that fit]",
    ),
    "tpot": _option("--tpot", help="Limit on the time per output token, such as 15ms."),
    "ttft": _option("--ttft", help="Limit on the time to the first token, such as 2s."),
    "rate": _option("--rate", "--request-rate", "rate", help="Requests per second to serve."),
    "objective": _option("--objective", help=f"{' | '.join(OBJECTIVES)}.  [default: cost]"),
    "price": _option(
        "--price", multiple=True, help="USD per chip-hour: 1.2, or v6e=2.7 for one chip.  [default: the catalog's]"
    ),
    "prefill_slice": _option("--prefill-slice", help="Slice of the prefill servers.  [default: that of decode]"),
    "network": _option("--network", help="Rate at which a slice sends a cache out: 400Gb/s (bits) or 50GB/s."),
    "params": _option("--params", help="Override the parameter counts, such as 70e9.  [default: exact]"),
    "hbm": _option("--hbm", help="HBM per chip: 16GB or 15.75GiB.  [default: what is usable]"),
    "memory_fraction": _option(
        "--memory-fraction", "--gpu-memory-utilization", "memory_fraction",
        help="Share of HBM that may be used.  [default: 0.95]",
    ),
    "mfu": _option("--mfu", help="FLOPs utilisation in prefill.  [default: 0.4]"),
    "ici": _option("--ici", help=f"{_words('ici')}: rings and lines of the slice, the book's rings, no network."),
    "split": _option("--split", help=f"{_words('split')}: the fullest chip decides, or fractions of sequences."),
    "kv_split": _option(
        "--kv-split", help=f"{_words('kv_split')}: chips beyond the KV heads split the batch, or copy it."
    ),
    "view": _option("--view", help=f"{_words('view')}: which step decides.  [default: overlapped]"),
    "book": _option("--book", is_flag=True, help="Chapter 8's conventions at once; add --params 70e9 for its count."),
    "out": _option(
        "--out", type=click.Path(path_type=Path),
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
COUNTED = ("params", "hbm", "memory_fraction", "mfu", "ici", "split", "kv_split", "view", "book")
SHOWN = ("explain", "json", "md", "csv")

model = click.argument("model", metavar="MODEL")
"""Catalog name, or path of a config.json or of a folder that holds one."""


def command(name: str | None = None) -> Callable[..., click.Command]:
    """Declare a command about a MODEL."""
    return click.command(name, epilog=EPILOG)


def options(*names: str, unused: tuple[str, ...] = ()) -> Decorator[Any]:
    """Declare the named flags on a command, in this order.

    Args:
        names: flags of the table above.
        unused: those that the command takes, so that one set of flags serves every command, but has no use for.
    """

    def declare(function: Command) -> Command:
        for name in reversed(names):
            function = _DECLARED[name](name in unused)(function)
        return function

    return declare


def given(words: dict[str, Any]) -> dict[str, Any]:
    """The flags that were given; the rest are left out, so that the library's defaults hold."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in words.items()
        if value not in (None, (), False)
    }
