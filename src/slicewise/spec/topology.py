"""Slices: chips wired together, and which mesh axes are rings."""

from __future__ import annotations

import math
from dataclasses import dataclass

from slicewise.spec.chip import Chip

RING_LENGTH = 16
CUBE_LENGTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a torus.

    Attributes:
        length: chips along the axis.
        wraps: whether its ends are joined (a ring) or not (a line).
        link_bytes_per_s: one link, one way. [B/s]
    """

    length: int
    wraps: bool
    link_bytes_per_s: float

    def __str__(self) -> str:
        return f"{'ring' if self.wraps else 'line'} of {self.length}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """GPUs behind switches: scale-up domains, joined by the node's network.

    Attributes:
        n_chips: GPUs in all.
        domain_chips: GPUs of one scale-up domain.
        link_bytes_per_s: scale-up bandwidth of one GPU, one way. [B/s]
        node_bytes_per_s: what leaves one domain, one way; inf where it is not known, and left out. [B/s]
    """

    n_chips: int
    domain_chips: int
    link_bytes_per_s: float
    node_bytes_per_s: float

    def __str__(self) -> str:
        nodes = -(-self.n_chips // self.domain_chips)
        gpus = "1 GPU" if self.n_chips == 1 else f"{self.n_chips} GPUs"
        return f"{gpus} in {nodes} domain{'s' if nodes > 1 else ''} of up to {self.domain_chips}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A set of chips that serve one replica of a model, with its axes (TPU) or its domain (GPU)."""

    chip: Chip
    shape: tuple[int, ...]

    @property
    def n_chips(self) -> int:
        """Chips in the slice."""
        return math.prod(self.shape)

    @property
    def topology(self) -> str:
        """Axis lengths as the catalog prints them, such as 2x4; the count for GPUs."""
        return "x".join(map(str, self.shape))

    @property
    def name(self) -> str:
        """Chip and topology, such as v5e:2x4 or h100:8."""
        return f"{self.chip.name}:{self.topology}"

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The torus axes longer than 1; empty for GPUs."""
        if self.chip.is_gpu:
            return ()
        wraps = [_wraps(self.chip.wrap, self.shape, length) for length in self.shape]
        return tuple(
            Axis(length=length, wraps=wrap, link_bytes_per_s=self.chip.link_bytes_per_s)
            for length, wrap in zip(self.shape, wraps, strict=True)
            if length > 1
        )

    @property
    def domain(self) -> Domain | None:
        """The scale-up domains of a GPU slice; None for TPUs."""
        if not self.chip.is_gpu:
            return None
        return Domain(
            n_chips=self.n_chips,
            domain_chips=self.chip.domain_chips,
            link_bytes_per_s=self.chip.link_bytes_per_s,
            node_bytes_per_s=math.inf if self.chip.node_bytes_per_s is None else self.chip.node_bytes_per_s,
        )

    @property
    def n_hosts(self) -> int:
        """Hosts that the slice spans: one where one can hold it, else hosts of the usual number of chips."""
        if self.n_chips <= self.chip.single_host_chips:
            return 1
        return math.ceil(self.n_chips / self.chip.chips_per_host)


def _wraps(rule: str, shape: tuple[int, ...], length: int) -> bool:
    if rule == "axis-of-16":
        return length == RING_LENGTH
    if rule == "cubes-of-4":
        return all(side % CUBE_LENGTH == 0 for side in shape)
    return False
