"""Conventions: how memory is granted, how the network and the split are counted, which view decides."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from slicewise.errors import InputError

CHOICES: dict[str, tuple[str, ...]] = {
    "ici": ("auto", "ring", "none"),
    "split": ("whole", "ideal"),
    "view": ("roofline", "overlapped", "serial", "expected"),
    "kv_split": ("batch", "copy"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """How things are counted.

    Attributes:
        ici: auto (rings and lines from the slice), ring (the book: full rings, no hops, no AllToAll) or none.
        split: whole sequences (the fullest chip decides) or ideal fractions.
        kv_split: what the chips beyond the KV heads do: split the batch, or hold a copy of the cache each.
        view: which step time decides: roofline, overlapped, serial or expected.
        memory_fraction: share of HBM that may be used.
        hbm_bytes_per_chip: HBM of a chip; None for what the catalog says is usable. [B]
        reserve_bytes_per_chip: what an engine keeps of what is granted, beside weights and cache. [B]
        nominal_hbm: take the nominal HBM of the book instead of the usable.
        activations: count peak activations of a decode step.
        prefill_attention: count attention's FLOPs in prefill.
        prompt_is_context: count memory and bandwidth at S = T, without the output tokens.
        book: the book's conventions were asked for.
    """

    ici: str = "auto"
    split: str = "whole"
    kv_split: str = "batch"
    view: str = "overlapped"
    memory_fraction: float = 0.95
    hbm_bytes_per_chip: float | None = None
    reserve_bytes_per_chip: float = 0.0
    nominal_hbm: bool = False
    activations: bool = True
    prefill_attention: bool = True
    prompt_is_context: bool = False
    book: bool = False


BOOK = Conventions(
    ici="ring",
    split="ideal",
    memory_fraction=1.0,
    nominal_hbm=True,
    activations=False,
    prefill_attention=False,
    prompt_is_context=True,
    book=True,
)
"""The conventions of chapter 8, all at once."""


def conventions(*, book: bool, **given: Any) -> Conventions:
    """The default or the book's conventions, with what was given outright (None: not given).

    Raises:
        InputError: a word that is not offered.
    """
    base = BOOK if book else Conventions()
    values = {f.name: getattr(base, f.name) for f in fields(Conventions)}
    for name, value in given.items():
        if value is None:
            continue
        if name in CHOICES and not (isinstance(value, str) and value in CHOICES[name]):
            flag = name.replace("_", "-")
            raise InputError(f"--{flag} '{value}' is not offered; choose {', '.join(CHOICES[name])}")
        values[name] = value
    if book and values["view"] == "expected":
        raise InputError("--book shows bounds only; leave out --view expected, or --book")
    if values["hbm_bytes_per_chip"] is not None:
        values["nominal_hbm"] = False
    return Conventions(**values)
