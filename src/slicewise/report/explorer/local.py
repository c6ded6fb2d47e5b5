"""What a page that is handed on says of files of the machine that made it: their names, and not where they lie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from slicewise.spec.model import Model

_READ_FROM = "read from "


def without_folders(model: Model) -> Model:
    """A model whose facts name the file that it was read from without its folder."""
    told = model.provenance.get("")
    if told is None or told.source is not None or not told.printed.startswith(_READ_FROM):
        return model
    origin = told.printed.removeprefix(_READ_FROM)
    facts = {name: replace(fact, printed=_without(fact.printed, origin)) for name, fact in model.provenance.items()}
    notes = tuple(_without(note, origin) for note in model.notes)
    return replace(model, provenance=MappingProxyType(facts), notes=notes)


def file_name(text: str) -> str:
    """What names a file or a folder of this machine, by its own name; other texts as they are.

    >>> file_name("llama-3-70b"), file_name("Qwen/Qwen3-8B")
    ('llama-3-70b', 'Qwen/Qwen3-8B')
    """
    try:
        path = Path(text).expanduser()
        return path.resolve().name if path.exists() and text.strip() else text
    except (OSError, RuntimeError, ValueError):
        return text


def _without(text: str, origin: str) -> str:
    """A text with a file by its own name, and whatever lies beside it."""
    path = Path(origin)
    text = text.replace(origin, path.name)
    for folder in {str(path.parent), str(path.parent.resolve())}:
        text = text.replace(f"{folder}/", "") if len(folder) > 1 and Path(folder).is_absolute() else text
    return text
