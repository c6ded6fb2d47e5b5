"""Tables that scripts put into their places in a page of the docs."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/calibration.md"


def placed(page: str, made: Mapping[str, str]) -> str:
    """A page with tables in their places, each between a comment with its name and one that says end."""
    for name, table in made.items():
        page, count = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda match, table=table: f"{match[1]}\n{table}\n\n{match[2]}",  # type: ignore[misc]
            page,
            flags=re.DOTALL,
        )
        if count != 1:
            sys.exit(f"the page has {count} places for {name}; it must have one")
    return page
