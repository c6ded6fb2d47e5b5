"""A time for the step out of the compiler's estimates: what its core, its memory and its network do at once.

The compiler gives cycles for each operation, and moves most matrices from HBM to vector memory (VMEM) ahead of their
use. Of an operation on what lies in VMEM the cycles are the core's work. Of one that reads HBM itself (it streams) they
are the core's work and the transfer, one after the other, where the hardware does both at once. Collectives have no
cycles at all, so the planner's formula stands in. With the HBM's bandwidth W and the clock f:

    core      = cycles / f of what reads VMEM
    streamed  = sum over what streams of max(bytes / W, cycles / f - bytes / W)
    fetched   = bytes moved ahead / W
    estimate  = streamed + max(core + network, fetched)

What streams keeps the HBM busy, so that fetching for later operations hides behind the core's and the network's work
only, or these behind it. Nothing is fitted. It is the compiler's estimate, and no measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from slicewise.verify.reading import Operation, Reading
from slicewise.verify.rows import LAYER_SCOPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the step.

    Attributes:
        name: layers, or what lies outside them.
        core_s: the core's work on what lies in VMEM. [s]
        streamed_s: operations that read HBM themselves, work and transfer at once. [s]
        fetch_s: fetching from HBM beside them. [s]
        ici_s: the network, by the planner's formula. [s]
    """

    name: str
    core_s: float
    streamed_s: float
    fetch_s: float
    ici_s: float

    @property
    def estimate_s(self) -> float:
        """How long the part takes. [s]"""
        return self.streamed_s + max(self.core_s + self.ici_s, self.fetch_s)

    @property
    def binds(self) -> str:
        """What the part waits for, in words."""
        beside = "the core and the network" if self.core_s + self.ici_s > self.fetch_s else "fetching from HBM"
        return f"streaming from HBM, then {beside}" if self.streamed_s > self.estimate_s / 2 else beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The step as the compiler estimates it.

    Attributes:
        parts: layers, and the rest.
        scopes: the compiler's cycles by named scope, in seconds. [s]
        roofline_s: the plan's bound without a network. [s]
        overlapped_s: the plan's bound whose collectives hide as far as they can. [s]
        measured_s: a published measurement of the same step; None where there is none. [s]
        measured_where: its source.
        largest: the costliest operations, and the seconds of each over the step. [s]
        clock_hz: cycles a second. [Hz]
    """

    parts: tuple[Part, ...]
    scopes: Mapping[str, float]
    roofline_s: float
    overlapped_s: float
    measured_s: float | None
    measured_where: str
    largest: tuple[tuple[Operation, float], ...]
    clock_hz: float

    @property
    def estimate_s(self) -> float:
        """How long the step takes. [s]"""
        return sum(part.estimate_s for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "estimate_s": self.estimate_s,
            "step_roofline_s": self.roofline_s,
            "step_overlapped_s": self.overlapped_s,
            "measured_s": self.measured_s,
            "measured_where": self.measured_where,
            "estimate_over_roofline": self.estimate_s / self.roofline_s,
            "measured_over_estimate": self.measured_s / self.estimate_s if self.measured_s else None,
            "clock_hz": self.clock_hz,
            "parts": [{**asdict(part), "estimate_s": part.estimate_s, "binds": part.binds} for part in self.parts],
            "scopes_s": dict(self.scopes),
            "largest": [{**asdict(operation), "seconds": seconds} for operation, seconds in self.largest],
        }


def parts_of(reading: Reading, clock_hz: float, hbm_bytes_per_s: float, ici_s: float) -> tuple[Part, ...]:
    """The parts of a step.

    Args:
        reading: of the program with its layers written out.
        clock_hz: cycles a second of the core. [Hz]
        hbm_bytes_per_s: HBM bandwidth of a device. [B/s]
        ici_s: the layers' collectives. [s]
    """
    everywhere = {*reading.cycles, *reading.fetched_bytes}
    groups = {
        "layers": [scope for scope in everywhere if scope in LAYER_SCOPES],
        "embedding and head": [scope for scope in everywhere if scope not in LAYER_SCOPES],
    }
    return tuple(
        Part(
            name=name,
            core_s=(_sum(reading.cycles, scopes) - _streamed_cycles(reading, scopes)) / clock_hz,
            streamed_s=sum(
                each.count * streamed_s(each, clock_hz, hbm_bytes_per_s)
                for each in reading.streamed
                if each.scope in scopes
            ),
            fetch_s=_sum(reading.fetched_bytes, scopes) / hbm_bytes_per_s,
            ici_s=ici_s if name == "layers" else 0.0,
        )
        for name, scopes in groups.items()
    )


def streamed_s(operation: Operation, clock_hz: float, hbm_bytes_per_s: float) -> float:
    """One run of an operation that reads HBM itself: the transfer, or the work that is not the transfer. [s]"""
    transfer_s = operation.streamed_bytes / hbm_bytes_per_s
    return max(transfer_s, operation.cycles / clock_hz - transfer_s)


def scopes_of(reading: Reading, clock_hz: float) -> dict[str, float]:
    """The compiler's estimate by named scope, the longest first. [s]"""
    found = {scope: cycles / clock_hz for scope, cycles in reading.cycles.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _streamed_cycles(reading: Reading, scopes: list[str]) -> float:
    return sum(each.cycles * each.count for each in reading.streamed if each.scope in scopes)


def _sum(by_scope: Mapping[str, float], scopes: list[str]) -> float:
    return sum(by_scope.get(scope, 0.0) for scope in scopes)
