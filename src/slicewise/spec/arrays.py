"""What a weight array and a cache are: name, named dims, logical axes, role.

Logical axes say which dims a sharding may split: heads, kv_heads, ff, experts, vocab, layers; "" and embed never are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MATMUL_ROLES = ("attention", "mlp", "experts", "shared_experts", "router", "indexer", "state_space", "head")
"""Roles whose elements each cost a multiply and an add a token."""

ROLES = (*MATMUL_ROLES, "embedding", "norm", "bias", "other", "tower")
"""What a weight is for. "other" covers sinks, convolutions, decay rates, position tables and per-expert scales."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One array, or one array a layer.

    Attributes:
        name: as a reader of the model's code would call it.
        dims: (name, size) of each dimension; "n_layers" first where there is one array a layer.
        axes: the logical axis of each dimension, "" where it is never split.
        role: one of ROLES.
        stored: False for a matrix that is another one read again (a tied LM head).
        units: the most ways that its heads axis can be cut; 0 where every element may be a cut.
        n_active: experts that one token uses, of those of the experts axis; 0 where every token uses all of it.
        module: its place in a Hugging Face checkpoint, below the layer (`self_attn.q_proj`) or below the model.
        layers: which layers have it; empty for what is outside the layers.
    """

    name: str
    dims: tuple[tuple[str, int], ...]
    axes: tuple[str, ...]
    role: str
    stored: bool = True
    units: int = 0
    n_active: int = 0
    module: str = ""
    layers: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Elements, over all layers."""
        return math.prod(size for _, size in self.dims)

    @property
    def n_experts(self) -> int:
        """Experts; 0 where it belongs to none."""
        return next((size for (_, size), axis in zip(self.dims, self.axes, strict=True) if axis == "experts"), 0)

    @property
    def active_size(self) -> int:
        """Elements that one token uses, over all layers."""
        return self.size // self.n_experts * self.n_active if self.n_active else self.size

    def __str__(self) -> str:
        shape = ", ".join(f"{name} {size:,}" for name, size in self.dims)
        return f"{self.name} [{shape}] = {self.size:,}{'' if self.stored else ' (shared with the embedding)'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """What one kind of layer keeps of a sequence: so much a token, up to a window, and so much in all.

    Attributes:
        name: "k and v", "latent", "index keys", "state" ...
        elements_per_token: elements of one token of one layer, in the dtype of the cache.
        reread_elements_per_token: the same of a layer that keeps nothing and reads what an earlier layer keeps.
        n_heads: heads that a sharding may split it over; 1 for what every head shares.
        window: most tokens kept; inf where all are.
        read_tokens: most tokens that a decode step reads; inf for all that are kept.
        other_bytes_per_token: bytes of one token of one layer in a format of their own, whatever the cache's dtype. [B]
        state_bytes: bytes of one layer that do not grow with the sequence. [B]
        head_dim: width of a key, which pads to the lanes of a TPU; 0 where there is no such array.
        value_dim: width of a value; 0 where the value is the key.
        decode_flops_per_token: FLOPs of one layer in a decode step for each token read. [FLOP]
        prefill_flops_per_token: the same in prefill, where a latent is expanded to heads. [FLOP]
        state_flops: FLOPs of one layer for each new token, whatever the length. [FLOP]
        query_elements: elements of one token's queries, which change places where the batch is split. []
        copies: what the chips hold of it together, over one copy: replication over ranks, and padding. []
        layers: which layers have it.
    """

    name: str
    elements_per_token: float = 0.0
    reread_elements_per_token: float = 0.0
    n_heads: int = 1
    window: float = math.inf
    read_tokens: float = math.inf
    other_bytes_per_token: float = 0.0
    state_bytes: float = 0.0
    head_dim: int = 0
    value_dim: int = 0
    decode_flops_per_token: float = 0.0
    prefill_flops_per_token: float = 0.0
    state_flops: float = 0.0
    query_elements: int = 0
    copies: float = 1.0
    layers: tuple[int, ...] = ()

    @property
    def n_layers(self) -> int:
        """Layers that keep it."""
        return len(self.layers)

    @property
    def read_elements_per_token(self) -> float:
        """Elements of one token of one layer that a decode step reads, its own or an earlier layer's."""
        return self.elements_per_token + self.reread_elements_per_token

    @property
    def reach(self) -> float:
        """Most tokens that a decode step reads."""
        return min(self.window, self.read_tokens)

    @property
    def _heads(self) -> str:
        """The heads in words, where they make up the elements."""
        if not self.head_dim or self.elements_per_token != self.n_heads * (self.head_dim + self.value_dim):
            return ""
        widths = f"({self.head_dim} + {self.value_dim})" if self.value_dim else f"{self.head_dim}"
        return f", {self.n_heads} KV head{'s' * (self.n_heads > 1)} × {widths}"

    def __str__(self) -> str:
        reach = "" if self.window == math.inf else f", the last {self.window:,.0f} tokens"
        sizes = (
            f"{self.n_layers} layers × {self.elements_per_token:,.10g} elements a token{self._heads}"
            if self.elements_per_token
            else ""
        )
        other = (
            f"{self.n_layers} layers × {self.other_bytes_per_token:,.10g} B a token"
            if self.other_bytes_per_token
            else ""
        )
        state = f"{self.n_layers} layers × {self.state_bytes:,.10g} B a sequence" if self.state_bytes else ""
        again = (
            f"{self.n_layers} layers read {self.reread_elements_per_token:,.10g} elements a token of an earlier layer"
            if self.reread_elements_per_token
            else ""
        )
        return f"{self.name}: {' and '.join(filter(None, (sizes, other, state, again)))}{reach}"


def under(module: str, name: str) -> str:
    """The place of a part below a module of a checkpoint; "" is the layer, or the model, itself."""
    return f"{module}.{name}" if module else name


def matrix(
    name: str, rows: tuple[str, int], columns: tuple[str, int], axes: tuple[str, str], role: str, **more: object
) -> Tensor:
    """A matrix of one layer, inputs first."""
    return Tensor(name=name, dims=(rows, columns), axes=axes, role=role, **more)  # type: ignore[arg-type]


def vector(name: str, size: tuple[str, int], role: str, axis: str = "", **more: object) -> Tensor:
    """A vector of one layer."""
    return Tensor(name=name, dims=(size,), axes=(axis,), role=role, **more)  # type: ignore[arg-type]
