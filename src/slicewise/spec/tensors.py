"""Every weight and cache array of a model, declared once: name, named dims, logical axes, role.

Sums over these lists are the parameter count and the cache size. Logical axes say which dims a sharding may split.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from slicewise.spec.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One array, or one array a layer.

    Attributes:
        name: as a reader of the model's code would call it.
        dims: (name, size) of each dimension; "n_layers" first where there is one array a layer.
        axes: the logical axis of each dimension, "" where it is never split.
        role: embedding, attention, mlp, norm, bias, head or cache.
        stored: False for a matrix that is another one read again (a tied LM head).
    """

    name: str
    dims: tuple[tuple[str, int], ...]
    axes: tuple[str, ...]
    role: str
    stored: bool = True

    @property
    def size(self) -> int:
        """Elements, over all layers."""
        return math.prod(size for _, size in self.dims)

    def __str__(self) -> str:
        shape = ", ".join(f"{name} {size:,}" for name, size in self.dims)
        return f"{self.name} [{shape}] = {self.size:,}{'' if self.stored else ' (shared with the embedding)'}"


MATMUL_ROLES = ("attention", "mlp", "head")
"""Roles whose elements each cost a multiply and an add a token."""


def weight_tensors(model: Model) -> tuple[Tensor, ...]:
    """The weights of a dense LLaMA-family model."""
    layers, width = ("n_layers", model.n_layers), ("d_model", model.d_model)
    queries = ("n_heads*head_dim", model.n_heads * model.head_dim)
    keys = ("n_kv_heads*head_dim", model.n_kv_heads * model.head_dim)
    hidden, vocab = ("d_ff", model.d_ff), ("vocab_size", model.vocab_size)

    def matrix(name: str, rows: tuple[str, int], columns: tuple[str, int], axes: tuple[str, str], role: str) -> Tensor:
        return Tensor(name=name, dims=(layers, rows, columns), axes=("layers", *axes), role=role)

    def vector(name: str, size: tuple[str, int], role: str, axis: str = "") -> Tensor:
        return Tensor(name=name, dims=(layers, size), axes=("layers", axis), role=role)

    tensors = [
        Tensor(name="embedding", dims=(vocab, width), axes=("vocab", "embed"), role="embedding"),
        matrix("wq", width, queries, ("embed", "heads"), "attention"),
        matrix("wk", width, keys, ("embed", "kv_heads"), "attention"),
        matrix("wv", width, keys, ("embed", "kv_heads"), "attention"),
        matrix("wo", queries, width, ("heads", "embed"), "attention"),
        matrix("w_gate", width, hidden, ("embed", "ff"), "mlp"),
        matrix("w_up", width, hidden, ("embed", "ff"), "mlp"),
        matrix("w_down", hidden, width, ("ff", "embed"), "mlp"),
        Tensor(
            name="lm_head", dims=(width, vocab), axes=("embed", "vocab"), role="head", stored=not model.tied_embeddings
        ),
    ]
    if model.norm_weights:
        tensors += [
            vector("attention_norm", width, "norm"),
            vector("mlp_norm", width, "norm"),
            Tensor(name="final_norm", dims=(width,), axes=("",), role="norm"),
        ]
    if model.qkv_bias:
        tensors += [vector("bq", queries, "bias", "heads"), vector("bk", keys, "bias", "kv_heads")]
        tensors += [vector("bv", keys, "bias", "kv_heads")]
    if model.out_bias:
        tensors.append(vector("bo", width, "bias"))
    if model.mlp_bias:
        tensors += [vector("b_gate", hidden, "bias", "ff"), vector("b_up", hidden, "bias", "ff")]
        tensors.append(vector("b_down", width, "bias"))
    return tuple(tensors)


def cache_tensors(model: Model) -> tuple[Tensor, ...]:
    """The cache arrays, for one token of one sequence."""
    dims = (("n_layers", model.n_layers), ("n_kv_heads", model.n_kv_heads), ("head_dim", model.head_dim))
    axes = ("layers", "kv_heads", "")
    return tuple(Tensor(name=name, dims=dims, axes=axes, role="cache") for name in ("k_cache", "v_cache"))
