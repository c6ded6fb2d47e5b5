"""What the compiler said, kept on disk by content: the same program for the same slice is compiled once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

FORMAT = 2
"""Raised when what is kept changes its form."""


def folder() -> Path:
    """Where results are kept: SLICEWISE_CACHE, or below the user's cache folder."""
    own = os.environ.get("SLICEWISE_CACHE")
    if own:
        return Path(own) / "verify"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "slicewise" / "verify"


def key_of(content: Any) -> str:
    """The name of a result: a digest of what was compiled, and of the code that made and read it."""
    text = json.dumps([FORMAT, content, _code()], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def load(key: str) -> dict[str, Any] | None:
    """A result that was kept; None where there is none, or it cannot be read."""
    try:
        kept: dict[str, Any] = json.loads((folder() / f"{key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):  # a home that is not known is a RuntimeError
        return None
    return kept


def save(key: str, result: dict[str, Any]) -> None:
    """Keep a result. A folder that cannot be written costs a compilation next time, no more."""
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=place, suffix=".part", delete=False, encoding="utf-8") as part:
            json.dump(result, part)
        Path(part.name).replace(place / f"{key}.json")
    except (OSError, RuntimeError):
        return


def _code() -> str:
    """A digest of what declares arrays, of the programs and of what reads them."""
    digest = hashlib.sha256()
    for package in ("slicewise.spec", "slicewise.program", "slicewise.verify"):
        for file in sorted(files(package).iterdir(), key=lambda each: each.name):
            if file.name.endswith(".py"):
                digest.update(file.name.encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()
