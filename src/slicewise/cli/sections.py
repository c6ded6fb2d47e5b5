"""The help of a command: its flags under headings, so that many of them can be looked through."""

from __future__ import annotations

import click

SECTIONS: dict[str, tuple[str, ...]] = {
    "Where, and in which formats": ("slice", "prefill_slice", "chip", "weights", "kv", "compute"),
    "Workload": (
        "model", "isl", "osl", "context", "batch", "tpot", "ttft", "itl", "e2e", "rate", "objective", "price",
        "network",
    ),
    "Layout (degrees left out are tried) and engine": ("tp", "pp", "dp", "ep", "engine", "reserve"),
    "Load": ("trace", "requests", "sigma", "burstiness", "on", "off", "seed"),
    "Servers": ("replicas", "prefill_servers", "decode_servers", "servers", "route"),
    "The engine, and what it logged": (
        "policy", "max_model_len", "max_num_batched_tokens", "block_size", "prefix_cache", "logged_kv_gib",
        "logged_kv_tokens",
    ),
    "The compiler": ("prefill", "max_batch", "estimate", "clock", "compiler", "hlo", "fresh"),
    "How it is counted": (
        "params", "hbm", "memory_fraction", "mfu", "ici", "split", "kv_split", "view", "efficiency", "book",
    ),
}  # fmt: skip
"""Headings, and the flags below each by their names in Python."""
_REST = "Answer"
_WIDEST_FLAG = 32


class Sectioned(click.Command):
    """A command whose help lists its flags by section; what belongs to none comes last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags that are not hidden, section by section."""
        flags = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        rows = {flag.name: flag.get_help_record(ctx) for flag in flags}
        for title, names in SECTIONS.items():
            _write(formatter, title, [rows.pop(name, None) for name in names])
        _write(formatter, _REST, list(rows.values()))


def _write(formatter: click.HelpFormatter, title: str, rows: list[tuple[str, str] | None]) -> None:
    shown = [row for row in rows if row]
    if shown:
        with formatter.section(title):
            formatter.write_dl(shown, col_max=_WIDEST_FLAG)
