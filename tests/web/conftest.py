"""A server and a browser for the tests of the page, started once each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from helpers.browsers import Watch, chromium, missing, ready, serving


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with serving() as (found, _):
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if lack := missing():
        pytest.skip(lack)
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the explorer at some words; when the test ends, no page may have erred or asked beyond this machine."""
    watched: list[Watch] = []
    contexts: list[Any] = []

    def open_page(words: str = "", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-US", **options})
        contexts.append(context)
        page = context.new_page()
        watched.append(Watch(page))
        page.goto(f"{address}/{words}")
        ready(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [error for watch in watched for error in watch.errors] == []
    assert [url for watch in watched for url in watch.foreign] == []
