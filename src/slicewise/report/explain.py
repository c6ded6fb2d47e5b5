"""A derivation as text: each quantity once, its formula, the numbers put in, and facts with their sources."""

from __future__ import annotations

from slicewise.derive import Derivation
from slicewise.units import show

_INDENT = "  "


def explain_lines(derivation: Derivation) -> list[str]:
    """The derivation as lines; documents are numbered and listed at the end."""
    documents: dict[str, int] = {}
    lines = _node(derivation, 0, set(), documents)
    if documents:
        lines += ["", "Sources"]
        lines += [f"{_INDENT}[{number}] {document}" for document, number in documents.items()]
    return lines


def _node(node: Derivation, depth: int, seen: set[tuple[str, str]], documents: dict[str, int]) -> list[str]:
    pad = _INDENT * depth
    if node.seen or (not node.formula and not node.parts and (node.name, str(node.value)) in seen):
        return []
    seen.add((node.name, str(node.value)))
    if not node.formula:
        return [*_fact(node, pad, documents), *_parts(node, depth, seen, documents)]
    lead = f"{pad}{node.name} = "
    result = show(node.value, node.unit)
    lines = [f"{lead}{node.formula}"]
    if node.numbers not in ("", node.formula, result):
        lines.append(f"{' ' * (len(lead) - 2)}= {node.numbers}")
    meaning = f"    {node.meaning}" if node.meaning else ""
    lines.append(f"{' ' * (len(lead) - 2)}= {result}{meaning}")
    return lines + _parts(node, depth, seen, documents)


def _parts(node: Derivation, depth: int, seen: set[tuple[str, str]], documents: dict[str, int]) -> list[str]:
    if node.value is None and not node.formula:
        # Several answers side by side: a fact of one is another's under the same name.
        return [line for part in node.parts for line in _node(part, depth + 1, set(), documents)]
    return [line for part in node.parts for line in _node(part, depth + 1, seen, documents)]


def _fact(node: Derivation, pad: str, documents: dict[str, int]) -> list[str]:
    cited = f" [{documents.setdefault(node.source, len(documents) + 1)}]" if node.source else ""
    if isinstance(node.value, tuple | list):
        rows = [f"{pad}{_INDENT}{row}" for row in node.origin.split("\n")]
        return [f"{pad}{node.name}:{cited}", *rows]
    origin = f"    {node.origin}" if node.origin else ""
    if node.value is None:
        return [f"{pad}{node.name}{origin}"]
    if origin.strip() == str(node.value):
        origin = ""
    value = node.value if isinstance(node.value, int | float) else None
    text = str(node.value) if value is None else show(value, node.unit)
    return [f"{pad}{node.name} = {text}{origin}{cited}"]
