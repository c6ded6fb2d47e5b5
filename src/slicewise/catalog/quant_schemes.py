"""The schemes that quantised checkpoints store matrices in, with the bytes of their scales.

Scales are counted as checkpoints hold them, but for one scale an output channel, which engines keep in float32.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from slicewise.catalog.config import Config
from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.quantisation import Scheme

FIX = "leave the quantization config out of config.json and give --weights"
NVFP4_GROUP, MX_GROUP = 16, 32
_WIDEST_GROUP = 65_536
_FP32, _FP16, _ONE_BYTE = 4.0, 2.0, 1.0
_SHAPE_BYTES = 16.0
"""Packed matrices of compressed-tensors come with their shape, two int64. [B]"""
_INDEX_BYTES = 4.0
"""The group of an input, an int32. [B]"""
_PRE_SCALE_BYTES = 2.0
"""AWQ and its kin scale each input, in 16 bits, ahead of the matrix. [B]"""


def words(scheme: Scheme) -> dict[str, Any]:
    """A scheme as a record writes it: what differs from the defaults."""
    plain = asdict(Scheme(dtype=scheme.dtype))
    kept = {key: value for key, value in asdict(scheme).items() if key == "dtype" or value != plain[key]}
    return {**kept, "block": list(scheme.block)}


def unknown(part: Config, what: str, known: str) -> UnsupportedModelError:
    """The refusal of a scheme, with the way round it."""
    return UnsupportedModelError(f"{part.origin}: {what} is not supported ({known}); {FIX}")


def fp8(*, static: bool = False) -> Scheme:
    """One scale a matrix, and one for its inputs where they are scaled ahead of time."""
    return Scheme(dtype="fp8", tensor_bytes=_FP32 if static else 0.0)


def eight_bits(dtype: str, *, static: bool = False, pre_scaled: bool = False) -> Scheme:
    """fp8 or int8 with one scale an output channel; the inputs may have a scale, or one each."""
    return Scheme(
        dtype=dtype,
        block=(0, 1),
        tensor_bytes=_FP32 if static else 0.0,
        input_bytes=_PRE_SCALE_BYTES if pre_scaled else 0.0,
    )


def fp8_blocks(outputs: int, inputs: int, scale_bytes: float = _FP32) -> Scheme:
    """One scale a block of outputs and inputs."""
    return Scheme(dtype="fp8", block=(inputs, outputs), scale_bytes=scale_bytes)


def nvfp4(*, group: int = NVFP4_GROUP, static: bool = True, pre_scaled: bool = False) -> Scheme:
    """NVFP4: an fp8 scale for 16 inputs, a float32 one a matrix, and one for its inputs where they are 4 bits too."""
    return Scheme(
        dtype="fp4",
        block=(group, 1),
        scale_bytes=_ONE_BYTE,
        tensor_bytes=_FP32 * (1 + static),
        input_bytes=_PRE_SCALE_BYTES if pre_scaled else 0.0,
    )


def microscaled(dtype: str, group: int = MX_GROUP) -> Scheme:
    """MXFP4 or MXFP8: a scale of 8 bits for 32 inputs."""
    return Scheme(dtype=dtype, block=(group, 1), scale_bytes=_ONE_BYTE)


def grouped(
    bits: int,
    group: int,
    *,
    zero_bits: float = 0.0,
    indexed: bool = False,
    packed: bool = False,
    pre_scaled: bool = False,
) -> Scheme:
    """Integers with a 16-bit scale for each group of inputs; for all inputs where the group is 0.

    Args:
        bits: 4 or 8.
        group: inputs that share a scale.
        zero_bits: bits of each group's zero point.
        indexed: the group of each input is stored.
        packed: the matrix' shape is stored.
        pre_scaled: each input has a scale of its own, too.
    """
    return Scheme(
        dtype=f"int{bits}",
        block=(group, 1),
        scale_bytes=_FP16,
        zero_point_bits=zero_bits,
        tensor_bytes=_SHAPE_BYTES if packed else 0.0,
        input_bytes=(_INDEX_BYTES if indexed else 0.0) + (_PRE_SCALE_BYTES if pre_scaled else 0.0),
    )


def bits_of(part: Config, *names: str, default: int | None = None) -> int:
    """Bits of an element, 4 or 8.

    Raises:
        InputError: it is missing or no whole number.
        UnsupportedModelError: it is neither.
    """
    bits = part.size(*names, default=default)
    if bits not in (4, 8):
        raise unknown(part, f"{names[0]} {bits:,}", "4 and 8 are")
    return bits


def group_of(part: Config, *names: str, default: int = 0) -> int:
    """Inputs that share a scale; 0 for all of a matrix, which configs write as -1 or null.

    Raises:
        InputError: it is no whole number, or absurd.
    """
    group = part.size(*names, default=default or -1, least=-1)
    if group == 0 or group > _WIDEST_GROUP:
        raise InputError(
            f"{part.origin}: {names[0]} is {group:,}; it must be -1 or the inputs that share a scale, such as 128"
        )
    return max(group, 0)
