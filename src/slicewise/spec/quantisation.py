"""How a checkpoint stores its weights: which matrices are quantised, to what, and with which scales."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from slicewise.spec.arrays import Tensor
from slicewise.spec.precision import BYTES_PER_ELEMENT
from slicewise.units import BITS_PER_BYTE

LINEAR_ROLES = ("attention", "mlp", "experts", "shared_experts", "indexer", "state_space")
"""Roles of the matrices that a rule for every linear matrix is about."""
NAMED_ROLES = ("router", "head", "embedding", "other")
"""Roles that are quantised only where a rule names the matrix: they are small, or looked up, or decide much."""
_SIDES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How a quantised matrix is stored.

    Attributes:
        dtype: fp8, int8, int4 or fp4: the width of one element.
        block: (inputs, outputs) that share a scale; 0 for the whole side. (128, 128) for fp8 blocks, (0, 1) for one
            scale an output channel, (0, 0) for one a matrix, (g, 1) for groups of g inputs.
        scale_bytes: bytes of one scale. [B]
        zero_point_bits: bits of one zero point; 0 where there is none.
        tensor_bytes: further bytes of one matrix, such as a second scale. [B]
        input_bytes: further bytes of each input of one matrix, such as the group that it belongs to. [B]
    """

    dtype: str
    block: tuple[int, int] = (0, 0)
    scale_bytes: float = 4.0
    zero_point_bits: float = 0.0
    tensor_bytes: float = 0.0
    input_bytes: float = 0.0

    def scales(self, n_in: int, n_out: int) -> int:
        """Scales of one matrix.

        >>> Scheme(dtype="fp8", block=(128, 128)).scales(7168, 576), Scheme(dtype="fp8").scales(7168, 576)
        (280, 1)
        """
        rows, columns = (side or full for side, full in zip(self.block, (n_in, n_out), strict=True))
        return -(-n_in // rows) * -(-n_out // columns)

    def overhead_bytes(self, n_in: int, n_out: int) -> float:
        """Bytes of all that one matrix has beside its elements. [B]"""
        n_scales = self.scales(n_in, n_out)
        shared = n_scales * (self.scale_bytes + self.zero_point_bits / BITS_PER_BYTE)
        return shared + n_in * self.input_bytes + self.tensor_bytes


@dataclass(frozen=True, kw_only=True)
class Quantisation:
    """Rules of a checkpoint: the first that matches a matrix decides, and what none matches stays as it was.

    Attributes:
        method: as the config names it.
        rules: (pattern, scheme); the pattern is searched in the matrix's place, "" is every linear matrix.
        ignored: patterns of what is never quantised.
        kv_dtype: dtype of the cache that the checkpoint asks for; None where it says nothing.
        experts_only: only the experts' matrices are quantised.
    """

    method: str
    rules: tuple[tuple[str, Scheme], ...]
    ignored: tuple[str, ...] = ()
    kv_dtype: str | None = None
    experts_only: bool = False

    @property
    def dtype(self) -> str:
        """The narrowest dtype of its rules: where several meet, most elements are the experts' or the MLP's."""
        return min((scheme.dtype for _, scheme in self.rules), key=BYTES_PER_ELEMENT.__getitem__)

    def scheme_of(self, tensor: Tensor) -> Callable[[int | None], Scheme | None]:
        """What stores one layer's matrix, by its layer (None outside the layers); None where it stays as it was.

        Experts are taken as one: their patterns are those of the first expert.
        """
        may_be = tensor.role in LINEAR_ROLES and (tensor.role == "experts" or not self.experts_only)
        if sides(tensor) < _SIDES or not (may_be or tensor.role in NAMED_ROLES):
            return lambda _: None
        rules = [rule for rule in self._rules if (may_be if not rule[0] else may_be or _names(rule[0], tensor))]
        if not rules:
            return lambda _: None

        def at(layer: int | None) -> Scheme | None:
            where = place(tensor, layer)
            scheme = next((scheme for _, search, scheme in rules if search(where)), None)
            return None if scheme is None or any(search(where) for search in self._ignored) else scheme

        return at

    @cached_property
    def _rules(self) -> tuple[tuple[str, Callable[[str], object], Scheme], ...]:
        return tuple((pattern, re.compile(pattern).search, scheme) for pattern, scheme in self.rules)

    @cached_property
    def _ignored(self) -> tuple[Callable[[str], object], ...]:
        return tuple(re.compile(pattern).search for pattern in self.ignored)


def sides(tensor: Tensor) -> int:
    """Dimensions of one matrix, its layers and experts left out."""
    return len(tensor.dims) - bool(tensor.layers) - ("experts" in tensor.axes)


def place(tensor: Tensor, layer: int | None) -> str:
    """Where a matrix is in a checkpoint, from the model down: `layers.3.self_attn.q_proj`."""
    module = tensor.module.replace("{expert}", "0")
    return module if layer is None else f"layers.{layer}.{module}"


def _names(pattern: str, tensor: Tensor) -> bool:
    """Whether a pattern names a matrix itself, and is not merely wide enough to include it."""
    own = tensor.module.rpartition(".")[2]
    return bool(own) and re.search(rf"(?<![A-Za-z0-9_]){re.escape(own)}(?![A-Za-z0-9_])", pattern) is not None
