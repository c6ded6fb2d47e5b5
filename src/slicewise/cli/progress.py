"""A progress bar on the terminal, for work that takes more than two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WAIT_S = 2.0
"""Work that is done sooner shows no bar."""


def _untold(done: int, of: int) -> None:
    """Nobody watches."""
    del done, of


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, told how much is done and of how much; none where that is no terminal.

    It begins by itself when the time has come, also where nothing was told by then.

    Args:
        what: is done, in a few words.
    """
    if not sys.stderr.isatty():
        yield _untold
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        "left",
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task(what, total=None)
    timer = threading.Timer(WAIT_S, progress.start)
    timer.daemon = True

    def told(done: int, of: int) -> None:
        progress.update(task, completed=done, total=of or None)

    timer.start()
    try:
        yield told
    finally:
        timer.cancel()
        try:
            # A bar that is just beginning has begun, before it is taken away.
            timer.join()
        finally:
            # What never began would still end with an empty line on some terminals.
            if progress.live.is_started:
                progress.stop()
