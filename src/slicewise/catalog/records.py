"""The catalog's files as they may be written, and their turning into specs. Unknown keys are refused.

Records are plain dataclasses, so that the package's own data loads in milliseconds; `catalog.check` validates the same
records field by field, in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from slicewise.spec.chip import Chip, Price
from slicewise.spec.measured import MeasuredStep
from slicewise.spec.provenance import Provenance, Source
from slicewise.units import parse

Sources = dict[str, Source]
_STRICT = {"extra": "forbid"}
"""Read by pydantic where `catalog.check` validates a record: unknown keys are refused."""
_RATE_UNITS = {
    "FLOP/s": "FLOP/s",
    "OP/s": "FLOP/s",
    "TFLOP/s": "FLOP/s",
    "TOP/s": "FLOP/s",
    "B/s": "B/s",
    "GB/s": "B/s",
}
_QUANTITIES = ("hbm", "usable_hbm", "hbm_bandwidth", "link", "hop", "dcn", "node", "clock")
_BASE_UNIT = {**_RATE_UNITS, "GB": "B", "GiB": "B", "us": "s", "GHz": "Hz"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """A document."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    title: str
    url: str
    date: str

    def to_spec(self, key: str) -> Source:
        """The source under its key."""
        return Source(key=key, title=self.title, url=self.url, date=self.date)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A figure as its source prints it."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    value: float
    unit: str
    source: str
    also: str = ""

    @property
    def base(self) -> float:
        """The figure in its base unit."""
        return parse(f"{self.value} {self.unit}", _BASE_UNIT[self.unit])

    def provenance(self, sources: Sources) -> Provenance:
        """The figure as printed, with its source."""
        printed = f"{self.value:g} {self.unit}".replace("e+", "e")
        return Provenance(printed=printed, source=sources[self.source], note=self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipRecord:
    """One chip of chips.toml."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    title: str
    kind: str
    aliases: list[str]
    shapes: list[str]
    shapes_source: str
    hbm: Quantity
    usable_hbm: Quantity | None = None
    hbm_bandwidth: Quantity
    flops: dict[str, Quantity]
    link: Quantity
    hop: Quantity
    dcn: Quantity | None = None
    node: Quantity | None = None
    clock: Quantity | None = None
    family: str = ""
    wrap: str = "never"
    cores_in_name: int = 1
    devices_per_chip: int = 1
    chips_per_host: int = 4
    single_host_chips: int = 4
    domain_chips: int = 0

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> ChipRecord:
        """The record of a parsed TOML table.

        Raises:
            TypeError: a key is unknown or missing.
        """
        words: dict[str, Any] = {
            key: Quantity(**value) if key in _QUANTITIES else value for key, value in entry.items()
        }
        return cls(**{**words, "flops": {dtype: Quantity(**rate) for dtype, rate in entry.get("flops", {}).items()}})

    def to_spec(self, name: str, sources: Sources, prices: tuple[Price, ...]) -> Chip:
        """The chip in base units, with the provenance of each figure."""
        usable = self.usable_hbm or self.hbm
        facts = {
            "hbm_bytes": self.hbm.provenance(sources),
            "usable_hbm_bytes": usable.provenance(sources),
            "hbm_bytes_per_s": self.hbm_bandwidth.provenance(sources),
            "link_bytes_per_s": self.link.provenance(sources),
            "hop_s": self.hop.provenance(sources),
            "shapes": Provenance(printed=", ".join(self.shapes), source=sources[self.shapes_source]),
        }
        facts |= {f"flops_per_s.{dtype}": rate.provenance(sources) for dtype, rate in self.flops.items()}
        if self.usable_hbm is None:
            facts["usable_hbm_bytes"] = Provenance(
                printed=f"{self.hbm.value:g} {self.hbm.unit} nominal",
                source=sources[self.hbm.source],
                note="what the engine can use of it is not known here",
            )
        if self.clock:
            facts["clock_hz"] = self.clock.provenance(sources)
        dcn = self.dcn.base if self.dcn else None
        if self.dcn:
            facts["dcn_bytes_per_s"] = self.dcn.provenance(sources)
        if self.node:
            dcn = self.node.base / self.domain_chips
            facts["node_bytes_per_s"] = self.node.provenance(sources)
            facts["dcn_bytes_per_s"] = Provenance(
                printed=f"{self.node.value:g} {self.node.unit} a node over {self.domain_chips} GPUs",
                source=sources[self.node.source],
            )
        return Chip(
            name=name,
            title=self.title,
            kind=self.kind,
            hbm_bytes=self.hbm.base,
            usable_hbm_bytes=usable.base,
            hbm_bytes_per_s=self.hbm_bandwidth.base,
            flops_per_s=MappingProxyType({dtype: rate.base for dtype, rate in self.flops.items()}),
            link_bytes_per_s=self.link.base,
            hop_s=self.hop.base,
            shapes=tuple(tuple(int(side) for side in shape.split("x")) for shape in self.shapes),
            wrap=self.wrap,
            dcn_bytes_per_s=dcn,
            domain_chips=self.domain_chips,
            node_bytes_per_s=self.node.base if self.node else None,
            clock_hz=self.clock.base if self.clock else None,
            family=self.family,
            cores_in_name=self.cores_in_name,
            devices_per_chip=self.devices_per_chip,
            chips_per_host=self.chips_per_host,
            single_host_chips=max(self.single_host_chips, self.chips_per_host),
            aliases=tuple(self.aliases),
            prices=prices,
            provenance=MappingProxyType(facts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRecord:
    """One quote of prices.toml."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    chip: str
    usd_per_chip_hour: float
    provider: str
    tier: str
    date: str
    source: str
    region: str = "not stated"

    def to_spec(self, sources: Sources) -> Price:
        """The quote with its source."""
        printed = f"${self.usd_per_chip_hour:g} per chip-hour, {self.provider}, {self.tier}, {self.date}"
        return Price(
            usd_per_chip_hour=self.usd_per_chip_hour,
            provider=self.provider,
            tier=self.tier,
            date=self.date,
            region=self.region,
            provenance=Provenance(printed=printed, source=sources[self.source]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStepRecord:
    """One published decode step of measured.toml, as its source prints it."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    model: str
    slice: str
    weights: str
    kv: str
    batch: int
    context: int
    tokens_per_s_per_sequence: float
    source: str

    def to_spec(self, sources: Sources) -> MeasuredStep:
        """The step with its source."""
        printed = f"{self.tokens_per_s_per_sequence:g} tokens/s a sequence"
        return MeasuredStep(
            model=self.model,
            slice=self.slice,
            weights=self.weights,
            kv=self.kv,
            batch=self.batch,
            context_tokens=self.context,
            step_s=1 / self.tokens_per_s_per_sequence,
            provenance=Provenance(printed=printed, source=sources[self.source]),
        )
