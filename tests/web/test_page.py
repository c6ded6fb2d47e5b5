"""The page's files, without a browser: offline, without inline code, one palette, every text in the catalogue."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import pytest

from slicewise.report.explorer.resources import RESOURCES

PAGE = Path(str(resources.files("slicewise.report").joinpath("page")))
SCRIPTS = sorted(PAGE.glob("js/*.js"))
FILES = [file for file in sorted(PAGE.rglob("*")) if file.is_file()]
ENGLISH, KOREAN = (json.loads((PAGE / "text" / f"{name}.json").read_text()) for name in ("en", "ko"))
HTML = (PAGE / "index.html").read_text()
CSS = (PAGE / "explorer.css").read_text()
LONGEST_FILE = 400
NAMES = ("http://www.w3.org/2000/svg", "https://vega.github.io/schema/")  # names, not addresses that are read


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_is_read_from_elsewhere(file: Path) -> None:
    text = file.read_text()
    for name in NAMES:
        text = text.replace(name, "")
    assert re.findall(r"(?:https?:)?//[\w-]+\.[\w.-]+", text) == []


def test_no_code_and_no_style_in_the_document() -> None:
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", HTML) == []


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_scripts_are_short_and_evaluate_no_text(file: Path) -> None:
    text = file.read_text()
    assert len(text.splitlines()) < LONGEST_FILE
    assert re.findall(r"\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write", text) == []


def keys_used() -> set[str]:
    """Keys that scripts and document name outright; those put together of a name and an ending are tested by use."""
    scripts = "\n".join(file.read_text() for file in SCRIPTS)
    used = set(re.findall(r"\bt\(\"(\w+)\"", scripts)) | set(re.findall(r"data-t(?:-\w+)?\"?[:=]\s*\"(\w+)\"", scripts))
    return used | set(re.findall(r"data-t(?:-\w+)?=\"(\w+)\"", HTML))


def test_every_text_is_in_the_catalogue() -> None:
    assert keys_used() - set(ENGLISH) == set()


def test_the_korean_catalogue_names_texts_that_there_are() -> None:
    assert set(KOREAN) - {"server"} - set(ENGLISH) == set()


@pytest.mark.parametrize("key", sorted(set(KOREAN) & set(ENGLISH)))
def test_a_translation_has_the_same_places_for_values(key: str) -> None:
    places = [sorted(re.findall(r"\{\w+\}", catalogue[key])) for catalogue in (ENGLISH, KOREAN)]
    assert places[0] == places[1]


def blocks(selector: str) -> list[dict[str, str]]:
    """Custom properties of every block of a selector."""
    found = re.findall(re.escape(selector) + r" \{(.*?)\}", CSS, re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): ([^;]+);", block)) for block in found]


def test_the_page_has_the_palette_of_the_document() -> None:
    light, dark = blocks(":root")[0], blocks(':root[data-theme="dark"]')[0]
    for resource in RESOURCES:
        for properties, ink in ((light, resource.light), (dark, resource.dark)):
            assert properties[resource.key].lower() == ink.fill.lower(), resource.key
            assert properties[f"{resource.key}-ink"].lower() == ink.ink.lower(), resource.key


def test_the_dark_theme_is_the_same_by_choice_and_by_system() -> None:
    assert blocks(':root[data-theme="dark"]') == blocks(':root:not([data-theme="light"])')


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("selector", [":root", ':root[data-theme="dark"]'], ids=["light", "dark"])
def test_text_is_read_on_every_ground(selector: str) -> None:
    """WCAG AA: 4.5 : 1 for text."""
    colours = blocks(selector)[0]
    texts = ["ink", "quiet", "accent", "danger", *(f"{resource.key}-ink" for resource in RESOURCES)]
    too_weak = [
        f"{text} on {ground}: {contrast(colours[text], colours[ground]):.2f}"
        for text in texts
        for ground in ("ground", "side", "raised")
        if contrast(colours[text], colours[ground]) < 4.5
    ]
    assert too_weak == []
