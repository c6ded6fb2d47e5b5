"""Click any number: every number of the page is a door, and behind it lies the derivation of that number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from helpers.browsers import ready, until

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
LABELS = "[...each.querySelectorAll('.mark-text.role-axis-label text')].map((text) => text.textContent).sort()"
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
    exact = door.get_attribute("title").split()[0]
    door.click()
    page.locator("#sheet .exactly code").wait_for()
    assert exact in page.locator("#sheet .exactly").inner_text().split(), door.get_attribute("data-name")
    assert page.locator("#sheet-name").inner_text() != page.locator("#sheet .exactly code").inner_text()  # it says what
    page.keyboard.press("Escape")
    page.locator("#sheet").wait_for(state="hidden")


def test_a_name_that_stands_for_two_quantities_leads_to_the_nearer(opened: Opened) -> None:
    """Of a ratio of two slices each half has a throughput of its own."""
    page = opened(f"{BOOK}&tour=0.8")
    row = page.locator("#tour-panel tbody[data-quantity='throughput a chip over that on a 4x4, bf16 on 4x8']")
    row.locator(".ours .door").click()
    page.locator("#sheet li .door").nth(1).click()
    part = page.locator("#sheet li", has=page.locator("code", has_text="tokens_per_s"))
    told = part.locator(".door").inner_text()
    part.locator(".door").click()
    assert page.locator("#sheet .value").inner_text().split() == told.split()
    assert "2,209" in told


def test_a_pipelines_step_is_reached(opened: Opened) -> None:
    page = opened("?model=llama-3-70b&slice=h100:8&tp=2&pp=4&batch=16")
    page.locator(".answer [data-name='tokens_per_s']").click()
    page.locator("#sheet li", has=page.locator("code", has_text="step_s")).locator(".door").click()
    assert page.locator("#sheet .formula").count() == 2
    assert page.locator("#sheet li").count() > 3


def test_an_open_derivation_of_another_plan_stays_with_it(opened: Opened) -> None:
    """Whatever its rank: the door is that of a place."""
    page = opened(PAGES["plan"])
    page.locator(".candidates tr", has_text="v5e:4x4").locator("[data-name='step_s']").click()
    page.locator("#sheet .exactly code").wait_for()
    page.locator(".more-controls summary").click()
    page.locator("#word-objective").select_option("throughput")
    ready(page)
    page.wait_for_timeout(500)
    row = page.locator(".candidates tr", has_text="v5e:4x4").locator("[data-name='step_s']")
    assert page.locator("#sheet .value").inner_text() == row.inner_text()


def test_a_kept_plan_that_is_let_go_draws_nothing_any_more(opened: Opened) -> None:
    """Comparing is switched off while the kept answer is under way."""
    page = opened(PAGES["plan"])
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route("**/api/explore?model=llama-3-8b*", hold)
    page.evaluate("""() => {
        history.pushState(null, "", location.search + "&kept=" + encodeURIComponent("model=llama-3-8b&chip=v6e"));
        dispatchEvent(new PopStateEvent("popstate"));
    }""")
    until(page, "document.querySelectorAll('.plan').length === 2")
    page.locator("#compare").click()
    until(page, "document.querySelectorAll('.plan').length === 1")
    for route in held:
        route.continue_()
    page.wait_for_timeout(800)
    assert held
    assert page.locator(".plan").count() == 1
    assert page.locator("#note").inner_text() == ""


def test_two_plans_are_drawn_on_the_same_axes(opened: Opened) -> None:
    other = "model%3Dllama-3-70b%26chip%3Dh100%26weights%3Dbf16%26kv%3Dbf16"
    page = opened(f"{PAGES['plan']}&kept={other}")
    until(page, "document.querySelectorAll('.chart svg').length === 4")

    def axes() -> list[list[str]]:
        return page.locator(".chart").evaluate_all(f"(all) => all.map((each) => {LABELS})")

    page.wait_for_timeout(300)
    kept_frontier, kept_breakdown, frontier, breakdown = axes()
    assert kept_frontier == frontier
    assert kept_breakdown == breakdown
    page.locator("#compare").click()
    page.wait_for_timeout(300)
    assert axes() not in ([frontier, breakdown], [])
    alone = opened(PAGES["plan"]).locator(".chart")
    assert axes() == alone.evaluate_all(f"(all) => all.map((each) => {LABELS})")
