"""Documents as text for a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from slicewise.report.document import Document, Heading, Items, Line, Table

WIDTH = 100
_WHOLE = 100_000
_SENTENCE_WIDTH = 44


def print_document(document: Document, file: TextIO | None = None) -> None:
    """Print a document: sentences wrapped to the width, tables whole, bold where a terminal shows it."""
    out = file or sys.stdout
    width = max(min(shutil.get_terminal_size((WIDTH, 24)).columns, 120), 60) if out.isatty() else WIDTH
    # Tables are set at their natural width, and never cut: the terminal, or the reader's pager, folds what is wider.
    console = Console(width=_WHOLE, highlight=False, color_system="standard" if out.isatty() else None)
    with console.capture() as capture:
        for block in document:
            _print(console, block, width)
    out.write("\n".join(line.rstrip() for line in capture.get().split("\n")))


def _print(console: Console, block: Heading | Line | Table | Items, width: int) -> None:
    if isinstance(block, Heading):
        console.print(Text(_wrapped(block.text, width), style="bold"))
    elif isinstance(block, Line):
        console.print(Text(_wrapped(block.text, width)))
    elif isinstance(block, Table):
        _print_table(console, block)
    elif block.items:
        console.print()
        console.print(Text(block.title, style="bold"))
        for item in block.items:
            console.print(Text(_wrapped(f"  {item}", width, "    ")))


def _wrapped(text: str, width: int, indent: str = "  ") -> str:
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _print_table(console: Console, block: Table) -> None:
    console.print()
    if block.title:
        console.print(Text(block.title, style="bold"))
    table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for index, name in enumerate(block.header):
        wraps = index in block.wrapped
        table.add_column(
            Text(name),
            justify="left" if index in block.left else "right",
            no_wrap=not wraps,
            max_width=_SENTENCE_WIDTH if wraps else None,
        )
    for index, row in enumerate(block.rows):
        table.add_row(*[Text(cell) for cell in row], style="bold" if index == block.marked else None)
    console.print(table)
