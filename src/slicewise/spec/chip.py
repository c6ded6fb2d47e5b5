"""Accelerator chips: rates and capacities of one chip, and how its slices are wired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from slicewise.spec.provenance import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A quote for one chip. [USD per chip-hour]"""

    usd_per_chip_hour: float
    provider: str
    tier: str
    date: str
    provenance: Provenance
    region: str = "not stated"

    def __str__(self) -> str:
        words = (f"${self.usd_per_chip_hour:g} per chip-hour", self.provider, self.tier, self.date)
        return ", ".join(word for word in words if word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One accelerator chip. Rates and capacities are per chip, in base units.

    Attributes:
        hbm_bytes: nominal HBM, as the book rounds it. [B]
        usable_hbm_bytes: what the compiler or the engine can use of it. [B]
        hbm_bytes_per_s: HBM bandwidth. [B/s]
        flops_per_s: peak matmul rate by compute dtype. [FLOP/s]
        link_bytes_per_s: TPU: one ICI link, one way. GPU: scale-up bandwidth, one way. [B/s]
        hop_s: TPU: latency of one ICI hop. GPU: latency of one collective. [s]
        dcn_bytes_per_s: share of the network that leaves the slice or node. [B/s]
        domain_chips: GPUs in one scale-up domain; 0 for TPUs.
        node_bytes_per_s: GPU: what leaves a scale-up domain, one way. [B/s]
        shapes: the standard slices, as tuples of axis lengths.
        wrap: "axis-of-16", "cubes-of-4" or "never".
        chips_per_host: chips of a host in a slice of several hosts.
        single_host_chips: chips that one host can hold at most.
        clock_hz: TPU: cycles a second of its core; None where it is not known. [Hz]
        family: chips of one architecture, such as hopper; "" for those that are alone in theirs.
        cores_in_name: cores a chip counts for in Google's names (v5p-8 is 4 chips: 2); 1 where names count chips.
        provenance: facts as printed, by attribute name.
    """

    name: str
    title: str
    kind: str
    hbm_bytes: float
    usable_hbm_bytes: float
    hbm_bytes_per_s: float
    flops_per_s: Mapping[str, float]
    link_bytes_per_s: float
    hop_s: float
    shapes: tuple[tuple[int, ...], ...]
    wrap: str = "never"
    dcn_bytes_per_s: float | None = None
    domain_chips: int = 0
    node_bytes_per_s: float | None = None
    clock_hz: float | None = None
    family: str = ""
    cores_in_name: int = 1
    devices_per_chip: int = 1
    chips_per_host: int = 4
    single_host_chips: int = 4
    aliases: tuple[str, ...] = ()
    prices: tuple[Price, ...] = ()
    provenance: Mapping[str, Provenance] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_gpu(self) -> bool:
        """Whether the chips of a slice hang on a switch rather than on a torus."""
        return self.kind == "gpu"
