"""Has the compiler run in a process of its own.

It is a large library in another language: it talks to standard error, takes its time before it notices Ctrl-C, and may
die of a stack overflow. So its chatter goes to a file, Ctrl-C ends it at once, and its death is an answer, too.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from slicewise.errors import InputError
from slicewise.verify.recipe import Recipe

TICK_S = 0.5
LAST_WORDS = 200
"""Characters of a dead compiler's chatter that are told."""


class CompilerDiedError(InputError):
    """The compiler died, or gave up for another reason than size: no verdict, and another form may fare better.

    Attributes:
        may_live: the next try may end otherwise, since it was the system that ended this one.
    """

    def __init__(self, message: str, *, may_live: bool = False) -> None:
        super().__init__(message)
        self.may_live = may_live


def compiled(recipe: Recipe, task: str, environment: Mapping[str, str], hlo: Path | None) -> dict[str, Any]:
    """What the compiler says of a program: JSON objects "declared" and "reading".

    Args:
        recipe: the program.
        task: what is being done, such as "Compiling decode for v5e:2x4"; a terminal sees it, and seconds pass.
        environment: variables beside those that are set here.
        hlo: where to save the program's text.

    Raises:
        InputError: the model or the slice cannot be compiled, or the text cannot be written.
        CompilerDiedError: the compiler did not survive it, or gave up.
    """
    # What jax is told by the environment would change the program.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    with tempfile.TemporaryFile() as chatter:
        try:
            process = subprocess.Popen(
                # Not from the folder that the user happens to be in: its files may be called jax.py.
                [sys.executable, "-P", "-m", "slicewise.verify.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=chatter,
                env={**inherited, **environment},
            )
        except OSError as error:
            raise InputError(f"{task}: the compiler cannot be started ({error.strerror}); give it room") from None
        try:
            printed = _waited(process, pickle.dumps((recipe, hlo)), task)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        if process.returncode < 0:
            cause, killed = _signal(-process.returncode), process.returncode == -signal.SIGKILL
            raise CompilerDiedError(f"{task}: the compiler died ({cause}{_last_words(chatter)})", may_live=killed)
        if process.returncode or not printed:
            raise InputError(f"{task}: the compiler ended (exit code {process.returncode}{_last_words(chatter)})")
    answer: dict[str, Any] = json.loads(printed)
    if "gave up" in answer:
        raise CompilerDiedError(answer["gave up"])
    if "refused" in answer:
        raise InputError(answer["refused"])
    return answer


def _waited(process: subprocess.Popen[bytes], message: bytes, task: str) -> bytes:
    terminal = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
    start, width, given = time.monotonic(), 0, message
    while True:
        try:
            printed, _ = process.communicate(given or None, timeout=TICK_S)
        except subprocess.TimeoutExpired:
            given = b""
            if terminal:
                line = f"{task} ... {time.monotonic() - start:.0f} s"
                line = line[-(shutil.get_terminal_size().columns - 1) :]
                width = max(width, len(line))
                terminal.write(f"\r{line}")
                terminal.flush()
        else:
            break
    if terminal and width:
        terminal.write(f"\r{' ' * width}\r")
        terminal.flush()
    return printed


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_words(chatter: IO[bytes]) -> str:
    chatter.seek(0)
    lines = [line.strip() for line in chatter.read().decode(errors="replace").splitlines() if line.strip()]
    return f"; its last words: {lines[-1][:LAST_WORDS]}" if lines else ""
