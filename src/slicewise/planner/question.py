"""A question in people's words, read into specs: the one place where flags and keyword arguments are understood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TypedDict

from slicewise.catalog.load import chips as all_chips
from slicewise.catalog.load import find_chip, load_model
from slicewise.catalog.slices import load_slice, standard_slices
from slicewise.costs.serving import longest_context_tokens, mean_context_tokens
from slicewise.errors import InputError, UnknownNameError
from slicewise.planner.conventions import CHOICES, Conventions, conventions
from slicewise.planner.deployment import Deployment
from slicewise.spec.chip import Price
from slicewise.spec.model import Model
from slicewise.spec.precision import BYTES_PER_ELEMENT, DTYPE_ALIASES, Precision
from slicewise.spec.provenance import chosen
from slicewise.spec.topology import Slice
from slicewise.spec.workload import Limits, Workload
from slicewise.units import parse, parse_count, parse_positive

DEFAULT_CHIP = "v5e"
DEFAULT_ISL = 8192
DEFAULT_OSL = 512
DEFAULT_MFU = 0.4
FEWEST_PARAMS = 1e5
LEAST_FRACTION = 0.001
OBJECTIVES = ("cost", "latency", "throughput")

Quantity = str | float | int
Words = str | Sequence[str]


class Flags(TypedDict, total=False):
    """The words of a question; each is the command line's flag of that name. None: not given."""

    slice: Words | Slice | Sequence[Slice] | None
    chip: Words | None
    weights: Words | None
    kv: Words | None
    compute: Words | None
    isl: Quantity | None
    osl: Quantity | None
    context: Quantity | Sequence[Quantity] | None
    batch: Quantity | None
    tpot: Quantity | None
    ttft: Quantity | None
    rate: Quantity | None
    objective: str | None
    params: Quantity | None
    hbm: Quantity | None
    memory_fraction: Quantity | None
    mfu: Quantity | None
    price: Quantity | Sequence[Quantity] | None
    network: Quantity | None
    ici: str | None
    split: str | None
    kv_split: str | None
    view: str | None
    book: bool


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, read.

    Attributes:
        slices: the slices that were named, or every standard slice of the chips.
        slice_is_given: slices were named.
        batch: sequences in a decode step; None for the planner's choice or the largest that fits.
        prices: quote by chip name; chips without one are missing.
    """

    model: Model
    slices: tuple[Slice, ...]
    slice_is_given: bool
    precisions: tuple[Precision, ...]
    workload: Workload
    limits: Limits
    conventions: Conventions
    objective: str
    mfu: float
    prices: Mapping[str, Price]
    params: float | None
    batch: int | None
    rate: float | None
    handoff_bytes_per_s: float | None

    def deployment(self, slice_: Slice | None = None, precision: Precision | None = None) -> Deployment:
        """The model on one slice at one precision; by default the first of each."""
        chosen_slice = slice_ or self.slices[0]
        return Deployment(
            model=self.model,
            slice=chosen_slice,
            precision=precision or self.precisions[0],
            workload=self.workload,
            conventions=self.conventions,
            mfu=self.mfu,
            price=self.prices.get(chosen_slice.chip.name),
            params=self.params,
            handoff_bytes_per_s=self.handoff_bytes_per_s,
            requests_per_s=self.rate,
        )


def ask(model: str | Path | Model, flags: Flags) -> Question:
    """Read a question.

    Raises:
        InputError: a word is off; the message names the flag and the fix.
    """
    known_words(flags)
    spec = load_model(model)
    counted = conventions(
        book=_flag(flags.get("book"), "--book"),
        ici=flags.get("ici"),
        split=flags.get("split"),
        kv_split=flags.get("kv_split"),
        view=flags.get("view"),
        memory_fraction=_fraction(flags.get("memory_fraction"), "--memory-fraction"),
        hbm_bytes_per_chip=_positive(flags.get("hbm"), "B", "--hbm"),
    )
    slices, is_given = _slices(flags)
    objective = "cost" if flags.get("objective") is None else str(flags.get("objective"))
    if objective not in OBJECTIVES:
        raise InputError(f"--objective '{objective}' is not offered; choose {', '.join(OBJECTIVES)}")
    batch, mfu = flags.get("batch"), _fraction(flags.get("mfu"), "--mfu")
    return Question(
        model=spec,
        slices=slices,
        slice_is_given=is_given,
        precisions=_precisions(spec, flags),
        workload=workload(flags, prompt_is_context=counted.prompt_is_context),
        limits=Limits(
            tpot_s=_positive(flags.get("tpot"), "s", "--tpot"), ttft_s=_positive(flags.get("ttft"), "s", "--ttft")
        ),
        conventions=counted,
        objective=objective,
        mfu=DEFAULT_MFU if mfu is None else mfu,
        prices=prices_of(flags.get("price"), [s.chip.name for s in slices]),
        params=_params(flags.get("params")),
        batch=None if batch is None else parse_count(batch, "--batch", "sequences"),
        rate=_positive(flags.get("rate"), "request/s", "--rate"),
        handoff_bytes_per_s=_positive(flags.get("network"), "B/s", "--network"),
    )


def _one(context: object) -> Quantity:
    """The context, where only `frontier` takes several."""
    contexts = listed(context)
    if len(contexts) != 1:
        raise InputError(f"--context: {len(contexts)} are given, and this takes one; frontier takes several")
    return contexts[0]  # type: ignore[return-value]  # what is no quantity is refused by its reader


def known_words(flags: Flags) -> None:
    """Refuse a word that is no flag: an answer that left it out would be a wrong one.

    Raises:
        UnknownNameError: a word is no flag.
    """
    known = Flags.__annotations__
    for word in flags:
        if word not in known:
            raise UnknownNameError("word", word, known, "(the words are the command line's flags)")


def workload(flags: Flags, *, prompt_is_context: bool) -> Workload:
    """The lengths of a request: memory at S = T + G, bandwidth at the mean context T + G / 2, or S outright.

    Raises:
        InputError: a length is no whole number of at least 1.
    """
    isl, osl, context = flags.get("isl"), flags.get("osl"), flags.get("context")
    output = DEFAULT_OSL if osl is None else parse_count(osl, "--osl")
    held = None if context is None else parse_count(_one(context), "--context")
    # A context that is set outright, and no prompt: the prompt fills the context.
    prompt = parse_count(isl, "--isl") if isl is not None else held or DEFAULT_ISL
    if held is not None or prompt_is_context:
        tokens: float = held or prompt
        longest: float = tokens
    else:
        tokens, longest = float(mean_context_tokens(prompt, output)), float(longest_context_tokens(prompt, output))
    return Workload(
        prompt_tokens=prompt,
        output_tokens=output,
        context_tokens=tokens,
        capacity_context_tokens=longest,
        context_is_set=held is not None,
    )


def listed(words: object) -> list[object]:
    """One word or several, as a list."""
    if words is None:
        return []
    if isinstance(words, str | bytes | Slice | int | float):
        return [words]
    return list(words) if isinstance(words, Iterable) else [words]


def _slices(flags: Flags) -> tuple[tuple[Slice, ...], bool]:
    named = listed(flags.get("slice"))
    chips = [find_chip(str(name)) for name in listed(flags.get("chip"))]
    if named:
        slices = tuple({slice_.name: slice_ for slice_ in map(_slice, named)}.values())
        strays = [slice_.name for slice_ in slices if chips and slice_.chip.name not in {chip.name for chip in chips}]
        if strays:
            raise InputError(f"--slice {strays[0]} is of another chip than --chip; leave --chip out")
        return slices, True
    chips = chips or [find_chip(DEFAULT_CHIP)]
    return tuple(
        s for chip in dict.fromkeys(chip.name for chip in chips) for s in standard_slices(all_chips()[chip])
    ), False


def _slice(name: object) -> Slice:
    return load_slice(name)  # type: ignore[arg-type]  # what is no name is refused there


def _precisions(model: Model, flags: Flags) -> tuple[Precision, ...]:
    default = model.checkpoint_dtype
    activations = "bf16" if default == "fp32" else default
    weights = dtypes(flags.get("weights"), "--weights") or [default]
    caches = dtypes(flags.get("kv"), "--kv") or [activations]
    computes = dtypes(flags.get("compute"), "--compute") or [activations]
    return tuple(Precision(weights=w, kv=k, compute=c) for w, k, c in product(weights, caches, computes))


def dtypes(words: object, flag: str) -> list[str]:
    """The dtypes of one word or several, by the names used here.

    Raises:
        InputError: a dtype is not known.
    """
    # "auto" is an engine's word for what the checkpoint says.
    named = [str(word).lower() for word in listed(words) if str(word).lower() != "auto"]
    found = [DTYPE_ALIASES.get(word, word) for word in named]
    for dtype in found:
        if dtype not in BYTES_PER_ELEMENT:
            raise InputError(f"{flag} '{dtype}' is not a dtype known here; choose {', '.join(BYTES_PER_ELEMENT)}")
    return list(dict.fromkeys(found))


def prices_of(words: object, chip_names: list[str]) -> dict[str, Price]:
    """The quote of each chip: what was given for the named chips, else the catalog's first.

    Args:
        words: "1.2" for all the named chips, "v5e=1.2" for one, or several.
        chip_names: the chips of the question.

    Raises:
        InputError: not an amount above zero, or no such chip.
    """
    quotes = {name: chip.prices[0] for name, chip in all_chips().items() if chip.prices}
    given: set[str] = set()
    for word in listed(words):
        name, has_chip, amount = str(word).rpartition("=")
        usd = parse_positive(amount, "USD", "--price")
        quote = Price(
            usd_per_chip_hour=usd,
            provider="as given by --price",
            tier="",
            date="",
            provenance=chosen(f"${usd:g} per chip-hour, given by --price"),
        )
        for chip_name in [find_chip(name).name] if has_chip else chip_names:
            if has_chip and chip_name not in chip_names:
                raise InputError(f"--price {word}: {chip_name} is not asked about; leave it out")
            if has_chip and chip_name in given:
                raise InputError(f"--price: {chip_name} is given twice; give it once")
            given |= {chip_name} if has_chip else set()
            quotes[chip_name] = quote
    return quotes


def _flag(value: object, flag: str) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    raise InputError(f"{flag}: {str(value)[:40]!r} is neither true nor false; give True, or leave it out")


def _params(value: object) -> float | None:
    params = _positive(value, "params", "--params")
    if params is not None and params < FEWEST_PARAMS:
        raise InputError(f"--params: {value} is fewer parameters than any model has; write for example 70e9 or 70B")
    return params


def _positive(value: object, unit: str, flag: str) -> float | None:
    return None if value is None else parse_positive(value, unit, flag)  # type: ignore[arg-type]


def _fraction(value: object, flag: str) -> float | None:
    if value is None:
        return None
    share = parse(value, "fraction", flag)  # type: ignore[arg-type]
    if not LEAST_FRACTION <= share <= 1:
        raise InputError(f"{flag}: {value} must be at least {LEAST_FRACTION:g} and at most 1; write for example 0.5")
    return share


__all__ = [
    "CHOICES",
    "DEFAULT_CHIP",
    "Flags",
    "Question",
    "ask",
    "dtypes",
    "known_words",
    "listed",
    "prices_of",
    "workload",
]
