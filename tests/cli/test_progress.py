"""The progress bar: on a terminal, for what takes longer than two seconds, and never elsewhere."""

import io
import threading
import time
from contextlib import contextmanager
from typing import Any

import pytest

from slicewise.cli import progress
from slicewise.cli.main import main
from slicewise.cli.progress import bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> float:
    """A bar that begins at once, and how long to wait until it surely has."""
    monkeypatch.setattr(progress, "WAIT_S", 0.01)
    return 0.3


def watched(monkeypatch: pytest.MonkeyPatch, term: str = "xterm") -> Terminal:
    terminal = Terminal()
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr("sys.stderr", terminal)
    return terminal


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_what_is_done_soon_shows_nothing(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    terminal = watched(monkeypatch, term)
    before = threading.active_count()
    with bar("simulating") as told:
        for done in range(5):
            told(done, 5)
    assert terminal.getvalue() == ""
    assert threading.active_count() == before


def test_what_takes_longer_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch, soon: float) -> None:
    terminal = watched(monkeypatch)
    with bar("simulating") as told:
        told(1, 40)
        time.sleep(soon)
        told(17, 40)
    assert "simulating" in terminal.getvalue()
    assert "17/40" in terminal.getvalue()


def test_it_begins_by_itself_and_leaves_no_thread(monkeypatch: pytest.MonkeyPatch, soon: float) -> None:
    terminal = watched(monkeypatch)
    before = threading.active_count()
    with bar("fleets tried"):
        time.sleep(soon)
        assert "fleets tried" in terminal.getvalue()
    until_s = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < until_s:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_an_unknown_end_is_no_end(monkeypatch: pytest.MonkeyPatch, soon: float) -> None:
    terminal = watched(monkeypatch)
    with bar("fleets tried") as told:
        time.sleep(soon)
        told(3, 0)
    assert "3/?" in terminal.getvalue()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_it_is_taken_away_when_something_ends_the_work(
    monkeypatch: pytest.MonkeyPatch, soon: float, kind: type[BaseException]
) -> None:
    terminal = watched(monkeypatch)

    def work() -> None:
        with bar("simulating") as told:
            time.sleep(soon)
            told(1, 2)
            raise kind

    with pytest.raises(kind):
        work()
    # The cursor is shown again, and the bar's line is gone.
    assert terminal.getvalue().index("\x1b[?25l") < terminal.getvalue().rindex("\x1b[?25h")


def test_where_nobody_watches_nothing_is_written(monkeypatch: pytest.MonkeyPatch, soon: float) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    with bar("simulating") as told:
        time.sleep(soon)
        told(1, 2)
    assert pipe.getvalue() == ""


def test_commands_tell_the_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[str, int, int]] = []

    @contextmanager
    def watching(what: str) -> Any:
        yield lambda done, of: seen.append((what, done, of))

    monkeypatch.setattr(progress, "bar", watching)
    load = ["llama-3-70b", "--slice", "v5e:4x4", "--rate", "1", "--requests", "20", "--isl", "100", "--osl", "10"]
    for words in (["simulate"], ["simulate", "--seed", "1", "--seed", "2"], ["size", "--ttft", "1s"]):
        seen.clear()
        with pytest.raises(SystemExit):
            main([words[0], *load, *words[1:]])
        assert seen, words
        assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
        assert seen[-1][1] == seen[-1][2] or seen[-1][2] == 0
    assert capsys.readouterr().err == ""
