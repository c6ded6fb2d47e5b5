"""Money alone: what a rate of tokens costs, and from how many a month owning chips is cheaper than paying for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from slicewise.catalog.slices import load_slice
from slicewise.costs import money
from slicewise.derive import Derivation, Graph, Origins
from slicewise.errors import InputError, UnknownNameError
from slicewise.planner.question import Quantity, prices_of
from slicewise.planner.record import record
from slicewise.spec.topology import Slice
from slicewise.units import MONTH_HOURS, parse, parse_positive

_GRAPH = Graph.of({
    function.__name__: function
    for function in (
        money.usd_per_hour,
        money.usd_per_month,
        money.usd_per_million_output_tokens,
        money.sustained_tokens_per_s,
        money.usd_per_million_sustained_tokens,
        money.breakeven_tokens_per_month,
        money.breakeven_utilisation,
    )
})  # fmt: skip
_RATED = ("usd_per_million_output_tokens", "usd_per_million_sustained_tokens", "sustained_tokens_per_s")
_ORIGINS = {
    "tokens_per_s": ("given by --tokens-per-s", ""),
    "utilisation": ("given by --utilisation, or always busy", ""),
    "api_usd_per_million_tokens": ("given by --api-price", ""),
    "usd_per_month": ("given by --usd-per-month", ""),
    "usd_per_hour": (f"given by --usd-per-month, over {MONTH_HOURS:g} hours", ""),
}


class CostFlags(TypedDict, total=False):
    """The words of `cost`. None: not given."""

    slice: str | Slice | None
    price: Quantity | None
    usd_per_month: Quantity | None
    tokens_per_s: Quantity | None
    utilisation: Quantity | None
    api_price: Quantity | None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The answer of `cost`. What was not asked for is None.

    Attributes:
        n_chips: chips that are paid for; 1 where no slice is named.
        price: the quote in words; None where the month's price was given.
        usd_per_hour: of all the chips. [USD]
        usd_per_month: the same, of 730 hours. [USD]
        tokens_per_s: generated tokens while busy, of all chips together. [1/s]
        utilisation: share of the time that the chips are busy.
        sustained_tokens_per_s: tokens on average. [1/s]
        usd_per_million_output_tokens: while busy. [USD]
        usd_per_million_sustained_tokens: idle hours paid for too. [USD]
        api_usd_per_million_tokens: the price elsewhere. [USD]
        breakeven_tokens_per_month: tokens from which owning is cheaper.
        breakeven_utilisation: share of the time that it takes to make them; above 1 it cannot be done.
    """

    slice: str | None
    n_chips: int
    price: str | None
    usd_per_hour: float
    usd_per_month: float
    tokens_per_s: float | None
    utilisation: float
    sustained_tokens_per_s: float | None
    usd_per_million_output_tokens: float | None
    usd_per_million_sustained_tokens: float | None
    api_usd_per_million_tokens: float | None
    breakeven_tokens_per_month: float | None
    breakeven_utilisation: float | None
    inputs: Mapping[str, Any]
    origins: Origins

    @property
    def fits(self) -> bool:
        """Money fits everywhere."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return record(self, without=("inputs", "origins"))

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a number; of the price of a million tokens, or of the break-even, when none is named.

        Raises:
            UnknownNameError: no such number.
            UnknownFactError: it rests on what was not given.
        """
        headline = "breakeven_tokens_per_month" if self.tokens_per_s is None else "usd_per_million_sustained_tokens"
        wanted = name or headline
        if wanted not in {*_GRAPH.formulas, *self.inputs}:
            raise UnknownNameError("number", wanted, {*_GRAPH.formulas, *self.inputs})
        return _GRAPH.explain(wanted, self.inputs, self.origins)


def cost(**flags: Unpack[CostFlags]) -> Cost:
    """What a rate of tokens costs, and from how many tokens a month owning the chips pays.

    The rate is one that was measured, or that `step` or `plan` gives; it is of all the chips together.

    Raises:
        InputError: a word is off, no price is known, or there is nothing to tell.
    """
    unknown = set(flags) - set(CostFlags.__annotations__)
    if unknown:
        raise UnknownNameError("word", min(unknown), CostFlags.__annotations__)
    rate = _positive(flags.get("tokens_per_s"), "count", "--tokens-per-s")
    api_price = _positive(flags.get("api_price"), "USD", "--api-price")
    if rate is None and api_price is None:
        raise InputError("nothing to tell; give --tokens-per-s, the rate to price, or --api-price to break even with")
    slice_ = load_slice(flags["slice"]) if flags.get("slice") is not None else None  # type: ignore[arg-type]
    utilisation = _share(flags.get("utilisation"))
    paid, quote, origins = _paid(flags, slice_)
    rated = {} if rate is None else {"tokens_per_s": rate, "utilisation": utilisation}
    other = {} if api_price is None else {"api_usd_per_million_tokens": api_price}
    inputs = {**paid, **rated, **other}
    names = ["usd_per_hour", "usd_per_month", *(_RATED if rated else ())]
    names += ["breakeven_tokens_per_month"] if other else []
    names += ["breakeven_utilisation"] if other and rated else []
    values = {name: float(value) for name, value in _GRAPH.evaluate(names, inputs).items()}
    asked = (*_RATED, "breakeven_tokens_per_month", "breakeven_utilisation")
    return Cost(
        slice=slice_.name if slice_ else None,
        n_chips=slice_.n_chips if slice_ else 1,
        price=quote,
        tokens_per_s=rate,
        utilisation=utilisation,
        api_usd_per_million_tokens=api_price,
        **{**dict.fromkeys(asked), **values},  # type: ignore[arg-type]
        inputs=inputs,
        origins={**_ORIGINS, **origins},
    )


def _paid(flags: CostFlags, slice_: Slice | None) -> tuple[dict[str, float], str | None, Origins]:
    """What the chips cost, the quote in words, and where it comes from."""
    monthly, price = _positive(flags.get("usd_per_month"), "USD", "--usd-per-month"), flags.get("price")
    if monthly is not None:
        if price is not None:
            raise InputError("--price and --usd-per-month both say what the chips cost; give one of them")
        return {"usd_per_hour": monthly / MONTH_HOURS, "usd_per_month": monthly}, None, {}
    n_chips = slice_.n_chips if slice_ else 1
    where = f"chips of {slice_.name}" if slice_ else "one; name a --slice to count every chip"
    if slice_ is None and price is None:
        raise InputError("no price is known; give --price in USD per chip-hour, --usd-per-month, or a --slice")
    name = slice_.chip.name if slice_ else ""
    quotes = prices_of(price, [name])
    if name not in quotes:
        raise InputError(f"no price is known for {name}; give --price in USD per chip-hour")
    quote = quotes[name]
    origins = {"n_chips": (where, ""), "usd_per_chip_hour": quote.provenance.origin}
    return {"n_chips": n_chips, "usd_per_chip_hour": quote.usd_per_chip_hour}, str(quote), origins


def _share(value: Quantity | None) -> float:
    share = 1.0 if value is None else parse(value, "fraction", "--utilisation")
    if not 0 < share <= 1:
        raise InputError(f"--utilisation: {value} must be greater than 0 and at most 1; write for example 0.4 or 40%")
    return share


def _positive(value: Quantity | None, unit: str, flag: str) -> float | None:
    return None if value is None else parse_positive(value, unit, flag)
