"""The devices of a slice: as many as its chips have, cut as the planner cuts them, or a line that says why not."""

import math

import pytest

pytest.importorskip("jax")

import jax
import numpy as np
from jax.experimental import topologies

from slicewise.catalog.load import chips
from slicewise.catalog.slices import load_slice, standard_slices
from slicewise.errors import InputError
from slicewise.spec.layout import kv_layout
from slicewise.spec.topology import Slice
from slicewise.verify.devices import cpu_devices, mesh_of, tpu_devices

SLICES = [
    slice_ for chip in chips().values() if not chip.is_gpu for slice_ in standard_slices(chip) if slice_.n_chips <= 1024
]


class Device:
    """A device that a mesh can be made of."""

    platform, device_kind, process_index = "made up", "made up", 0

    def __init__(self, number: int, coords: tuple[int, ...], core_on_chip: int) -> None:
        self.id, self.coords, self.core_on_chip = number, coords, core_on_chip


def grid(slice_: Slice) -> np.ndarray:
    shape = (*slice_.shape, slice_.chip.devices_per_chip)
    found = np.empty(shape, dtype=object)
    for number, place in enumerate(np.ndindex(shape)):
        found[place] = Device(number, place[:-1], place[-1])
    return found


@pytest.mark.parametrize("slice_", SLICES, ids=lambda slice_: slice_.name)
def test_the_mesh_is_cut_as_the_planner_cuts_the_cache(slice_: Slice) -> None:
    devices = slice_.chip.devices_per_chip
    for n_kv_heads in (1, 2, 3, 4, 8, 16, 40):
        mesh, layout = mesh_of(slice_, grid(slice_), n_kv_heads), kv_layout(slice_, n_kv_heads)
        assert mesh.shape["y"] == math.gcd(n_kv_heads, slice_.n_chips * devices)
        assert mesh.shape["y"] * mesh.shape["z"] == slice_.n_chips * devices
        if devices == 1:
            assert (mesh.shape["y"], mesh.shape["z"]) == (layout.head_shards, layout.batch_shards)


def test_devices_that_share_a_head_are_a_block_of_the_torus() -> None:
    slice_ = load_slice("v5e:8x8")
    mesh = mesh_of(slice_, grid(slice_), 8)
    for row in mesh.devices:
        sides = [{device.coords[axis] for device in row} for axis in range(2)]
        assert len(row) == math.prod(len(side) for side in sides) == 8
        assert all(max(side) - min(side) == len(side) - 1 for side in sides)


# -- what the compiler describes -------------------------------------------------------------------------------------


class Description:
    """What the compiler gives for the name of a slice."""

    def __init__(self, slice_: Slice) -> None:
        self.devices = list(grid(slice_).reshape(-1))[::-1]
        for device in self.devices:
            device.coords = (*device.coords, 0, 0)[:3]


def test_devices_are_put_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def describe(**words: object) -> Description:
        asked.append(words)
        return Description(slice_)

    monkeypatch.setattr(topologies, "get_topology_desc", describe)
    for name in ("v5e:1x1", "v5e:2x4", "v5p:2x2x4", "tpu7x:2x2x1"):
        slice_ = load_slice(name)
        found = tpu_devices(slice_)
        assert found.shape == (*slice_.shape, slice_.chip.devices_per_chip)
        for place in np.ndindex(found.shape):
            device = found[place]
            assert (device.coords[: len(slice_.shape)], device.core_on_chip) == (place[:-1], place[-1])
    assert [words["topology_name"] for words in asked] == ["v5e:1x1", "v5e:2x4", "v5p:2x2x4", "tpu7x:2x2x1"]
    assert ["chips_per_host_bounds" in words for words in asked] == [True, False, False, False]


def test_a_slice_that_the_compiler_does_not_know_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(**_: object) -> None:
        raise jax.errors.JaxRuntimeError("INVALID_ARGUMENT: no such topology\n  at one place\n  at another")

    monkeypatch.setattr(topologies, "get_topology_desc", describe)
    expected = r"--slice v5e:4x4: the TPU compiler does not describe it \(INVALID_ARGUMENT: no such topology\)$"
    with pytest.raises(InputError, match=expected):
        tpu_devices(load_slice("v5e:4x4"))


def test_a_chip_of_more_devices_than_expected_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topologies, "get_topology_desc", lambda **_: Description(load_slice("v5e:4x4")))
    with pytest.raises(InputError, match=r"--slice v4:2x2x2: the TPU compiler sees 16 devices in its 8 chips"):
        tpu_devices(load_slice("v4:2x2x2"))


def test_a_process_with_too_few_devices_of_the_cpu_is_told() -> None:
    with pytest.raises(InputError, match=r"--slice v5e:16x16: jax has [0-9]+ CPU devices here"):
        cpu_devices(load_slice("v5e:16x16"))
    assert cpu_devices(load_slice("v5e:1x1")).shape == (1, 1, 1)
