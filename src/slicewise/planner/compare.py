"""Chips or slices side by side: what a dollar buys, and one model on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from slicewise.catalog.load import find_chip
from slicewise.catalog.slices import load_slice
from slicewise.costs import money
from slicewise.derive import Derivation, Graph, Origins
from slicewise.errors import InputError, UnknownNameError
from slicewise.planner.figures import end_of
from slicewise.planner.flags import truth
from slicewise.planner.plan import Plan, plan
from slicewise.planner.question import Flags, dtypes, efficiencies, known_words, listed, prices_of
from slicewise.planner.rates import peak_rate
from slicewise.planner.record import record
from slicewise.spec.chip import Chip, Price
from slicewise.spec.model import Model
from slicewise.units import unit_of

_GRAPH = Graph.of({
    "flops_per_usd": money.flops_per_usd,
    "bytes_moved_per_usd": money.bytes_moved_per_usd,
    "hbm_byte_hours_per_usd": money.hbm_byte_hours_per_usd,
})  # fmt: skip
_PER_USD = tuple(_GRAPH.formulas)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One chip's row; per-dollar values are None where no price is known.

    Attributes:
        name: the chip or slice as asked for.
        flops_per_usd: peak FLOPs that a dollar buys. [FLOP/USD]
        bytes_moved_per_usd: HBM bytes that a dollar moves. [B/USD]
        hbm_byte_hours_per_usd: bytes of HBM that a dollar holds for an hour. [B/USD]
        plan: the model on it; None where no model was asked for.
    """

    name: str
    chip: str
    title: str
    compute_dtype: str
    flops_per_s: float
    hbm_bytes_per_s: float
    hbm_bytes: float
    price: str | None
    usd_per_chip_hour: float | None
    flops_per_usd: float | None
    bytes_moved_per_usd: float | None
    hbm_byte_hours_per_usd: float | None
    plan: Plan | None
    inputs: dict[str, Any]
    origins: Origins

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        own = record(self, without=("plan", "inputs", "origins"))
        if self.plan is not None:
            best = self.plan.recommended
            own["recommended"] = best.to_dict() if best else None
            own["rejected"] = self.plan.to_dict()["rejected"]
        return own


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The answer of `compare`."""

    rows: tuple[Compared, ...]

    @property
    def fits(self) -> bool:
        """A comparison is an answer even where the model does not fit everywhere."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {"rows": [row.to_dict() for row in self.rows]}

    def explain(self, name: str = "") -> Derivation:
        """The derivation of a per-dollar value, or of a number of the model's plans, one part a chip.

        Args:
            name: the number. `step_s:low` is an end of its range, beside `:bound`, `:expected` and `:high`.

        Raises:
            InputError: no chip has such a value.
            UnknownNameError: no such value.
        """
        wanted = name or "flops_per_usd"
        facts = {"flops_per_s", "hbm_bytes_per_s", "hbm_bytes_per_chip", "usd_per_chip_hour"}
        wanted = "hbm_bytes_per_chip" if wanted == "hbm_bytes" else wanted
        if wanted not in {*_PER_USD, *facts}:
            if any(row.plan for row in self.rows):
                return self._explain_plans(wanted)
            raise UnknownNameError("number", wanted, {*_PER_USD, *facts})
        needs_price = wanted in {*_PER_USD, "usd_per_chip_hour"}
        rows = [row for row in self.rows if row.usd_per_chip_hour is not None or not needs_price]
        if not rows:
            names = ", ".join(dict.fromkeys(row.chip for row in self.rows))
            raise InputError(f"{wanted}: no price is known for {names}; give --price CHIP=USD")
        parts = [replace(_GRAPH.explain(wanted, row.inputs, row.origins), name=row.name) for row in rows]
        return Derivation(name=wanted, value=None, unit=unit_of(wanted), parts=tuple(parts))

    def _explain_plans(self, name: str) -> Derivation:
        """A number of each plan that is recommended, and has it: without a price there are no dollars."""
        quantity, _ = end_of(name)
        rows = [
            (row.name, row.plan)
            for row in self.rows
            if row.plan and row.plan.recommended and (row.price is not None or unit_of(quantity) != "USD")
        ]
        if not rows:
            raise InputError(f"{name}: no plan has it; see why, or give --price CHIP=USD")
        parts = [replace(plan_.explain(name), name=row_name) for row_name, plan_ in rows]
        return Derivation(name=name, value=None, unit=unit_of(quantity), parts=tuple(parts))


def compare(names: Sequence[str], *, model: str | Path | Model | None = None, **flags: Unpack[Flags]) -> Comparison:
    """Chips or slices side by side.

    Args:
        names: chips (v5e) or slices (v5e:4x4).
        model: also plan this model on each.
        flags: as for `plan`; `compute` is also the dtype of the peak rate, bf16 when none is given.

    Raises:
        InputError: a word is off.
    """
    known_words(flags)
    wanted = [str(name) for name in listed(names)]
    if not wanted:
        raise InputError(
            "nothing to compare; give two or more chips or slices, such as: slicewise compare v5e v5p h100"
        )
    asked = [_chip_of(name).name for name in wanted]
    measured = efficiencies(flags.get("efficiency"), asked, is_book=truth(flags.get("book"), "--book"))
    prices_of(flags.get("price"), asked)
    rows = []
    for name, chip_name in zip(wanted, asked, strict=True):
        # Each row takes what was said of its own chip.
        own: Flags = {**flags, "price": _own_prices(flags.get("price"), chip_name)}
        if not any(chip_name in fit.chips for fit in measured):
            own["efficiency"] = None
        rows.append(_row(name, model, own))
    return Comparison(rows=tuple(rows))


def _chip_of(name: str) -> Chip:
    """The chip of a row that is named by its chip or by a slice."""
    return load_slice(name).chip if _is_slice(name) else find_chip(name)


def _is_slice(name: str) -> bool:
    return ":" in name or ("-" in name and not _is_chip(name))


def _own_prices(words: object, chip_name: str) -> list[str]:
    """The prices that hold for a chip: its own, or those of every chip."""
    found = []
    for word in map(str, listed(words)):
        name, has_chip, _ = word.rpartition("=")
        if not has_chip or find_chip(name).name == chip_name:
            found.append(word)
    return found


def _row(name: str, model: str | Path | Model | None, flags: Flags) -> Compared:
    compute = (dtypes(flags.get("compute"), "--compute") or ["bf16"])[0]
    is_slice, chip = _is_slice(name), _chip_of(name)
    rate = peak_rate(chip, compute)
    price = prices_of(flags.get("price"), [chip.name]).get(chip.name)
    inputs = {
        "flops_per_s": chip.flops_per_s[rate],
        "hbm_bytes_per_s": chip.hbm_bytes_per_s,
        "hbm_bytes_per_chip": chip.hbm_bytes,
        "usd_per_chip_hour": price.usd_per_chip_hour if price else None,
    }
    values = _GRAPH.evaluate(_PER_USD, inputs) if price else dict.fromkeys(_PER_USD)
    words: Flags = {**flags, "slice": name} if is_slice else {**flags, "chip": name}
    return Compared(
        name=name,
        chip=chip.name,
        title=chip.title,
        compute_dtype=compute,
        flops_per_s=inputs["flops_per_s"] or 0.0,
        hbm_bytes_per_s=chip.hbm_bytes_per_s,
        hbm_bytes=chip.hbm_bytes,
        price=str(price) if price else None,
        usd_per_chip_hour=price.usd_per_chip_hour if price else None,
        **values,
        plan=plan(model, **words) if model is not None else None,
        inputs=inputs,
        origins=_origins(chip, rate, price),
    )


def _is_chip(name: str) -> bool:
    try:
        find_chip(name)
    except UnknownNameError:
        return False
    return True


def _origins(chip: Chip, rate: str, price: Price | None) -> Origins:
    facts = chip.provenance
    return {
        "flops_per_s": facts[f"flops_per_s.{rate}"].origin,
        "hbm_bytes_per_s": facts["hbm_bytes_per_s"].origin,
        "hbm_bytes_per_chip": facts["hbm_bytes"].origin,
        "usd_per_chip_hour": price.provenance.origin if price else ("no price known", ""),
    }
