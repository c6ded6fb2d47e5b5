"""The peak rate of a chip that serves a compute dtype."""

from __future__ import annotations

from slicewise.errors import InputError
from slicewise.spec.chip import Chip


def peak_rate(chip: Chip, compute: str) -> str:
    """The dtype whose peak rate a chip offers for a compute dtype: fp16 runs at the rate of bf16.

    Raises:
        InputError: the chip does not offer it.
    """
    rate = "bf16" if compute == "fp16" else compute
    if rate not in chip.flops_per_s:
        raise InputError(
            f"--compute {compute}: {chip.name} has no peak rate for it; offered: {', '.join(chip.flops_per_s)}"
        )
    return rate
