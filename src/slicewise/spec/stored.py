"""How many bytes each weight takes: all at one dtype, or matrix by matrix as a quantised checkpoint has them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from slicewise.spec.arrays import Tensor
from slicewise.spec.model import Model
from slicewise.spec.precision import BYTES_PER_ELEMENT
from slicewise.spec.quantisation import Scheme
from slicewise.spec.tensors import weight_tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A weight as it is stored, over the layers that store it alike.

    Attributes:
        tensor: the declared array, of these layers alone.
        dtype: of its elements.
        element_bytes: bytes of its elements, over all layers. [B]
        scale_bytes: bytes of its scales, zero points and the like, over all layers. [B]
        scheme: how it is quantised; None where it is not.
    """

    tensor: Tensor
    dtype: str
    element_bytes: float
    scale_bytes: float = 0.0
    scheme: Scheme | None = None

    @property
    def n_bytes(self) -> float:
        """Bytes, over all layers. [B]"""
        return self.element_bytes + self.scale_bytes

    def __str__(self) -> str:
        scales = f" and {self.scale_bytes:,.0f} B of scales" if self.scale_bytes else ""
        return f"{self.tensor}, {self.dtype}{scales}"


def uniform(model: Model, dtype: str) -> tuple[StoredTensor, ...]:
    """Every stored weight at one dtype, without scales."""
    return tuple(_plain(tensor, dtype) for tensor in weight_tensors(model) if tensor.stored)


def as_checkpoint(model: Model) -> tuple[StoredTensor, ...]:
    """Every stored weight as the checkpoint has it."""
    found: list[StoredTensor] = []
    for tensor in weight_tensors(model):
        if not tensor.stored:
            continue
        if model.quantisation is None:
            found.append(_plain(tensor, model.checkpoint_dtype))
            continue
        scheme_of = model.quantisation.scheme_of(tensor)
        groups: dict[Scheme | None, list[int | None]] = {}
        for layer in tensor.layers or (None,):
            groups.setdefault(scheme_of(layer), []).append(layer)
        for scheme, layers in groups.items():
            part = _of_layers(tensor, layers)
            found.append(_plain(part, model.checkpoint_dtype) if scheme is None else _quantised(part, scheme))
    return tuple(found)


def _of_layers(tensor: Tensor, layers: list[int | None]) -> Tensor:
    kept = tuple(layer for layer in layers if layer is not None)
    if len(kept) == len(tensor.layers):
        return tensor
    return replace(tensor, dims=(("n_layers", len(kept)), *tensor.dims[1:]), layers=kept)


def _plain(tensor: Tensor, dtype: str) -> StoredTensor:
    return StoredTensor(tensor=tensor, dtype=dtype, element_bytes=tensor.size * BYTES_PER_ELEMENT[dtype])


def _quantised(tensor: Tensor, scheme: Scheme) -> StoredTensor:
    n_in, n_out = (size for _, size in tensor.dims[-2:])
    matrices = math.prod(size for _, size in tensor.dims[:-2])
    return StoredTensor(
        tensor=tensor,
        dtype=scheme.dtype,
        element_bytes=tensor.size * BYTES_PER_ELEMENT[scheme.dtype],
        scale_bytes=matrices * scheme.overhead_bytes(n_in, n_out),
        scheme=scheme,
    )
