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

    @property
    def words(self) -> str:
        """The figure as printed, with its note."""
        return f"{self.printed} ({self.note})" if self.note else self.printed

    @property
    def document(self) -> str:
        """The source; "" where the user or a convention set the value."""
        return str(self.source) if self.source else ""

    @property
    def origin(self) -> tuple[str, str]:
        """Words and document."""
        return self.words, self.document

    def __str__(self) -> str:
        return f"{self.words}: {self.source}" if self.source else self.words


def chosen(printed: str, note: str = "") -> Provenance:
    """Provenance of a value that the user or a convention set."""
    return Provenance(printed=printed, note=note)
