"""How near real engines come to the bound: fitted figures of one engine on one family of chips, and their error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """How far expected times were from measurements that the fit never saw.

    Attributes:
        n_rows: measurements. []
        median: median absolute error. []
        low: of 10 measurements, 8 lie between this share of what was expected, []
        high: and this one. []
    """

    n_rows: int
    median: float
    low: float
    high: float


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
        errors: by phase and chips: "decode 1", "decode 2+", "prefill 1", "prefill 2+".
    """

    name: str
    family: str
    engine: str
    chips: tuple[str, ...]
    models: tuple[str, ...]
    most_chips: int
    measured: str
    sources: tuple[str, ...]
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

    def error(self, phase: str, n_chips: int) -> Error:
        """The error of a phase ("decode" or "prefill") on one chip or several; of the phase's other group if need be.

        Raises:
            KeyError: nothing is known of the phase.
        """
        asked = "1" if n_chips == 1 else "2+"
        found = self.errors.get(f"{phase} {asked}")
        return found or self.errors[f"{phase} {'2+' if asked == '1' else '1'}"]
