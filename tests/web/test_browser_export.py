"""What the explorer gives away: each file is opened again."""

from __future__ import annotations

import csv
import io
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from helpers.browsers import Watch

pytestmark = pytest.mark.browser

QUESTION = "?model=llama-3-70b&slice=v5e:4x4&weights=int8&kv=int8&context=8192&batch=32"
FREE = "?model=qwen3-30b-a3b-2507&chip=h100&chip=v6e&weights=fp8&weights=bf16&isl=4096&tpot=40ms&rate=12"
PICTURES = ("frontier", "breakdown", "memory", "mesh")
Opened = Callable[..., Any]


def exported(page: Any, name: str) -> Path:
    if page.locator("#exports").is_hidden():
        page.locator("#export").click()
    with page.expect_download() as download:
        page.locator(f"#export-{name}").click()
    return Path(download.value.path())


@pytest.mark.parametrize("picture", PICTURES)
def test_png(opened: Opened, picture: str) -> None:
    image = pytest.importorskip("PIL.Image").open(exported(opened(QUESTION), f"png-{picture}"))
    assert image.format == "PNG"
    assert image.width >= 600
    assert image.height >= 200
    colours = image.convert("RGB").quantize(64).getcolors()
    assert len(colours) > 8  # it is not blank


@pytest.mark.parametrize("picture", PICTURES)
def test_svg(opened: Opened, picture: str) -> None:
    page = opened(QUESTION)
    root = ET.fromstring(exported(page, f"svg-{picture}").read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [text for element in root.iter("{http://www.w3.org/2000/svg}text") for text in element.itertext()]
    assert any("llama-3-70b" in text for text in texts)
    assert not any(value.startswith("var(") for element in root.iter() for value in element.attrib.values())


def test_csv_and_json_have_the_same_numbers(opened: Opened) -> None:
    page = opened(QUESTION)
    rows = list(csv.DictReader(io.StringIO(exported(page, "csv").read_text())))
    answer = json.loads(exported(page, "json").read_text())
    curve = next(curve for curve in answer["frontier"]["slices"] if curve["slice"] == "v5e:4x4")
    ours = [row for row in rows if row["slice"] == "v5e:4x4"]
    assert [float(row["step_s"]) for row in ours] == curve["step_s"]
    assert [int(row["batch"]) for row in ours] == curve["batch"]
    columns = answer["breakdown"]["columns"]
    terms = [name for name in columns if name not in ("batch", "step_s")]
    drawn = [row for row in ours if all(row[name] for name in terms)]
    assert len(drawn) > 10
    for row in drawn:  # what the chart shows, which adds up to the step
        assert sum(float(row[name]) for name in terms) == pytest.approx(float(row["step_s"]))


def test_the_report_opens_by_itself(opened: Opened, browser: Any) -> None:
    page = opened(QUESTION)
    file = exported(page, "html")
    report = browser.new_context().new_page()
    watch = Watch(report)
    report.set_content(file.read_text(), wait_until="load")
    assert "llama-3-70b" in report.locator("body").inner_text()
    report.locator("a.door").first.click()
    assert report.locator("details[open] pre:target").count() == 1
    assert watch.errors == []
    assert watch.foreign == []


@pytest.mark.parametrize("question", [QUESTION, FREE], ids=["one step", "the plan chooses"])
def test_the_command_line_gives_the_same_answer(opened: Opened, question: str) -> None:
    page = opened(question)
    answer = json.loads(exported(page, "json").read_text())
    command = shlex.split(page.locator("#command").inner_text())
    assert command[0] == "slicewise"
    done = subprocess.run(
        [sys.executable, "-m", "slicewise", *command[1:], "--json"], capture_output=True, text=True, check=True
    )
    plan = json.loads(done.stdout)["recommended"]
    assert plan["slice"] == answer["answer"]["slice"]
    assert plan["batch"] == answer["answer"]["batch"]
