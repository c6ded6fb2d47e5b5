"""What sizing found: the cheapest fleets, every fleet that was run, and why the others do not do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from slicewise.traffic.limits import Limit, Verdict
from slicewise.traffic.metrics import Metrics
from slicewise.traffic.search import Counts
from slicewise.traffic.shapes import Shape
from slicewise.units import plain

CostKey = tuple[float, int, int, int]


def cost_key(shape: Shape, counts: Counts, has_price: bool) -> CostKey:  # noqa: FBT001 - a column of the key
    """What a fleet costs, to compare by: its price or chips; at the same cost its chips, servers and decode servers."""
    fleet = shape.fleet(*counts)
    return _key(fleet.total_usd_per_hour if has_price else None, fleet.total_chips, counts)


def _key(usd_per_hour: float | None, total_chips: int, counts: Counts) -> CostKey:
    return float(total_chips if usd_per_hour is None else usd_per_hour), total_chips, sum(counts), counts[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A fleet that was run.

    Attributes:
        shape: its name.
        n_servers: of a split shape, decode servers.
        n_prefill: prefill servers; 0 where each server does both phases.
        total_chips: of all servers.
        usd_per_hour: of all servers; None where no price is known. [USD]
        verdict: on each limit.
        metrics: of the run. A good request keeps the limits of TTFT, TPOT and end to end, of several on one the
            loosest.
    """

    shape: str
    n_servers: int
    n_prefill: int
    total_chips: int
    usd_per_hour: float | None
    verdict: Verdict
    metrics: Metrics

    @property
    def kept(self) -> bool:
        """It meets every limit, and drops no request."""
        return self.verdict.kept

    @property
    def reason(self) -> str:
        """Why it does not do; nothing where it does."""
        return "; ".join(self.verdict.reasons)

    def cost_key(self, has_price: bool) -> CostKey:  # noqa: FBT001 - a column of the key
        """What it costs, to compare by: as the function of this name."""
        return _key(self.usd_per_hour if has_price else None, self.total_chips, (self.n_servers, self.n_prefill))

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "shape": self.shape,
            "n_servers": self.n_servers,
            "n_prefill_servers": self.n_prefill or None,
            "total_chips": self.total_chips,
            "usd_per_hour": plain(self.usd_per_hour),
            **self.verdict.to_dict(),
            "metrics": self.metrics.to_dict(),
        }


def rows_below(known: Mapping[Counts, Tried], best: Counts) -> tuple[Tried, ...]:
    """Rejected rows of one server fewer than the best."""
    below = [(best[0] - 1, best[1]), (best[0], best[1] - 1)]
    return tuple(known[counts] for counts in below if counts in known and not known[counts].kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is known of a shape.

    Attributes:
        shape: its name.
        is_split: prefill has servers of its own.
        best: its cheapest fleet that meets the limits; None where there is none.
        rejected: fleets of one server fewer, none of which does. With one server of a kind there is no fewer.
        refused: why no count of servers meets the limits; nothing where one does.
        is_whole: the search came to its end.
    """

    shape: str
    is_split: bool
    best: Tried | None
    rejected: tuple[Tried, ...]
    refused: str
    is_whole: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "shape": self.shape,
            "is_split": self.is_split,
            "best": self.best and self.best.to_dict(),
            "rejected": [row.to_dict() for row in self.rejected],
            "refused": self.refused or None,
            "is_whole": self.is_whole,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The answers of all shapes.

    Attributes:
        limits: that were to be met.
        answers: one a shape, in their order.
        tried: every fleet that was run, by shape in their order and then by counts. Some only bound the others, such as
            those with as many prefill servers as are tried at all.
        has_price: fleets are compared by price; otherwise by chips, as some price is not known.
        is_whole: the search was not stopped; of one that was, the best fleets may be cheaper than these.
    """

    limits: tuple[Limit, ...]
    answers: tuple[Answer, ...]
    tried: tuple[Tried, ...]
    has_price: bool
    is_whole: bool

    @property
    def best(self) -> Tried | None:
        """The cheapest fleet of all; None where none meets the limits."""
        return self._cheapest(self.answers)

    @property
    def best_shared(self) -> Tried | None:
        """The cheapest fleet of servers that do both phases."""
        return self._cheapest(answer for answer in self.answers if not answer.is_split)

    @property
    def best_split(self) -> Tried | None:
        """The cheapest fleet of prefill and decode servers."""
        return self._cheapest(answer for answer in self.answers if answer.is_split)

    def _cheapest(self, answers: Iterable[Answer]) -> Tried | None:
        rows = [answer.best for answer in answers if answer.best]
        return min(rows, key=lambda row: row.cost_key(self.has_price)[:2], default=None)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "limits": [limit.to_dict() for limit in self.limits],
            "best": self.best and self.best.to_dict(),
            "best_shared": self.best_shared and self.best_shared.to_dict(),
            "best_split": self.best_split and self.best_split.to_dict(),
            "answers": [answer.to_dict() for answer in self.answers],
            "tried": [row.to_dict() for row in self.tried],
            "compared_by": "usd_per_hour" if self.has_price else "total_chips",
            "is_whole": self.is_whole,
        }
