"""How the explorer behaves under the hand: speed of dragging, nothing that jumps, no barrier."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest

from helpers.browsers import ready

pytestmark = pytest.mark.browser

BOOK = "?model=llama-3-70b&slice=v5e:4x4&weights=int8&kv=int8&book=true&params=70e9&context=2048"
PLAN = "?model=llama-3-70b&chip=v5e&weights=int8&kv=int8&tpot=50ms"
REFUSED = "?model=llama-3-405b&slice=v5e:2x2&weights=bf16"
SLOWEST_MEDIAN_MS = 1000.0
"""Far above what is aimed at (100 ms on two cores): a busy machine must not fail the test, a page that hangs must."""
MOST_SHIFT = 0.02
Opened = Callable[..., Any]


def wiggle(page: Any, slider: str, moves: int = 24) -> None:
    """Drag a slider to its end and back by mouse, at the pace of a hand."""
    box = page.locator(f"#slider-{slider}").bounding_box()
    y = box["y"] + box["height"] / 2
    at = page.locator(f"#slider-{slider}").evaluate("e => e.valueAsNumber / Number(e.max)")
    start = box["x"] + 9 + (box["width"] - 18) * at
    page.mouse.move(start, y)
    page.mouse.down()
    for i in range(moves):
        share = i / moves * 2 if i * 2 < moves else 2 - i / moves * 2
        page.mouse.move(box["x"] + 9 + (box["width"] - 18) * share, y)
        page.wait_for_timeout(60)
    page.mouse.up()
    page.wait_for_timeout(1000)
    ready(page)


@pytest.mark.parametrize(("words", "slider"), [(BOOK, "context"), (BOOK, "batch"), (PLAN, "batch"), (PLAN, "context")])
def test_from_input_event_to_redrawn_chart(opened: Opened, words: str, slider: str, capsys: Any) -> None:
    page = opened(words)
    wiggle(page, slider)  # what the server must load is loaded
    page.reload()
    ready(page)
    page.evaluate("performance.clearMeasures()")
    wiggle(page, slider)
    spans = page.evaluate("performance.getEntriesByName('slicewise:drag').map(e => e.duration)")
    assert len(spans) >= 5
    median = statistics.median(spans)
    with capsys.disabled():
        print(f"\ndrag {slider} at {words[:60]}: {len(spans)} redraws, median {median:.0f} ms, max {max(spans):.0f} ms")
    assert median < SLOWEST_MEDIAN_MS


@pytest.mark.parametrize("viewport", [(390, 844), (1280, 900)], ids=["narrow", "wide"])
@pytest.mark.parametrize(("words", "slider"), [(BOOK, "context"), (BOOK, "batch"), (PLAN, "batch"), (PLAN, "context")])
def test_nothing_jumps_while_dragging(opened: Opened, words: str, slider: str, viewport: tuple[int, int]) -> None:
    page = opened(words, viewport={"width": viewport[0], "height": viewport[1]})
    page.evaluate("window.slicewiseShift = 0")
    wiggle(page, slider, moves=40)
    assert page.evaluate("window.slicewiseShift") <= MOST_SHIFT


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(opened: Opened, width: int) -> None:
    for words in (BOOK, PLAN, REFUSED):
        page = opened(words, viewport={"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("words", [PLAN, REFUSED, f"{BOOK}&tour=0.7"], ids=["plan", "refused", "tour"])
def test_no_barrier(opened: Opened, theme: str, width: int, words: str) -> None:
    axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = opened(words, color_scheme=theme, viewport={"width": width, "height": 900})
    assert serious(axe_playwright.Axe(), page) == []
    doors = page.locator(".plan button.door")
    if doors.count():
        doors.first.click()
        page.locator("#sheet .formula").first.wait_for()
        assert serious(axe_playwright.Axe(), page) == []


def serious(axe: Any, page: Any) -> list[str]:
    """The serious violations, each with where it is."""
    found = axe.run(page).response["violations"]
    return [
        f"{violation['id']}: {node['target']} {node.get('failureSummary', '')}"
        for violation in found
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"]
    ]
