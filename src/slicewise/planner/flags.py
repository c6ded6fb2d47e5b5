"""The words of a question, and the reading of each value: the one place where flags are understood."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from slicewise.catalog.load import chips as all_chips
from slicewise.catalog.load import find_chip
from slicewise.costs.serving import longest_context_tokens, mean_context_tokens
from slicewise.errors import InputError
from slicewise.planner.layouts import AskedLayout
from slicewise.spec.chip import Price
from slicewise.spec.model import Model
from slicewise.spec.precision import BYTES_PER_ELEMENT, DTYPE_ALIASES
from slicewise.spec.provenance import chosen
from slicewise.spec.topology import Slice
from slicewise.spec.workload import Workload
from slicewise.units import parse, parse_count, parse_positive

DEFAULT_CHIP = "v5e"
DEFAULT_ISL = 8192
DEFAULT_OSL = 512
DEFAULT_MFU = 0.4
"""FLOPs utilisation in prefill where views of bounds have no better word."""
PEAK_MFU = 1.0
"""What bounds are at beside what is expected."""
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
    efficiency: str | None
    book: bool
    tp: Quantity | None
    pp: Quantity | None
    dp: Quantity | None
    ep: Quantity | None
    engine: str | None
    reserve: Quantity | None


def one_context(context: object) -> Quantity:
    """The context, where only `frontier` takes several."""
    contexts = listed(context)
    if len(contexts) != 1:
        raise InputError(f"--context: {len(contexts)} are given, and this takes one; frontier takes several")
    return contexts[0]  # type: ignore[return-value]  # what is no quantity is refused by its reader


def workload(flags: Flags, *, prompt_is_context: bool) -> Workload:
    """The lengths of a request: memory at S = T + G, bandwidth at the mean context T + G / 2, or S outright.

    Raises:
        InputError: a length is no whole number of at least 1.
    """
    isl, osl, context = flags.get("isl"), flags.get("osl"), flags.get("context")
    output = DEFAULT_OSL if osl is None else parse_count(osl, "--osl")
    held = None if context is None else parse_count(one_context(context), "--context")
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


def truth(value: object, flag: str) -> bool:
    """True or false; what was not given is false.

    Raises:
        InputError: it is neither.
    """
    if value is None or isinstance(value, bool):
        return bool(value)
    raise InputError(f"{flag}: {str(value)[:40]!r} is neither true nor false; give True, or leave it out")


def param_count(model: Model, value: object, asked: AskedLayout) -> float | None:
    """A count that replaces the exact one; None where none was given.

    Raises:
        InputError: too few for a model, or the model has experts.
    """
    params = positive(value, "params", "--params")
    if params is not None and asked.is_given:
        raise InputError("--params replaces the count of weights cut evenly; with ranks or an engine leave it out")
    if params is not None and model.n_experts:
        raise InputError(f"--params replaces the count of a dense model; {model.name} has experts: leave it out")
    if params is not None and FEWEST_PARAMS <= params < (head := model.vocab_size * model.d_model):
        raise InputError(f"--params: {value} is fewer than the {head:,} of the vocabulary of {model.name} alone")
    if params is not None and params < FEWEST_PARAMS:
        raise InputError(f"--params: {value} is fewer parameters than any model has; write for example 70e9 or 70B")
    return params


def positive(value: object, unit: str, flag: str) -> float | None:
    """A quantity above zero; None where it was not given.

    Raises:
        InputError: it is no such quantity.
    """
    return None if value is None else parse_positive(value, unit, flag)  # type: ignore[arg-type]


def size(value: object, flag: str) -> float | None:
    """A size of at least zero; None where it was not given. [B]

    Raises:
        InputError: it is no size.
    """
    size = None if value is None else parse(value, "B", flag)  # type: ignore[arg-type]
    if size is not None and size < 0:
        raise InputError(f"{flag}: {value} must be at least 0; write for example 2GiB")
    return size


def fraction(value: object, flag: str) -> float | None:
    """A share of at most 1; None where it was not given.

    Raises:
        InputError: it is no share.
    """
    if value is None:
        return None
    share = parse(value, "fraction", flag)  # type: ignore[arg-type]
    if not LEAST_FRACTION <= share <= 1:
        raise InputError(f"{flag}: {value} must be at least {LEAST_FRACTION:g} and at most 1; write for example 0.5")
    return share
