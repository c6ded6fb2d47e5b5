"""Documents as GitHub Markdown."""

from __future__ import annotations

from slicewise.report.document import Document, Heading, Items, Line, Table


def to_markdown(document: Document) -> str:
    """The document in GitHub Markdown."""
    return "\n\n".join(_block(block) for block in document if _block(block)) + "\n"


def _block(block: Heading | Line | Table | Items) -> str:
    if isinstance(block, Heading):
        return f"**{_escaped(block.text)}**"
    if isinstance(block, Line):
        return _escaped(block.text)
    if isinstance(block, Items):
        lines = [f"- {_escaped(item)}" for item in block.items]
        return "\n".join([f"**{_escaped(block.title)}**", "", *lines]) if lines else ""
    rule = [":--" if index in block.left else "--:" for index in range(len(block.header))]
    rows = [_row([_escaped(name) for name in block.header]), _row(rule)]
    rows += [_row([_escaped(cell) for cell in row]) for row in block.rows]
    title = [f"**{_escaped(block.title)}**", ""] if block.title else []
    return "\n".join([*title, *rows])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("\n", "<br>")
