"""Decoder-only transformers of the LLaMA kind: dense, gated MLP, grouped-query attention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from slicewise.errors import InputError
from slicewise.spec.provenance import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The shape of a model.

    Attributes:
        n_layers: L.
        d_model: D, width of the residual stream.
        d_ff: F, width of the gated MLP.
        n_heads: N, query heads.
        n_kv_heads: K, key and value heads; divides n_heads.
        head_dim: H, width of one head.
        vocab_size: V.
        tied_embeddings: the LM head reuses the input embedding.
        qkv_bias: biases on the query, key and value projections.
        out_bias: a bias on the output projection.
        mlp_bias: biases on the three MLP matrices.
        norm_weights: RMS norms have a weight a channel.
        attention_window: most tokens that a layer attends to; inf for full attention.
        max_context_tokens: the context limit that the model states; inf where it states none.
        checkpoint_dtype: dtype of the published weights.
        provenance: facts as printed, by attribute name.

    Raises:
        InputError: sizes that cannot make a model.
    """

    name: str
    n_layers: int
    d_model: int
    d_ff: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab_size: int
    tied_embeddings: bool = False
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    norm_weights: bool = True
    attention_window: float = math.inf
    max_context_tokens: float = math.inf
    checkpoint_dtype: str = "bf16"
    provenance: Mapping[str, Provenance] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for key in ("n_layers", "d_model", "d_ff", "n_heads", "n_kv_heads", "head_dim", "vocab_size"):
            if getattr(self, key) < 1:
                raise InputError(f"{self.name}: {key} is {getattr(self, key)}; it must be at least 1")
        if self.n_heads % self.n_kv_heads:
            raise InputError(
                f"{self.name}: {self.n_heads} query heads do not divide over {self.n_kv_heads} KV heads;"
                " check num_attention_heads and num_key_value_heads"
            )
