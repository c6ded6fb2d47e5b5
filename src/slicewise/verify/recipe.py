"""What a process of its own needs to know to build a program and compile it: plain data that can be sent there."""

from __future__ import annotations

from dataclasses import dataclass

from slicewise.program.family import Llama
from slicewise.spec.precision import Precision

LOOP, WRITTEN_OUT = "loop", "written out"
"""The program's forms: layers as a loop, which compiles in seconds, or one after the other, which is faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A program for a slice.

    Attributes:
        kind: decode or prefill.
        form: LOOP or WRITTEN_OUT.
        llama: the model.
        precision: dtypes of weights, cache and activations.
        slice_name: chip and topology, as the catalog prints them.
        size: sequences of a decode step, or tokens of a prompt.
        context: tokens that each sequence of a decode step may hold.
        scaled: narrow arrays have scales.
        platform: tpu or cpu.
        versions: the compiler's name and versions.
    """

    kind: str
    form: str
    llama: Llama
    precision: Precision
    slice_name: str
    size: int
    context: int
    scaled: bool
    platform: str
    versions: str
