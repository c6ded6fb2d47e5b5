"""Who the explorer keeps out: nobody, in either theme, at either width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.browser

BOOK = "?model=llama-3-70b&slice=v5e:4x4&weights=int8&kv=int8&book=true&params=70e9&context=2048"
PLAN = "?model=llama-3-70b&chip=v5e&weights=int8&kv=int8&tpot=50ms"
REFUSED = "?model=llama-3-405b&slice=v5e:2x2&weights=bf16"
Opened = Callable[..., Any]


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
        page.locator("#sheet .exactly code").wait_for()
        assert serious(axe_playwright.Axe(), page) == []


OPENED = {
    "menu": ("#export",),
    "more": ("#form details summary",),
    "paste": ("#paste-open",),
    "models": ("#model",),
    "ledger": (".ledger summary", ".assumed summary"),
    "comparison": ("#compare",),
    "language": ("#language",),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_opens_is_no_barrier(opened: Opened, theme: str) -> None:
    axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    for name, clicks in OPENED.items():
        page = opened(PLAN, color_scheme=theme)
        for selector in clicks:
            page.locator(selector).first.click()
        page.wait_for_timeout(400)
        assert serious(axe_playwright.Axe(), page) == [], name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_about_it_are_no_barrier(browser: Any, address: str, theme: str) -> None:
    axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = browser.new_context(color_scheme=theme, bypass_csp=True).new_page()
    for path in ("/docs", "/api/report?model=llama-3-70b&slice=v5e:4x4"):
        if path == "/docs":
            page.goto(f"{address}{path}")
        else:  # it is sent as a file to keep
            page.set_content(page.request.get(f"{address}{path}").text())
        assert serious(axe_playwright.Axe(), page) == [], path


def serious(axe: Any, page: Any) -> list[str]:
    """The serious violations, each with where it is."""
    found = axe.run(page).response["violations"]
    return [
        f"{violation['id']}: {node['target']} {node.get('failureSummary', '')}"
        for violation in found
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"]
    ]
