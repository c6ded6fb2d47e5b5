"""Take the pictures of the explorer in docs/explorer/: two widths, two themes, and what one does there.

Needs chromium and the dependency group `browser`. Run it from the checkout after a change of the page, look at every
picture, and commit those that changed.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from helpers.browsers import chromium, missing, ready, serving  # noqa: E402  the path is set above

FOLDER = ROOT / "docs" / "explorer"
SIZES = {"wide": {"width": 1280, "height": 1400}, "narrow": {"width": 390, "height": 1400}}
PLAN = "?model=llama-3-70b&chip=v5e&weights=int8&kv=int8&tpot=50ms"
BOOK = "?model=llama-3-70b&slice=v5e:4x4&weights=bf16&kv=bf16&osl=512&book=true&params=70e9"
SHOTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "plan": (PLAN, ()),
    "derivation": (PLAN, (".answer [data-name='step_s']",)),
    "tour": (f"{BOOK}&tour=0.7", ()),
    "refused": ("?model=llama-3-405b&slice=v5e:4x4&weights=bf16", ()),
    "compare": (f"{PLAN}&kept=model%3Dllama-3-70b%26chip%3Dv5e%26weights%3Dbf16%26kv%3Dbf16", ()),
}
BOTH = ("plan",)
"""Shown at both widths in both themes; the others wide and light, or narrow and dark."""


def main() -> None:
    """Write every picture."""
    if lack := missing():
        sys.exit(f"make_screenshots {lack}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with serving() as (address, _), chromium() as browser:
        for name, (words, clicks) in SHOTS.items():
            for size, viewport in SIZES.items():
                for theme in ("light", "dark"):
                    if name in BOTH or (size == "wide") == (theme == "light"):
                        file = FOLDER / f"{name}-{size}-{theme}.png"
                        file.write_bytes(_picture(browser, f"{address}/{words}", viewport, theme, clicks))
                        print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")


def _picture(browser: Any, url: str, viewport: dict[str, int], theme: str, clicks: tuple[str, ...]) -> bytes:
    context = browser.new_context(viewport=viewport, color_scheme=theme, locale="en-US", device_scale_factor=1)
    page = context.new_page()
    page.goto(url)
    ready(page)
    if "tour=" in url:
        page.locator("#tour-panel table").wait_for()
    page.wait_for_timeout(500)
    for selector in clicks:
        page.locator(selector).first.click()
        page.wait_for_timeout(500)
    content = bytes(page.screenshot())
    context.close()
    return smaller(content)


def smaller(png: bytes) -> bytes:
    """The same picture, packed more tightly. In full colour: fewer would shift the small areas of a resource."""
    packed = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(packed, format="PNG", optimize=True)
    return packed.getvalue()


if __name__ == "__main__":
    main()
