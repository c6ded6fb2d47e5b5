"""How near real engines come to the bound: fitted figures of one engine on one family of chips, and their error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """How far expected times were from measurements that the fit never saw.

    Attributes:
        n_rows: measurements of the chips that the figures are of. []
        n_models: models that they are of. []
        range_rows: measurements, of other chips too, that the median and the range are of. []
        median: median absolute error. []
        low: of 10 measurements, 8 lie between this share of what was expected, []
        high: and this one. []
        held: share of measurements that the range held of models, or engines, that neither the fit nor the range ever
            saw; None where that is not known. []
    """

    n_rows: int
    n_models: int
    range_rows: int
    median: float
    low: float
    high: float
    held: float | None = None

    def widened(self, other: Error) -> Error:
        """A range that takes in another, which tells how far it reaches, and what it held."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return replace(self, low=low, high=high, range_rows=other.range_rows, held=other.held)


OWN = "by the user"
"""When a user's own measurements were made, as the file says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much longer measured times of a TPU took than its compiler's table has it.

    Attributes:
        name: of the fit.
        engine: whose times were measured, with its version.
        chips: those that were measured.
        models: those that were measured.
        most_chips: the most that worked together. []
        measured: when.
        sources: the files of the measurements.
        n_rows: measurements. []
        step_ratio: measured over expected steps, the median. []
        prefill_ratio: the same of prefill; 1 where none was measured. []
        errors: by GROUPS.
    """

    name: str
    engine: str
    chips: tuple[str, ...]
    models: tuple[str, ...]
    most_chips: int
    measured: str
    sources: tuple[str, ...]
    n_rows: int
    step_ratio: float
    prefill_ratio: float
    errors: Mapping[str, Error]


LARGE = 64
"""Batch from which a step counts as one of a large batch, whose range is another."""
SMALL = 32
"""The largest batch below that was measured."""
LARGE_BATCHES = " large"
"""How the name of their group ends."""
GROUPS = tuple(
    f"{phase} {chips}{batch}"
    for phase, batches in (("decode", ("", LARGE_BATCHES)), ("prefill", ("",)))
    for chips in ("1", "2+")
    for batch in batches
)
"""What has a range of its own: decode on one chip or several, at small and at large batches; prefill."""


def group_of(phase: str, n_chips: int, batch: float) -> str:
    """The group of a time: its phase ("decode" or "prefill"), one chip or several, and of a step a large batch."""
    large = LARGE_BATCHES if phase == "decode" and batch >= LARGE else ""
    return f"{phase} {'1' if n_chips == 1 else '2+'}{large}"


def on_one_chip(group: str) -> str:
    """The group of the same times on one chip.

    >>> on_one_chip("decode 2+ large")
    'decode 1 large'
    """
    return group.replace("2+", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Fitted figures of one engine on one family of chips.

    Attributes:
        name: of the fit: family and engine.
        family: chips of one architecture, such as hopper.
        engine: and its version, as the source names it.
        chips: those that were measured.
        models: those that were measured.
        most_chips: the most that worked together. []
        measured: when, as the sources say.
        sources: keys of sources.toml, or the file of a user's own measurements.
        n_rows: measurements. []
        is_calibrated: the chip itself was measured; otherwise the figures are those of other chips.
        weight_read_efficiency: share of the HBM bandwidth at which weights are read. []
        kv_read_efficiency: share of the HBM bandwidth at which the cache is read. []
        matmul_efficiency: share of the peak FLOP rate that the FLOPs of a step add at. []
        network_efficiency: share of the rate of a collective's formula. []
        layer_s: launches, norms and waiting, a layer. [s]
        sync_s: what a layer takes more where several chips work on it. [s]
        token_passes: a sequence's cost in a layer, in passes of its activations through HBM. []
        prefill_efficiency: share of the peak FLOP rate in prefill, by the bits of a matmul's operands. []
        prefill_token_passes: a prompt token's cost in a layer, in passes of its activations through HBM. []
        errors: by GROUPS.
        shared: names of the figures that are fitted to rows of other chips too, with these alike.
        shared_chips: the chips of those rows.
        shared_rows: how many they are. []
        as_shipped: names of the figures that a user's rows hardly tell: they are held near the shipped ones.
        other_engines: engines that were left out in turn, to tell how far an engine that was not measured lies off.
        other_engine_errors: by GROUPS, their errors; empty where no engines were compared.
    """

    name: str
    family: str
    engine: str
    chips: tuple[str, ...]
    models: tuple[str, ...]
    most_chips: int
    measured: str
    sources: tuple[str, ...]
    n_rows: int
    is_calibrated: bool
    weight_read_efficiency: float
    kv_read_efficiency: float
    matmul_efficiency: float
    network_efficiency: float
    layer_s: float
    sync_s: float
    token_passes: float
    prefill_efficiency: Mapping[int, float]
    prefill_token_passes: float
    errors: Mapping[str, Error]
    shared: tuple[str, ...] = ()
    shared_chips: tuple[str, ...] = ()
    shared_rows: int = 0
    as_shipped: tuple[str, ...] = ()
    other_engines: tuple[str, ...] = ()
    other_engine_errors: Mapping[str, Error] = field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        """Whether a user measured it."""
        return self.measured == OWN
