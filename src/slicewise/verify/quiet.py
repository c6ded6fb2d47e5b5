"""Keeps the compiler's chatter from the terminal, and tells how long it has been at work."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

TICK_S = 0.5


@contextmanager
def at_work(task: str) -> Iterator[None]:
    """Run what takes a while: libtpu's messages go to a file of their own, and a terminal sees the seconds pass.

    Args:
        task: what is being done, such as "Compiling decode for v5e:2x4".
    """
    sys.stderr.flush()
    try:
        own = os.dup(2)
    except OSError:
        # There is no standard error to speak of.
        yield
        return
    with tempfile.TemporaryFile() as chatter:
        os.dup2(chatter.fileno(), 2)
        done = threading.Event()
        clock = threading.Thread(target=_tell, args=(own, task, done), daemon=True)
        clock.start()
        try:
            yield
        finally:
            done.set()
            clock.join()
            os.dup2(own, 2)
            os.close(own)


def _tell(terminal: int, task: str, done: threading.Event) -> None:
    if not os.isatty(terminal):
        return
    start, width = time.monotonic(), 0
    while not done.wait(TICK_S):
        line = f"{task} ... {time.monotonic() - start:.0f} s"
        width = max(width, len(line))
        os.write(terminal, f"\r{line}".encode())
    os.write(terminal, f"\r{' ' * width}\r".encode())
