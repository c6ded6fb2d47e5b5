"""Numbers as the page shows them: three digits, the exact value for who points at it, and where its derivation is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slicewise.derive import Derivation
from slicewise.planner.figures import Figures
from slicewise.report.explorer.resources import resource_of
from slicewise.units import brief, plain, show, show_gib, unit_of

Number = dict[str, Any]
"""name, value, text, figure and suffix (the parts of the text), exact, unit, resource, door."""

DIGITS, EXACT_DIGITS = 3, 8
ANSWER, SERVERS, FLEET, PLAN, KNEE, MOST = "answer", "servers", "fleet", "plan", "knee", "most"
"""The doors: under which question the derivation of a number is found."""
_SUFFIXES = {
    "tokens_per_s": "tokens/s",
    "tokens_per_s_per_chip": "tokens/s per chip",
    "prefill_tokens_per_s_per_chip": "tokens/s per chip",
    "requests_per_s_per_chip": "requests/s per chip",
    "requests_per_s_shared": "requests/s",
    "prefill_requests_per_s": "prompts/s",
    "decode_requests_per_s": "requests/s",
    "context_tokens": "tokens",
    "max_context_tokens": "tokens",
    "prompt_tokens": "tokens",
    "output_tokens": "tokens",
}


def number(
    name: str, value: Any, *, door: str | None = None, resource: str | None = None, label: str | None = None
) -> Number | None:
    """A number for the page; None where there is none.

    Args:
        name: the quantity, by which its derivation is found.
        value: in base units.
        door: under which question the derivation is found; None for no derivation.
        resource: its colour; None for that of the quantity.
        label: the quantity by whose unit and resource it is shown, where that is another name.
    """
    if value is None:
        return None
    unit = unit_of(label or name)
    suffix = _SUFFIXES.get(label or name)
    text = f"{brief(value)} {suffix}" if suffix else brief(value, unit)
    figure, _, rest = text.partition(" ")
    return {
        "name": name,
        "value": plain(value),
        "text": text,
        "figure": figure,
        "suffix": rest,
        "exact": exact(value, unit, suffix or ""),
        "unit": unit,
        "resource": resource or resource_of(label or name),
        "door": door,
    }


def every_number(part: Any) -> Iterator[Number]:
    """Every number within a part of a document, in its order."""
    if isinstance(part, dict):
        if "door" in part and "figure" in part:
            yield part
            return
        part = part.values()
    elif not isinstance(part, list):
        return
    for value in part:
        yield from every_number(value)


def exact(value: float, unit: str, suffix: str = "") -> str:
    """A number in as many digits as anybody reads."""
    if unit == "B":
        return show_gib(value)
    if unit == "USD":
        return f"${value:,.6f}"
    return f"{show(value, '', EXACT_DIGITS)} {suffix}" if suffix else show(value, unit, EXACT_DIGITS)


def row(text: str, found: Number | None, figures: Figures | None = None, hover: str = "") -> dict[str, Any]:
    """A row of a table: a number, and beside it the bound and the range where they are told."""
    ends: dict[str, Any] = dict.fromkeys(("bound", "low", "high"))
    if found is not None and figures is not None:
        name = found["name"]
        ends = {
            end: number(
                f"{name}:{end}", getattr(figures, end), door=found["door"], resource=found["resource"], label=name
            )
            for end in ends
        }
    return {"label": text, "hover": hover, "number": found, **ends}


def shown(derivation: Derivation) -> dict[str, Any]:
    """A derivation as JSON-ready data, with each value as the page shows it."""
    found = derivation.to_dict()
    found.pop("parts", None)
    value = found["value"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        as_number = _in_unit(derivation.name, value, derivation.unit)
        found |= {key: as_number[key] for key in ("text", "figure", "suffix", "exact")}
    elif isinstance(derivation.value, tuple | list):
        found["text"] = derivation.origin
    elif value is not None:
        found["text"] = str(value)
    found["resource"] = resource_of(derivation.name)
    if derivation.parts:
        found["parts"] = [shown(part) for part in derivation.parts]
    return found


def _in_unit(name: str, value: float, unit: str) -> Number:
    """A number in the unit that its formula states, which a name need not say."""
    text = brief(value, unit)
    figure, _, rest = text.partition(" ")
    return {"name": name, "text": text, "figure": figure, "suffix": rest, "exact": exact(value, unit)}
