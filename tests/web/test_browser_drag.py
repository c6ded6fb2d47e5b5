"""How the explorer behaves under the hand: speed of dragging, and nothing that jumps. One page at a time."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest

from helpers.browsers import ready

pytestmark = pytest.mark.browser

BOOK = "?model=llama-3-70b&slice=v5e:4x4&weights=int8&kv=int8&book=true&params=70e9&context=2048"
PLAN = "?model=llama-3-70b&chip=v5e&weights=int8&kv=int8&tpot=50ms"
SLOWEST_MEDIAN_MS = 1000.0
"""Far above what is aimed at (100 ms on two cores): a busy machine must not fail the test, a page that hangs must."""
MOST_SHIFT = 0.02
NARROW, WIDE = (390, 844), (1280, 900)
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


@pytest.mark.parametrize(("words", "slider"), [(BOOK, "context"), (PLAN, "batch"), (PLAN, "context")])
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


@pytest.mark.parametrize(
    ("words", "slider", "viewport"),
    [(BOOK, "context", WIDE), (BOOK, "batch", NARROW), (PLAN, "batch", WIDE), (PLAN, "context", NARROW)],
)
def test_nothing_jumps_while_dragging(opened: Opened, words: str, slider: str, viewport: tuple[int, int]) -> None:
    page = opened(words, viewport={"width": viewport[0], "height": viewport[1]})
    page.evaluate("window.slicewiseShift = 0")
    wiggle(page, slider, moves=40)
    assert page.evaluate("window.slicewiseShift") <= MOST_SHIFT
