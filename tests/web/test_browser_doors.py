"""Click any number: every number of the page is a door, and behind it lies the derivation of that number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.browser

BOOK = "?model=llama-3-70b&slice=v5e:4x4&weights=int8&kv=int8&book=true&params=70e9&context=2048"
PAGES = {
    "plan": "?model=llama-3-70b&chip=v5e&weights=int8&kv=int8",
    "rate": "?model=llama-3-70b&slice=v5p:2x2x2&rate=3&tpot=80ms",
    "too large": "?model=llama-3-70b&slice=v5e:4x4&weights=int8&kv=int8&batch=500",
    "too slow": "?model=llama-3-70b&slice=v5e:4x4&tpot=1ms",
    "nothing fits": "?model=llama-3-405b&slice=v5e:2x2&weights=bf16",
    "experts": "?model=qwen3-30b-a3b-2507&slice=h100:8&prefill_slice=h200:8",
    "engine": "?model=llama-3-8b&slice=h100:1&engine=vllm",
    "book": BOOK,
}
EVERY = 6
"""Of the doors so many apart are opened: one of each row, and of each column in turn."""
Opened = Callable[..., Any]


def unfolded(page: Any) -> Any:
    page.evaluate("document.querySelectorAll('main details').forEach((each) => (each.open = true))")
    return page


@pytest.mark.parametrize("words", PAGES.values(), ids=PAGES.keys())
def test_every_number_is_a_door(opened: Opened, words: str) -> None:
    page = unfolded(opened(words))
    bare = page.locator("main .num:not(.door):not(.none)")
    assert bare.all_inner_texts() == []
    assert page.locator("main .num.door").count() >= 15


@pytest.mark.parametrize("name", ["plan", "too large", "experts"])
def test_behind_a_door_is_its_number(opened: Opened, name: str) -> None:
    page = unfolded(opened(PAGES[name]))
    doors = page.locator("main .num.door")
    for at in range(0, doors.count(), EVERY):
        opens_to_its_value(page, doors.nth(at))


def test_our_numbers_of_the_tour_are_doors(opened: Opened) -> None:
    page = opened(f"{BOOK}&tour=0.8")
    ours = page.locator("#tour-panel .ours")
    ours.first.wait_for()
    assert ours.count() == page.locator("#tour-panel .ours .num.door").count()
    for at in range(0, ours.count(), 3):
        opens_to_its_value(page, ours.nth(at).locator(".door"))


def opens_to_its_value(page: Any, door: Any) -> None:
    figure = door.locator(".figure").inner_text()
    door.click()
    page.locator("#sheet .exactly code").wait_for()
    assert figure in page.locator("#sheet .value").inner_text().split("\u00a0"), door.get_attribute("data-name")
    assert page.locator("#sheet-name").inner_text() != page.locator("#sheet .exactly code").inner_text()  # it says what
    page.keyboard.press("Escape")
    page.locator("#sheet").wait_for(state="hidden")


def test_two_plans_are_drawn_on_the_same_axes(opened: Opened) -> None:
    other = "model%3Dllama-3-70b%26chip%3Dh100%26weights%3Dbf16%26kv%3Dbf16"
    page = opened(f"{PAGES['plan']}&kept={other}")
    page.wait_for_function("document.querySelectorAll('.chart svg').length === 4")

    def axes() -> list[list[str]]:
        labels = "[...each.querySelectorAll('.mark-text.role-axis-label text')].map((text) => text.textContent).sort()"
        return page.locator(".chart").evaluate_all(f"(all) => all.map((each) => {labels})")

    page.wait_for_timeout(300)
    kept_frontier, kept_breakdown, frontier, breakdown = axes()
    assert kept_frontier == frontier
    assert kept_breakdown == breakdown
    page.locator("#compare").click()
    page.wait_for_timeout(300)
    assert axes() != [frontier, breakdown]
