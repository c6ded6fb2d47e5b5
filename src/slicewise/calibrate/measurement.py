"""What a measurement is: a time, and everything that a plan needs to predict the same time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slicewise.errors import InputError

DECODE, PREFILL, END_TO_END = "decode", "prefill", "end_to_end"
PHASES = (DECODE, PREFILL, END_TO_END)
DEGREES = ("tp", "pp", "dp", "ep")
"""Degrees of a layout, as the flags name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A time that somebody measured.

    Attributes:
        model: its name in the catalog, the path of a config, or the id of a repository.
        slice: such as h100:8 or v5e:4x4, as the catalog writes it.
        weights: dtype of the weights; "auto" is what the checkpoint says.
        kv: dtype of the cache; "auto" likewise.
        compute: dtype of the matmuls' FLOPs; None is the planner's default.
        phase: decode, one step of the batch; prefill, that of all the prompts of the batch; end_to_end, the prefill of
            all the prompts, which gives the first token, and a decode step for each further one, all requests at once.
        batch: sequences.
        prompt_tokens: of each sequence; 0 where a decode step states its context instead.
        output_tokens: generated for each sequence; 0 where they do not matter.
        context_tokens: of a decode step, the mean of tokens held by a sequence; None is prompt + output / 2.
        layout: degrees that were stated, by tp, pp, dp and ep; empty where the planner's own layout is meant.
        seconds: what the phase took. [s]
        weight_bytes: size of the weights that were served, where it is stated; None for what the plan counts. [B]
        engine: who served, such as vllm; "" where nobody said.
        where: the file, and the line or the item of it.
    """

    model: str
    slice: str
    weights: str
    kv: str
    compute: str | None = None
    phase: str
    batch: int
    prompt_tokens: int = 0
    output_tokens: int = 0
    context_tokens: float | None = None
    layout: Mapping[str, int] = field(default_factory=dict)
    seconds: float
    weight_bytes: float | None = None
    engine: str = ""
    where: str

    def __post_init__(self) -> None:
        """Refuse what is no measurement.

        Raises:
            InputError: a time that is not finite and above zero, no sequences, or a phase without its tokens.
        """
        if self.phase not in PHASES:
            raise InputError(f"{self.where}: phase '{self.phase[:40]}' is not known; write {', '.join(PHASES)}")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise InputError(f"{self.where}: a time of {self.seconds:g} s is none; give one above 0, such as 0.015")
        if self.batch < 1:
            raise InputError(f"{self.where}: a batch of {self.batch} has no sequences; give at least 1")
        if self.phase != DECODE and self.prompt_tokens < 1:
            raise InputError(f"{self.where}: {self.phase} of {self.prompt_tokens} prompt tokens; give isl, at least 1")
        if self.phase == END_TO_END and self.output_tokens < 1:
            raise InputError(f"{self.where}: {self.phase} of {self.output_tokens} output tokens; give osl, at least 1")
        if self.phase == DECODE and not self.held_tokens > 0:
            raise InputError(f"{self.where}: a context of {self.held_tokens:g} tokens; give one above 0")

    def __str__(self) -> str:
        """Where it stands and what ran, in a few words."""
        lengths = f"{self.held_tokens:,.0f} tokens" if self.phase == DECODE else f"{self.prompt_tokens:,} prompt tokens"
        return f"{self.where}: {self.model}, {self.phase}, batch {self.batch:,}, {lengths}"

    @property
    def file(self) -> str:
        """The name of its file."""
        return Path(self.where.rpartition(":")[0] or self.where).name

    @property
    def configuration(self) -> tuple[object, ...]:
        """What repetitions have in common."""
        lengths = self.prompt_tokens, self.output_tokens, self.context_tokens
        ran = self.model, self.phase, self.slice, self.weights, self.kv, self.compute
        return *ran, *sorted(self.layout.items()), self.batch, *lengths

    @property
    def held_tokens(self) -> float:
        """Mean of tokens that a sequence holds in a decode step: as stated, or the prompt and half of the output."""
        return self.prompt_tokens + self.output_tokens / 2 if self.context_tokens is None else self.context_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file holds.

    Attributes:
        measurements: in the file's order.
        left_out: how many times were left out, by the reason.
    """

    measurements: tuple[Measurement, ...]
    left_out: Mapping[str, int]
