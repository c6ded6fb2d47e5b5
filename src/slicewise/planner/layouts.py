"""Which layouts of ranks to try on a slice: those that were asked for, with every legal choice that is left open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from slicewise.errors import InputError
from slicewise.spec.legality import legal_layouts, legal_tensor_ranks, refusals
from slicewise.spec.model import Model
from slicewise.spec.precision import Precision
from slicewise.spec.ranks import Ranks
from slicewise.spec.topology import Slice

DEGREES = ("tp", "pp", "dp", "ep")
SHOWN = 12
MOST_RANKS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLayout:
    """What was asked for of a layout.

    Attributes:
        degrees: tp, pp, dp and ep, as far as they were given.
        by_ranks: ranks with unequal shares are wanted even where no degree is given, as an engine lays them out.
    """

    degrees: Mapping[str, int]
    by_ranks: bool = False

    @property
    def is_given(self) -> bool:
        """Whether ranks are wanted at all."""
        return bool(self.degrees) or self.by_ranks


def layouts(model: Model, slice_: Slice, precision: Precision, asked: AskedLayout) -> tuple[Ranks | None, ...]:
    """The layouts to try on a slice, the plainest first.

    None is chapter 8's: every weight cut over the whole slice, the cache over heads, then the batch. Nothing asked for,
    a mixture is tried with its experts spread too; of a dense model every other layout is that of a smaller slice.

    Returns:
        Layouts; empty where none of what was asked for is legal on this slice.
    """
    if not asked.is_given:
        return (None, *(_spread(model, slice_, precision) if model.n_experts and slice_.n_chips > 1 else ()))
    found = legal_layouts(_planned(model, precision), slice_.n_chips, **asked.degrees)
    if "ep" not in asked.degrees:
        whole = tuple(ranks for ranks in found if ranks.ep in (1, ranks.stage_chips))
        found = whole or found
    return tuple(sorted(found, key=_plainness))


def refusal(model: Model, slice_: Slice, precision: Precision, asked: AskedLayout) -> str:
    """Why nothing of what was asked for is legal on a slice, with what is."""
    fixed = " ".join(f"--{name} {ways}" for name, ways in asked.degrees.items())
    legal = sorted(legal_layouts(_planned(model, precision), slice_.n_chips), key=_plainness)
    known = {name: asked.degrees.get(name, 1) for name in DEGREES}
    free = [name for name in ("tp", "dp", "pp") if name not in asked.degrees]
    used = known["tp"] * known["pp"] * known["dp"]
    if free and slice_.n_chips % used == 0:
        known[free[0]] = slice_.n_chips // used
    why = _fault(_planned(model, precision), slice_, known) or f"no layout of {slice_.n_chips} chips has {fixed}"
    offered = ", ".join(map(str, legal[:SHOWN])) or "none"
    return f"{fixed or 'the layout'} on {slice_.name}: {why.rstrip('.')}; legal there: {offered}"


def _fault(model: Model, slice_: Slice, degrees: Mapping[str, int]) -> str:
    """What is wrong with a layout; "" where nothing is."""
    try:
        reasons = refusals(model, Ranks(**degrees), slice_.n_chips)
    except InputError as error:
        return str(error)
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{reasons[0].detail}{more}" if reasons else ""


def legal_tensor_parallel(model: Model, precision: Precision, most: int = MOST_RANKS) -> tuple[int, ...]:
    """Tensor-parallel sizes that cut a model legally, whatever the number of chips."""
    return legal_tensor_ranks(_planned(model, precision), most)


def checked(model: Model, slices: tuple[Slice, ...], precision: Precision, asked: AskedLayout) -> None:
    """Refuse a layout that is legal on none of the slices.

    Raises:
        InputError: none is.
    """
    if asked.is_given and not any(layouts(model, slice_, precision, asked) for slice_ in slices):
        raise InputError(refusal(model, slices[0], precision, asked))


def _planned(model: Model, precision: Precision) -> Model:
    """The model without blocks of scales where its weights are not taken as stored."""
    return model if precision.as_stored else replace(model, quantisation=None)


def _spread(model: Model, slice_: Slice, precision: Precision) -> list[Ranks]:
    """Experts spread over all chips, attention tensor- or data-parallel."""
    n = slice_.n_chips
    found = legal_layouts(_planned(model, precision), n, pp=1, ep=n)
    return [ranks for ranks in found if n in (ranks.tp, ranks.dp)]


def _plainness(ranks: Ranks) -> tuple[int, int, int]:
    """Tensor parallelism alone first, then few stages, few replicas, experts cut before experts spread."""
    return ranks.pp, ranks.dp, ranks.ep
