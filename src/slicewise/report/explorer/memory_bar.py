"""One chip's memory as a bar: what lies on it, where what is granted ends, what breaks and what would fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.slices import standard_slices
from slicewise.costs.memory import HALF_BYTE
from slicewise.planner.deployment import Deployment
from slicewise.planner.ledger import LEDGER_LINE, MOST, LedgerLine, ledger_lines
from slicewise.report.explorer.found import Found
from slicewise.report.explorer.numbers import ANSWER, Number, number
from slicewise.spec.precision import NARROWER

_SEGMENTS = (
    ("params", "weights", "weight_bytes_per_chip"),
    ("kv", "KV cache", "held_kv_bytes_per_chip"),
    ("activations", "activations", "activation_bytes_per_chip"),
)
_FREE, _GRANTED, _TOTAL = "unused_bytes_per_chip", "granted_bytes_per_chip", "total_bytes_per_chip"
_EXCESS = "excess_bytes_per_chip"
_LEAST_SHARE = 0.005
"""What is less rounds to nothing."""
Segment = dict[str, Any]


def memory_bar(found: Found) -> dict[str, Any]:
    """The bar of the fullest chip, its ledger, and where it overflows what would fit."""
    deployment, batch = found.deployment, found.step.batch
    names = [name for _, _, name in _SEGMENTS]
    values = {
        name: float(value)
        for name, value in deployment.evaluate([*names, _FREE, _GRANTED, _TOTAL], batch=batch).items()
    }
    length = max(values[_GRANTED], values[_TOTAL])
    segments = _filled(values)
    over = values[_FREE] < -HALF_BYTE
    return {
        "slice": deployment.slice.name,
        "n_chips": deployment.slice.n_chips,
        "fits": found.step.fits,
        "granted": number(_GRANTED, values[_GRANTED], door=ANSWER),
        "total": number(_TOTAL, values[_TOTAL], door=ANSWER),
        "hbm": number("hbm_bytes_per_chip", deployment.hbm_bytes_per_chip, door=ANSWER),
        "free": number(_FREE, values[_FREE], door=ANSWER, resource="overflow" if over else "free"),
        "segments": [*segments, *_rest(values)],
        "limit": values[_GRANTED] / length,
        "breaks": _breaks(values) if over else None,
        "reason": found.step.reason,
        "nearest": _nearest(found) if over else [],
        "lines": _lines(deployment, batch),
    }


def _filled(values: dict[str, float]) -> list[Segment]:
    segments, start = [], 0.0
    for resource, label, name in _SEGMENTS:
        if values[name] > HALF_BYTE:
            shown = number(name, values[name], door=ANSWER, resource=resource)
            segments.append(_segment(label, shown, start, values))
            start += values[name]
    return segments


def _rest(values: dict[str, float]) -> list[Segment]:
    """What is free, or what is too much and lies over the end of what is granted."""
    free = values[_FREE]
    if free > HALF_BYTE:
        return [_segment("free", number(_FREE, free, door=ANSWER, resource="free"), values[_TOTAL], values)]
    if free < -HALF_BYTE:
        return [
            _segment("too much", number(_EXCESS, -free, door=ANSWER, resource="overflow"), values[_GRANTED], values)
        ]
    return []


def _segment(label: str, shown: Number | None, start: float, values: dict[str, float]) -> Segment:
    assert shown is not None, "a segment has a size"
    length, n_bytes = max(values[_GRANTED], values[_TOTAL]), shown["value"]
    return {
        "resource": shown["resource"],
        "label": label,
        "number": shown,
        "start": start / length,
        "width": n_bytes / length,
        "share_text": _share(n_bytes / values[_GRANTED]) if values[_GRANTED] > 0 else "",
    }


def _share(share: float) -> str:
    """A share of what is granted: what is there is never nothing.

    >>> _share(0.274), _share(0.001), _share(1.3)
    ('27 %', '<1 %', '130 %')
    """
    return f"{share:.0%}".replace("%", " %") if share >= _LEAST_SHARE else "<1 %"


def _breaks(values: dict[str, float]) -> str:
    """The first part that does not fit beside those before it."""
    used = 0.0
    for _, label, name in _SEGMENTS:
        used += values[name]
        if used > values[_GRANTED] + HALF_BYTE:
            return label
    return _SEGMENTS[-1][1]


def _nearest(found: Found) -> list[dict[str, Any]]:
    """One change at a time that makes it fit: fewer sequences, a shorter context, a larger slice, narrower formats."""
    step, deployment, batch = found.step, found.deployment, found.step.batch
    offers: list[tuple[str, dict[str, Any]]] = []
    if step.max_batch:
        offers.append((f"{step.max_batch:,} sequences on {step.slice}", {"batch": step.max_batch}))
    if deployment.ranks is None:
        larger = (one for one in standard_slices(deployment.slice.chip) if one.n_chips > deployment.slice.n_chips)
        fits = (one for one in larger if deployment.with_(slice=one).value("max_batch") >= batch)
        offers += [(f"{one.n_chips} chips ({one.name})", {"slice": [one.name]}) for one in list(fits)[:1]]
    tokens = float(deployment.value("max_context_tokens", batch=batch))
    if 1 <= tokens < found.question.workload.capacity_context_tokens:
        offers.append((f"{tokens:,.0f} tokens of context", {"context": int(tokens)}))
    for word, now in (("weights", deployment.precision.weights), ("kv", deployment.precision.kv)):
        for dtype in NARROWER.get(now, ())[:1]:
            change = {"weights": dtype, "as_stored": False} if word == "weights" else {"kv": dtype}
            precision = replace(deployment.precision, **change)
            if deployment.with_(precision=precision).value("max_batch") >= batch:
                what = "weights" if word == "weights" else "cache"
                offers.append((f"{dtype} {what}", {word: [dtype]}))
    return [{"text": text, "words": words} for text, words in offers]


def _lines(deployment: Deployment, batch: int) -> list[dict[str, Any]]:
    return [
        {
            "label": line.name,
            "number": _line_number(line),
            "most": _line_number(line, most=True) if line.most_bytes != line.n_bytes else None,
            "certainty": line.certainty,
            "why": line.why,
            "counted": line.counted,
        }
        for line in ledger_lines(deployment, batch)
    ]


def _line_number(line: LedgerLine, *, most: bool = False) -> Number | None:
    name = line.quantity or f"{LEDGER_LINE}{line.name}{MOST if most else ''}"
    value = line.most_bytes if most else line.n_bytes
    return number(name, value, door=ANSWER, resource=_resource(line.name), label="n_bytes")


def _resource(name: str) -> str | None:
    found = {"weights": "params", "KV cache": "kv", "logits": "activations", "decode activations": "activations"}
    return {**found, "free": "free"}.get(name)
