"""The progress bar: on a terminal, for what takes longer than two seconds, and never elsewhere."""

import io
from contextlib import contextmanager
from typing import Any

import pytest

from slicewise.cli import progress
from slicewise.cli.main import main
from slicewise.cli.progress import WAIT_S, bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Time as a test has it."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    return found


def watched(monkeypatch: pytest.MonkeyPatch, term: str = "xterm") -> Terminal:
    terminal = Terminal()
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr("sys.stderr", terminal)
    return terminal


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_what_is_done_soon_shows_nothing(monkeypatch: pytest.MonkeyPatch, clock: Clock, term: str) -> None:
    terminal = watched(monkeypatch, term)
    with bar("simulating") as told:
        for done in range(5):
            told(done, 5)
            clock.now_s += WAIT_S / 5
    assert terminal.getvalue() == ""


def test_what_takes_longer_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    terminal = watched(monkeypatch)
    with bar("simulating") as told:
        told(1, 40)
        assert terminal.getvalue() == ""
        clock.now_s += WAIT_S + 0.1
        told(17, 40)
    assert "simulating" in terminal.getvalue()
    assert "17/40" in terminal.getvalue()


def test_an_unknown_end_is_no_end(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    terminal = watched(monkeypatch)
    with bar("fleets tried") as told:
        clock.now_s += WAIT_S + 0.1
        told(3, 0)
    assert "3/?" in terminal.getvalue()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_it_is_taken_away_when_something_ends_the_work(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, kind: type[BaseException]
) -> None:
    terminal = watched(monkeypatch)

    def work() -> None:
        with bar("simulating") as told:
            clock.now_s += WAIT_S + 0.1
            told(1, 2)
            raise kind

    with pytest.raises(kind):
        work()
    # The cursor is shown again, and the bar's line is gone.
    assert terminal.getvalue().index("\x1b[?25l") < terminal.getvalue().rindex("\x1b[?25h")


def test_where_nobody_watches_nothing_is_written(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    with bar("simulating") as told:
        clock.now_s += 100
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
