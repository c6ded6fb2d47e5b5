"""What each TPU's compiler grants a program, read in its refusal of one that is far too large, beside the catalog.

Needs the extra `verify`. Run: python benchmarks/usable_hbm.py
"""

from __future__ import annotations

import os
import sys

from slicewise.catalog.load import chips
from slicewise.spec.chip import Chip
from slicewise.units import show_gib
from slicewise.verify.refusals import refusal
from slicewise.verify.toolchain import find_compiler

SMALLEST = {2: "2x2", 3: "2x2x1"}
"""A slice that the compiler describes without further words, by the sides of the chip's torus."""

TOO_MANY = 2**40
"""Bytes that no chip holds."""


def granted(chip: Chip) -> tuple[int, float]:
    """Devices of a chip as the compiler sees them, and what it grants to each. [B]"""
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415
    from jax.experimental import topologies  # noqa: PLC0415
    from jax.sharding import SingleDeviceSharding  # noqa: PLC0415

    name = f"{chip.name}:{SMALLEST[len(chip.shapes[0])]}"
    devices = topologies.get_topology_desc(platform="tpu", topology_name=name).devices
    too_large = jax.ShapeDtypeStruct((TOO_MANY,), jnp.int8, sharding=SingleDeviceSharding(devices[0]))
    found = None
    try:
        jax.jit(lambda x: x + 1).lower(too_large).compile()
    except jax.errors.JaxRuntimeError as error:
        found = refusal(str(error))
    if found is None or found.available_bytes is None:
        sys.exit(f"{chip.name}: the compiler did not say what it grants")
    return len(devices) // 4, found.available_bytes


def run() -> None:
    """Print the table; exit with 1 where the catalog says something else."""
    compiler = find_compiler("tpu", 1)
    os.environ.update(compiler.environment)
    print(f"{compiler.versions}\n\n| chip | devices | granted to each | to the chip | in the catalog |")
    print("| :-- | --: | --: | --: | --: |")
    wrong = []
    for chip in (each for each in chips().values() if not each.is_gpu):
        devices, available = granted(chip)
        print(
            f"| {chip.name} | {devices} | {show_gib(available)} | {show_gib(devices * available)}"
            f" | {show_gib(chip.usable_hbm_bytes)} |"
        )
        if round(devices * available) != round(chip.usable_hbm_bytes):
            wrong.append(chip.name)
    if wrong:
        sys.exit(f"the catalog differs for {', '.join(wrong)}")


if __name__ == "__main__":
    run()
