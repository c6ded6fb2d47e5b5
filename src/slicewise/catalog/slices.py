"""Slices by the names that people use: v5e:4x2, v6e-8, v5litepod-16, v5p-8 (4 chips), h100:8."""

from __future__ import annotations

import math
import re

from slicewise.catalog.load import find_chip
from slicewise.errors import InputError, UnknownNameError
from slicewise.spec.chip import Chip
from slicewise.spec.topology import Slice

_COUNT = r"[0-9]{1,6}"
_MACHINE = re.compile(rf"^(ct[a-z0-9]+|tpu7x)-(?:hightpu|standard)-({_COUNT})t$")
_TIMES = re.compile(rf"^({_COUNT})\s?[x×]\s?([a-z][a-z0-9-]*)$")
"""People write 8xH100."""


def load_slice(name: str | Slice, word: str = "--slice") -> Slice:
    """A slice by chip and topology, by Google's name, or by a count of GPUs: any of one node, or whole nodes.

    >>> load_slice("v5e:4x2").name, load_slice("v5p-8").name, load_slice("h100:8").n_chips
    ('v5e:2x4', 'v5p:2x2x1', 8)

    Args:
        name: the slice.
        word: the flag that it was given by, for messages.

    Raises:
        InputError: not a slice that is offered.
        UnknownNameError: no such chip.
    """
    if isinstance(name, Slice):
        return name
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{word} '{str(name)[:40]}': write chip and topology, such as v5e:4x4")
    text = _TIMES.sub(r"\2:\1", name.strip().lower()).replace(" ", ":", 1)
    said, machine = f"{word} '{text}'", _MACHINE.match(text)
    if machine:
        return _by_count(find_chip(machine[1]), int(machine[2]), said)
    if ":" in text:
        chip_name, _, topology = text.partition(":")
        chip = find_chip(chip_name)
        if re.fullmatch(_COUNT, topology):
            return _by_count(chip, int(topology), said)
        if re.fullmatch(rf"{_COUNT}(x{_COUNT}){{1,3}}", topology):
            return _by_shape(chip, tuple(int(side) for side in topology.split("x")), said)
        raise InputError(f"{word} '{name}': write chip and topology, such as {_example(chip)}")
    chip_name, _, count = text.rpartition("-")
    if chip_name and re.fullmatch(_COUNT, count):
        try:
            chip = find_chip(chip_name)
        except UnknownNameError:
            chip = find_chip(text)
        return _by_count(chip, _chips_in_name(chip, int(count), said), said)
    raise InputError(f"{word} '{name}': write chip and topology, such as {_example(find_chip(text))}")


def standard_slices(chip: Chip) -> tuple[Slice, ...]:
    """Every slice of a chip that is offered, smallest first."""
    return tuple(Slice(chip=chip, shape=shape) for shape in chip.shapes)


def google_name(slice_: Slice) -> str:
    """Google's accelerator type, such as v5litepod-16 or v5p-8; "" where there is none."""
    prefix = {"v4": "v4", "v5e": "v5litepod", "v5p": "v5p", "v6e": "v6e", "tpu7x": "tpu7x"}.get(slice_.chip.name)
    return f"{prefix}-{slice_.n_chips * slice_.chip.cores_in_name}" if prefix else ""


def _example(chip: Chip) -> str:
    middle = standard_slices(chip)[len(chip.shapes) // 2]
    return middle.name


def _chips_in_name(chip: Chip, count: int, said: str) -> int:
    if count % chip.cores_in_name:
        raise InputError(
            f"{said}: {chip.name} names count TensorCores, {chip.cores_in_name} a chip;"
            f" {count} is not whole chips; write for example {_example(chip)}"
        )
    return count // chip.cores_in_name


def _by_count(chip: Chip, n_chips: int, said: str) -> Slice:
    if n_chips < 1:
        raise InputError(f"{said}: a slice has at least 1 chip; write for example {_example(chip)}")
    found = [s for s in standard_slices(chip) if s.n_chips == n_chips]
    if found:
        return found[0]
    if chip.is_gpu and _is_whole_nodes(chip, n_chips):
        return Slice(chip=chip, shape=(n_chips,))
    counts = ", ".join(str(s.n_chips) for s in standard_slices(chip))
    others = f"; any up to {chip.domain_chips}" if chip.is_gpu else ""
    others += ", whole nodes beyond" if chip.node_bytes_per_s is not None else ""
    raise InputError(f"{said}: no standard {chip.name} slice has {n_chips} chips; offered: {counts}{others}")


def _is_whole_nodes(chip: Chip, n_chips: int) -> bool:
    """GPUs are taken in any number of one node, or in whole nodes where these are joined."""
    whole = n_chips % chip.domain_chips == 0 and chip.node_bytes_per_s is not None
    return n_chips <= chip.domain_chips or whole


def _by_shape(chip: Chip, shape: tuple[int, ...], said: str) -> Slice:
    if chip.is_gpu:
        return _by_count(chip, math.prod(shape), said)
    found = [s for s in standard_slices(chip) if sorted(s.shape) == sorted(shape)]
    if found:
        return found[0]
    offered = ", ".join(s.topology for s in standard_slices(chip))
    raise InputError(f"{said}: {chip.name} has no {'x'.join(map(str, shape))}; standard slices: {offered}")
