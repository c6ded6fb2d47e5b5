"""What is written to standard error while the compiler is at work, and who sees it."""

import os
import re
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from slicewise.verify import quiet
from slicewise.verify.quiet import at_work


def chatter() -> None:
    os.write(2, b"W0000 a library's chatter\n")


def test_chatter_is_kept_from_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    os.write(2, b"before\n")
    with at_work("Compiling"):
        chatter()
    os.write(2, b"after\n")
    assert capfd.readouterr() == ("", "before\nafter\n")


def test_an_error_passes_and_standard_error_is_back(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with at_work("Compiling"):
            chatter()
            raise ValueError("from within")

    with pytest.raises(ValueError, match="from within"):
        fail()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_no_file_or_thread_is_left_open(capfd: pytest.CaptureFixture[str]) -> None:
    def opened() -> tuple[int, int]:
        lowest = os.dup(0)
        os.close(lowest)
        return lowest, threading.active_count()

    before = opened()
    for _ in range(3):
        with at_work("Compiling"):
            pass
    assert opened() == before


def test_work_goes_on_without_a_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: int) -> int:
        raise OSError("bad file descriptor")

    monkeypatch.setattr(quiet.os, "dup", closed)
    done = []
    with at_work("Compiling"):
        done.append("work")
    assert done == ["work"]


def _all_of(reader: int) -> Iterator[str]:
    while select.select([reader], [], [], 0.1)[0]:
        yield os.read(reader, 10_000).decode()


@contextmanager
def terminal() -> Iterator[Callable[[], str]]:
    """Standard error as a terminal; what it gives reads what was shown there."""
    reader, writer = pytest.importorskip("pty").openpty()
    own = os.dup(2)
    os.dup2(writer, 2)
    try:
        yield lambda: "".join(_all_of(reader))
    finally:
        os.dup2(own, 2)
        for each in (own, reader, writer):
            os.close(each)


def test_a_terminal_sees_seconds_pass_and_then_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "TICK_S", 0.01)
    shown = threading.Event()
    write = os.write
    monkeypatch.setattr(quiet.os, "write", lambda *words: (write(*words), shown.set())[0])
    with terminal() as seen_so_far:
        with at_work("Compiling decode for v5e:2x4"):
            write(2, b"a library's chatter")
            assert shown.wait(10)
        seen = seen_so_far()
    assert re.match(r"\rCompiling decode for v5e:2x4 \.\.\. \d+ s", seen)
    assert "chatter" not in seen
    *_, cleared, end = seen.split("\r")
    assert (cleared.strip(), end) == ("", "")
