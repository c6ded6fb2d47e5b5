"""Has the compiler run in a process of its own.

It is a large library in another language: it talks to standard error, takes its time before it notices Ctrl-C, and may
die of a stack overflow. So its chatter goes to a file, Ctrl-C ends it at once, and its death is an answer, too.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import slicewise
from slicewise.errors import InputError
from slicewise.verify.recipe import Recipe

TICK_S = 0.5
LAST_WORDS = 200
"""Characters of a dead compiler's chatter that are told."""


class CompilerDiedError(InputError):
    """The compiler's process ended without an answer."""


def compiled(recipe: Recipe, task: str, environment: Mapping[str, str], hlo: Path | None) -> dict[str, Any]:
    """What the compiler says of a program: JSON objects "declared" and "reading".

    Args:
        recipe: the program.
        task: what is being done, such as "Compiling decode for v5e:2x4"; a terminal sees it, and seconds pass.
        environment: variables beside those that are set here.
        hlo: where to save the program's text.

    Raises:
        InputError: the model or the slice cannot be compiled, or the text cannot be written.
        CompilerDiedError: the compiler did not survive it.
    """
    package = str(Path(slicewise.__file__).parents[1])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryFile() as chatter:
        process = subprocess.Popen(
            # Not from the folder that the user happens to be in: its files may be called jax.py.
            [sys.executable, "-P", "-m", "slicewise.verify.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=chatter,
            env={**os.environ, **environment, "PYTHONPATH": path},
        )
        try:
            printed = _waited(process, pickle.dumps((recipe, hlo)), task)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        if process.returncode or not printed:
            raise CompilerDiedError(f"{task}: the compiler died ({_death(process.returncode, chatter)})")
    answer: dict[str, Any] = json.loads(printed)
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
                width = max(width, len(line))
                terminal.write(f"\r{line}")
                terminal.flush()
        else:
            break
    if terminal and width:
        terminal.write(f"\r{' ' * width}\r")
        terminal.flush()
    return printed


def _death(code: int, chatter: Any) -> str:
    cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    chatter.seek(0)
    lines = [line.strip() for line in chatter.read().decode(errors="replace").splitlines() if line.strip()]
    return f"{cause}; its last words: {lines[-1][:LAST_WORDS]}" if lines else cause
