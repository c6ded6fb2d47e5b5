"""What one row of a file states of a measurement, and what the words on the command line add to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from slicewise.calibrate.measurement import DECODE, END_TO_END, Measurement
from slicewise.catalog.load import model_aliases
from slicewise.catalog.slices import load_slice
from slicewise.errors import InputError
from slicewise.planner.flags import dtypes
from slicewise.units import parse_count

FLAGS = {
    "model": "--model",
    "slice": "--slice",
    "weights": "--weights",
    "kv": "--kv",
    "compute": "--compute",
    "batch": "--batch",
    "prompt_tokens": "--isl",
    "output_tokens": "--osl",
    "engine": "--engine",
}
"""What may be given on the command line, and how."""
AUTO = "auto"
"""An engine's word for what the checkpoint says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Words of the command line that fill in what a file does not state. None: not given."""

    model: str | None = None
    slice: str | None = None
    weights: str | None = None
    kv: str | None = None
    compute: str | None = None
    batch: int | str | None = None
    prompt_tokens: int | str | None = None
    output_tokens: int | str | None = None
    engine: str | None = None

    def understood(self) -> Given:
        """The same in the catalog's words, with numbers for the texts of numbers.

        Raises:
            InputError: a word is off; the message names the flag and the fix.
        """
        compute = None if self.compute is None else dtype(self.compute, "--compute")
        return replace(
            self,
            model=None if self.model is None else model_name(self.model),
            slice=None if self.slice is None else slice_name(self.slice),
            weights=None if self.weights is None else dtype(self.weights, "--weights"),
            kv=None if self.kv is None else dtype(self.kv, "--kv"),
            compute=None if compute == AUTO else compute,
            batch=None if self.batch is None else parse_count(self.batch, "--batch", "sequences"),
            prompt_tokens=None if self.prompt_tokens is None else parse_count(self.prompt_tokens, "--isl"),
            output_tokens=None if self.output_tokens is None else parse_count(self.output_tokens, "--osl"),
            engine=(self.engine or "").strip().lower() or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A time in a file, and what the file states of it: names as a Measurement has them, None where it is silent.

    Attributes:
        loose: what is the tool's own word, such as the name a server answers to: a flag may say what it means.
    """

    where: str
    phase: str
    seconds: float
    model: str | None = None
    slice: str | None = None
    weights: str | None = None
    kv: str | None = None
    compute: str | None = None
    batch: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    context_tokens: float | None = None
    layout: Mapping[str, int] = field(default_factory=dict)
    engine: str | None = None
    loose: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """What one row or one result of a tool comes to: the times of use, and the reason of each that is of none."""

    stated: tuple[Stated, ...] = ()
    left_out: tuple[str, ...] = ()


def measurement(stated: Stated, given: Given) -> Measurement:
    """The measurement of a row and the words given with the file.

    Args:
        stated: by the row.
        given: as `Given.understood` has it.

    Raises:
        InputError: neither says what is needed, or they say two things.
    """
    known = {name: _agreed(stated, given, name) for name in FLAGS}
    missing = [name for name in _needed(stated) if known[name] is None]
    if missing:
        names = " and no ".join(FLAGS[name].removeprefix("--") for name in missing)
        flags = " and ".join(FLAGS[name] for name in missing)
        raise InputError(f"{stated.where}: states no {names} of its {stated.phase} time; give {flags}")
    kept = ("where", "phase", "seconds", "context_tokens", "layout")
    silent: dict[str, Any] = {"prompt_tokens": 0, "output_tokens": 0, "engine": ""}
    said: dict[str, Any] = {name: silent.get(name) if value is None else value for name, value in known.items()}
    return Measurement(**said, **{name: getattr(stated, name) for name in kept})


def _needed(stated: Stated) -> list[str]:
    needed = ["model", "slice", "weights", "kv", "batch"]
    if stated.context_tokens is None:
        needed += ["prompt_tokens"]
        needed += ["output_tokens"] if stated.phase in (DECODE, END_TO_END) else []
    return needed


def _agreed(stated: Stated, given: Given, name: str) -> Any:
    """What row and flag both say, or the one that says it.

    Raises:
        InputError: they say two things.
    """
    said, flagged = getattr(stated, name), getattr(given, name)
    if said is None or flagged is None or name in stated.loose:
        return said if flagged is None else flagged
    if said != flagged and not _is_finer(name, said, flagged):
        flag = FLAGS[name]
        raise InputError(
            f"{stated.where}: {flag.removeprefix('--')} is {str(said)[:80]} there, and {flag} says {str(flagged)[:80]};"
            f" leave {flag} out, or split the file"
        )
    return flagged


def _is_finer(name: str, said: str, flagged: str) -> bool:
    """Whether a flag says more exactly what the file says: the engine's version, the kind of fp4, or "as stored"."""
    if name == "engine":
        return flagged.startswith((f"{said}-", f"{said} "))
    return name == "weights" and (flagged == AUTO or (said == "fp4" and flagged in ("nvfp4", "mxfp4")))


def model_name(text: str) -> str:
    """The catalog's name of a model; what it does not know stays as it is.

    Raises:
        InputError: empty.
    """
    if not text.strip():
        raise InputError("--model is empty; give a catalog name such as llama-3-70b, or a path of a config.json")
    return _model_names().get(text.strip().lower(), text.strip())


def is_known(model: str) -> bool:
    """Whether the catalog has a model of that name."""
    return model in model_aliases()


@cache
def _model_names() -> dict[str, str]:
    return {other.lower(): name for name, others in model_aliases().items() for other in (name, *others)}


@cache
def slice_name(text: str) -> str:
    """The catalog's name of a slice.

    Raises:
        InputError: no slice that is offered.
    """
    return load_slice(text).name


def dtype(text: str, what: str) -> str:
    """The name of a dtype, or "auto".

    Raises:
        InputError: no dtype that is known.
    """
    return next(iter(dtypes(text.strip(), what)), AUTO)
