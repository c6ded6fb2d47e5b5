"""The vocabulary: every word of a question has its meaning there, and the command line shows that one."""

import click
import pytest

from slicewise.cli.main import app
from slicewise.planner.memory import MemoryFlags
from slicewise.planner.vocabulary import TAKES, WORDS

COMMANDS = ("plan", "step", "prefill", "memory", "disaggregate", "frontier", "limits", "compare", "verify")


def test_every_word_of_a_question_has_a_meaning() -> None:
    assert set(WORDS) == {*MemoryFlags.__annotations__, "prefill_slice"}
    assert all(word.meaning for word in WORDS.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_flags_show_the_meaning_of_their_word(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    flags = [flag for flag in command.params if isinstance(flag, click.Option) and flag.name in WORDS]
    assert flags
    for flag in flags:
        word = WORDS[flag.name or ""]
        several = name == "frontier" and flag.name == "context"
        assert (flag.help == word.meaning) is not several
        assert flag.is_flag == (not word.kind)


@pytest.mark.parametrize("name", TAKES)
def test_commands_take_the_words_of_their_question(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    flags = {flag.name for flag in command.params if isinstance(flag, click.Option)}
    assert flags >= set(TAKES[name])
    assert flags & set(WORDS) <= {*TAKES[name]}
