"""The help of a command: every flag once, under its heading."""

import re

import click
import pytest

from slicewise.cli.main import COMMANDS, app
from slicewise.cli.sections import SECTIONS, Sectioned


def command(name: str) -> click.Command:
    found = app.get_command(click.Context(app), name)
    assert found is not None
    return found


def help_of(name: str) -> str:
    whole = click.Context(app, info_name="slicewise", **app.context_settings)
    return command(name).get_help(click.Context(command(name), whole, info_name=name, terminal_width=100))


SECTIONED = [name for name in COMMANDS if isinstance(command(name), Sectioned)]


@pytest.mark.parametrize("name", SECTIONED)
def test_every_flag_is_shown_once(name: str) -> None:
    shown = re.findall(r"^  (--[a-z0-9-]+|-h)\b", help_of(name), flags=re.MULTILINE)
    flags = [option for option in command(name).params if isinstance(option, click.Option) and not option.hidden]
    assert sorted(shown) == sorted(["-h", *(option.opts[0] for option in flags)])


def test_headings_come_in_order() -> None:
    for name in ("memory", "verify"):
        text = help_of(name)
        places = [text.index(f"{title}:") for title in SECTIONS if f"{title}:" in text]
        assert len(places) > 3
        assert places == sorted(places)


def test_a_heading_without_flags_is_left_away() -> None:
    assert "The engine, and what it logged:" not in help_of("plan")


def test_every_name_of_a_section_is_a_flag() -> None:
    known = {option.name for name in SECTIONED for option in command(name).params}
    assert {name for names in SECTIONS.values() for name in names} <= known


def test_help_of_the_main_job_fits_a_tall_screen() -> None:
    assert len(help_of("plan").splitlines()) <= 60
