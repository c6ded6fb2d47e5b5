"""A Chromium that reaches nothing but this machine, and the explorer that it opens."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

CHROMIUM = os.environ.get("CHROMIUM", shutil.which("chromium") or "/usr/bin/chromium")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 16,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
"""A config.json to paste."""
_PATIENCE_S = 30.0


def missing() -> str | None:
    """What the browser tests lack here, in a sentence; None where nothing is missing."""
    if not Path(CHROMIUM).exists():
        return "needs chromium: apt-get install chromium"
    absent = [name for name in ("playwright", "fastapi", "vl_convert") if importlib.util.find_spec(name) is None]
    return f"needs {', '.join(absent)}: pip install --group browser" if absent else None


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """The explorer in a process of its own, as `slicewise web` starts it; gives its address and the process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "slicewise", "web", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            _wait_for(f"{address}/static/vega.js", server)
            yield address, server.pid
        finally:
            server.terminate()


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    """Until the page's largest file is there: it takes seconds to make, once."""
    give_up = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up:
        if server.poll() is not None:
            raise RuntimeError(f"slicewise web ended with {server.returncode}")
        try:
            with urlopen(address, timeout=_PATIENCE_S) as answer:
                answer.read()
            return
        except URLError:
            time.sleep(0.1)
    raise TimeoutError(f"{address} does not answer")


class Watch:
    """What a page says on its console and asks of the network while it is open."""

    def __init__(self, page: Any) -> None:
        self.errors: list[str] = []
        self.foreign: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        # A refusal of the server (422) is an answer of the page, which Chromium reports as an error all the same.
        if message.type in {"error", "warning"} and "status of 422" not in message.text:
            self.errors.append(message.text)

    def _asked(self, request: Any) -> None:
        where = urlsplit(request.url)
        if where.scheme not in {"data", "blob"} and where.hostname != "127.0.0.1":
            self.foreign.append(request.url)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser with an empty profile of its own."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  an optional group

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS), headless=True)
        try:
            yield browser
        finally:
            browser.close()


def until(page: Any, condition: str) -> None:
    """Until an expression is true of the page; Playwright's own way evaluates text there, which its policy forbids."""
    give_up = time.monotonic() + _PATIENCE_S
    while not page.evaluate(condition):
        if time.monotonic() > give_up:
            raise TimeoutError(f"{condition} does not become true at {page.url}")
        page.wait_for_timeout(20)


def ready(page: Any) -> None:
    """Until the answer to the last question is drawn."""
    until(page, "document.documentElement.dataset.ready === 'true'")
