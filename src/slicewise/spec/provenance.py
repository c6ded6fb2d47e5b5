"""Where a fact comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A document that facts were read from."""

    key: str
    title: str
    url: str
    date: str

    def __str__(self) -> str:
        return f"{self.title} ({self.url}, read {self.date})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """One fact as its source prints it.

    Attributes:
        printed: the figure with its unit as the source prints it, or the words that set it.
        source: the document; None where the user or a convention set the value.
        note: what a reader should know, such as another source's figure.
    """

    printed: str
    source: Source | None = None
    note: str = ""

    def __str__(self) -> str:
        text = f"{self.printed}: {self.source}" if self.source else self.printed
        return f"{text}; {self.note}" if self.note else text


def chosen(printed: str, note: str = "") -> Provenance:
    """Provenance of a value that the user or a convention set."""
    return Provenance(printed=printed, note=note)
