"""Reads what a checkpoint weighs from its safetensors files, without reading a weight.

The header of such a file is eight bytes of length and one JSON object, which the standard library reads. The
safetensors library is not used: it is a binary more to install, and slicewise starts with numpy alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from slicewise.catalog.config_keys import shown
from slicewise.errors import InputError
from slicewise.units import BITS_PER_BYTE

INDEX = "model.safetensors.index.json"
_MOST_HEADER_BYTES = 100_000_000
"""The format's own limit on a header. [B]"""
_LEAST_HEADER_BYTES = 2
_MOST_BYTES = 2**60
_LENGTH_BYTES = 8
_LFS_POINTER = b"version https://git-lfs"
_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16,
    "U16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I8": 8, "U8": 8,
    "BOOL": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
_MEND = "download it again, or move it away"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What the files of a checkpoint say.

    Attributes:
        n_bytes: bytes of its tensors. [B]
        source: the files that say so.
        elements: stored elements by part of the model (`lm_head`, `model.layers`), packed ones as they are packed;
            empty where only an index was read.
        bytes_by_dtype: bytes by the dtype of storage; empty where only an index was read. [B]
    """

    n_bytes: int
    source: str
    elements: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    bytes_by_dtype: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """What the safetensors files of a folder hold: by their headers where all are there, else by their index.

    Returns:
        None where there are neither, or where the index gives no size.

    Raises:
        InputError: a file is malformed or cut off.
    """
    index = _index(folder / INDEX)
    shards = _shards(folder, index)
    if shards:
        return _by_headers(shards)
    size = _total_size(index, folder / INDEX) if index else None
    return None if size is None else Checkpoint(n_bytes=size, source=INDEX)


def _index(path: Path) -> dict[str, Any] | None:
    """The index of the shards; None where there is none."""
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > _MOST_HEADER_BYTES:
            raise InputError(f"{path}: is larger than {_MOST_HEADER_BYTES:,} bytes, so no index; {_MEND}")
        found = _object(path.read_bytes(), path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error}); {_MEND}") from error
    if not isinstance(found.get("weight_map", {}), dict) or not isinstance(found.get("metadata", {}), dict):
        raise InputError(f"{path}: weight_map and metadata must be objects; {_MEND}")
    return found


def _total_size(index: Mapping[str, Any], path: Path) -> int | None:
    size = index.get("metadata", {}).get("total_size")
    if size is None:
        return None
    is_number = isinstance(size, int | float) and not isinstance(size, bool)
    if not (is_number and 1 <= size <= _MOST_BYTES and size == int(size)):
        raise InputError(f"{path}: total_size is {shown(size)}; it must be a number of bytes; {_MEND}")
    return int(size)


def _shards(folder: Path, index: Mapping[str, Any] | None) -> list[Path]:
    """The files of the checkpoint, if all of them are there."""
    if index and index.get("weight_map"):
        names = set(index["weight_map"].values())
        strange = next((name for name in names if not isinstance(name, str) or Path(name).name != name), None)
        if strange is not None:
            raise InputError(f"{folder / INDEX}: weight_map names {shown(strange)}, which is no file; {_MEND}")
        paths = [folder / name for name in sorted(names)]
        return paths if all(_holds_tensors(path) for path in paths) else []
    found = sorted(path for path in folder.glob("*.safetensors") if _holds_tensors(path))
    # Some repositories hold the same weights once more, in the layout of their authors, and adapters.
    return [path for path in found if path.name.startswith("model")] or [
        path for path in found if not path.name.startswith("adapter")
    ]


def _holds_tensors(path: Path) -> bool:
    """Whether a file is there itself, and not what git keeps in its place."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_LFS_POINTER)) != _LFS_POINTER
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error}); {_MEND}") from error


def _by_headers(paths: list[Path]) -> Checkpoint:
    elements: Counter[str] = Counter()
    n_bytes: Counter[str] = Counter()
    for path in paths:
        for name, dtype, count, size in _tensors(path):
            elements[_part(name)] += count
            n_bytes[dtype] += size
    files = f"the header of {paths[0].name}" if len(paths) == 1 else f"the headers of {len(paths)} safetensors files"
    return Checkpoint(
        n_bytes=n_bytes.total(),
        source=files,
        elements=MappingProxyType(dict(elements)),
        bytes_by_dtype=MappingProxyType(dict(n_bytes)),
    )


def _part(name: str) -> str:
    """The part of the model that a tensor belongs to."""
    first, _, rest = name.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first in ("model", "language_model") and rest else first


def _tensors(path: Path) -> list[tuple[str, str, int, int]]:
    """Name, dtype, elements and bytes of each tensor of one file."""
    try:
        file_bytes = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if not _LEAST_HEADER_BYTES <= length <= min(_MOST_HEADER_BYTES, file_bytes - _LENGTH_BYTES):
                raise InputError(f"{path}: its header cannot have {length:,} bytes; {_MEND}")
            header = _object(file.read(length), path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error}); {_MEND}") from error
    room = file_bytes - _LENGTH_BYTES - length
    return [_tensor(name, entry, path, room) for name, entry in header.items() if name != "__metadata__"]


def _tensor(name: str, entry: Any, path: Path, room: int) -> tuple[str, str, int, int]:
    dtype = entry.get("dtype") if isinstance(entry, dict) else None
    shape, ends = (_sizes(entry, key) for key in ("shape", "data_offsets"))
    if not isinstance(dtype, str) or shape is None or ends is None or len(ends) != 2:  # noqa: PLR2004  # two ends
        raise InputError(f"{path}: the entry of {name[:60]} is not a tensor's; {_MEND}")
    if dtype not in _BITS:
        raise InputError(f"{path}: {name[:60]} has dtype {dtype[:20]}, which is not known here; move the file away")
    count, size = math.prod(shape), ends[1] - ends[0]
    if size * BITS_PER_BYTE != count * _BITS[dtype]:
        raise InputError(f"{path}: {name[:60]} has {size:,} bytes, not those of its shape; {_MEND}")
    if ends[1] > room:
        raise InputError(f"{path}: is cut off before {name[:60]} ends; {_MEND}")
    return name, dtype, count, size


def _sizes(entry: Any, key: str) -> list[int] | None:
    """A list of sizes in a tensor's entry; None where there is none."""
    value = entry.get(key) if isinstance(entry, dict) else None
    is_sizes = isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)
    return value if is_sizes else None


def _object(text: bytes, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: holds no valid JSON ({str(error)[:60]}); {_MEND}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: holds a {type(found).__name__}, not an object; {_MEND}")
    return found
