"""The keys of each answer, read off an example of it: what each is, in which unit, and of which kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from slicewise.errors import SlicewiseError
from slicewise.planner.flags import listed
from slicewise.units import unit_of
from slicewise.web.questions import COMMANDS, Question, questions, result_of
from slicewise.web.words import Asked

EXAMPLES = {
    "model": "llama-3-70b", "slice": "v5e:4x4", "chip": "v5e", "weights": "int8", "kv": "int8", "compute": "bf16",
    "isl": "8192", "osl": "512", "context": "8192", "batch": "32", "tpot": "50ms", "ttft": "2s", "rate": "3",
    "objective": "cost", "price": "1.2", "prefill_slice": "v5e:4x4", "network": "50GB/s", "params": "70e9",
    "hbm": "16GB", "memory_fraction": "0.95", "mfu": "0.4", "ici": "auto", "split": "whole", "kv_split": "batch",
    "view": "expected", "engine": "vllm", "reserve": "1GiB", "tp": "8", "pp": "1", "dp": "1", "ep": "1",
    "names": "v5e", "command": "step", "name": "step_s", "question": "0.7",
}  # fmt: skip
"""A value of each word that works."""
_ASKED = {
    "plan": ("model", "chip", "weights", "kv"),
    "step": ("model", "slice", "weights", "kv", "batch", "context"),
    "prefill": ("model", "slice", "isl"),
    "memory": ("model", "weights", "kv", "context"),
    "limits": ("model", "slice"),
    "frontier": ("model", "slice", "context"),
    "disaggregate": ("model", "slice", "rate"),
    "compare": ("names", "model"),
    "explain": ("command", "name", "model", "slice"),
    "explore": ("model", "slice", "weights", "kv", "context"),
    "report": ("model", "slice", "weights", "kv"),
    "book": ("question",),
}
"""The words of each example."""
_EXPLAINED = ("name", "value", "unit", "meaning", "formula", "numbers", "computed_by", "origin", "source", "parts")
"""The keys of a derivation: which of them one has depends on what it derives."""
_KINDS = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of an answer.

    Attributes:
        name: as it stands in the JSON.
        kind: boolean, number, string, array or object; "" where the example has none.
        unit: base unit; "" for a count, and for what is no number.
        meaning: what it is; "" where no formula says so.
    """

    name: str
    kind: str
    unit: str
    meaning: str


def example_of(question: Question) -> dict[str, str]:
    """The words of an example of a question."""
    return {word: EXAMPLES[word] for word in _ASKED.get(question.name, ())}


@cache
def keys_of(name: str) -> tuple[Key, ...]:
    """The keys of the answer of the question of that name: of each item, where it is a list. None of a file."""
    question = questions()[name]
    if question.headers:
        return ()
    if name == "explain":
        return tuple(Key(name=key, kind="", unit="", meaning="") for key in _EXPLAINED)
    words = {word: listed(text) if question.offered[word] else text for word, text in example_of(question).items()}
    asked = Asked(words=words)
    found = json.loads(question.render(asked))
    first = found[0] if question.is_list else found
    result = result_of(name, asked) if name in COMMANDS else None
    return tuple(_key(key, value, result) for key, value in first.items())


def _key(name: str, value: Any, result: Any) -> Key:
    kind = _KINDS.get(type(value), "")
    unit = unit_of(name) if kind == "number" else ""
    return Key(name=name, kind=kind, unit=unit, meaning=_meaning(name, result) if kind == "number" else "")


def _meaning(name: str, result: Any) -> str:
    """What a number is, in the words of its derivation."""
    if result is None:
        return ""
    try:
        found = result.explain(name)
    except SlicewiseError:
        return ""
    return str(found.meaning)
