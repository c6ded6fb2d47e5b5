"""The devices of a slice as jax sees them: described by the TPU compiler, or virtual ones of the CPU."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh
from numpy.typing import NDArray

from slicewise.errors import InputError
from slicewise.program.sharding import make_mesh
from slicewise.spec.layout import head_split
from slicewise.spec.topology import Axis, Slice


def tpu_devices(slice_: Slice) -> NDArray[np.object_]:
    """The devices of a TPU slice by their place in the torus, with a last axis where a chip has several.

    Raises:
        InputError: the compiler does not describe such a slice.
    """
    chip = slice_.chip
    more: dict[str, Any] = {"chips_per_host_bounds": (1, 1, 1)} if slice_.n_chips == 1 else {}
    try:
        described = topologies.get_topology_desc(platform="tpu", topology_name=slice_.name, **more).devices
    except jax.errors.JaxRuntimeError as error:
        first = str(error).splitlines()[0][:160]
        raise InputError(f"--slice {slice_.name}: the TPU compiler does not describe it ({first})") from None
    if len(described) != slice_.n_chips * chip.devices_per_chip:
        raise InputError(
            f"--slice {slice_.name}: the TPU compiler sees {len(described)} devices in its {slice_.n_chips} chips,"
            f" and programs for {chip.name} want one a chip; give a slice of another chip"
        )
    grid = np.empty((*slice_.shape, chip.devices_per_chip), dtype=object)
    for device in described:
        grid[(*device.coords[: len(slice_.shape)], device.core_on_chip)] = device
    return grid


def cpu_devices(slice_: Slice) -> NDArray[np.object_]:
    """As many virtual devices of the CPU, in the same order.

    Raises:
        InputError: jax was started with fewer.
    """
    shape = (*slice_.shape, slice_.chip.devices_per_chip)
    found = jax.devices("cpu")
    if len(found) < math.prod(shape):
        raise InputError(
            f"--slice {slice_.name}: jax has {len(found)} CPU devices here; run slicewise in a process of its own,"
            " without --xla_force_host_platform_device_count in XLA_FLAGS"
        )
    return np.asarray(found[: math.prod(shape)], dtype=object).reshape(shape)


def mesh_of(slice_: Slice, devices: NDArray[np.object_], n_kv_heads: int) -> Mesh:
    """The mesh of the planner's layout: KV heads over as many ways as divide them, the batch over the rest.

    Devices of one chip count as a short axis of the torus.
    """
    wraps = {axis.length: axis.wraps for axis in slice_.axes}
    axes = tuple(Axis(length=n, wraps=wraps.get(n, False), link_bytes_per_s=1.0) for n in devices.shape)
    return make_mesh(devices, head_split(axes, math.gcd(devices.size, n_kv_heads)))
