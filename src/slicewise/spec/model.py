"""A decoder-only model: a list of layers, each a kind of token mixing and a kind of feed-forward."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from slicewise.errors import InputError
from slicewise.spec.arrays import Cache, Tensor, matrix, vector
from slicewise.spec.feed_forward import FeedForward, dense
from slicewise.spec.mixers import Mixer, attention
from slicewise.spec.provenance import Provenance
from slicewise.spec.quantisation import Quantisation


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer: what mixes tokens, what transforms each, and its norms. Either may be missing."""

    mixer: Mixer | None = None
    feed_forward: FeedForward | None = None
    norms: tuple[Tensor, ...] = ()

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """Its arrays."""
        mixing = self.mixer.weights if self.mixer else ()
        return (*mixing, *(self.feed_forward.weights if self.feed_forward else ()), *self.norms)

    @property
    def caches(self) -> tuple[Cache, ...]:
        """What it keeps of a sequence."""
        return self.mixer.caches if self.mixer else ()

    @property
    def kind(self) -> str:
        """Its mixing and its feed-forward, in words."""
        parts = (self.mixer.kind if self.mixer else "", self.feed_forward.kind if self.feed_forward else "")
        return " + ".join(filter(None, parts)) or "empty"


@dataclass(frozen=True, kw_only=True)
class Model:
    """The shape of a model.

    Attributes:
        d_model: D, width of the residual stream.
        vocab_size: V.
        layers: each layer, the first one first; layers that are alike are one object.
        tied_embeddings: the LM head reuses the input embedding.
        reduces_once: attention and MLP of a layer work side by side, and chips sum up both in one reduction.
        outside: arrays outside the layers but for the embeddings: the last norm, position tables, biases.
        towers: parameters of each vision or audio tower, with its projector.
        left_out: what the config describes and is not counted, in sentences.
        notes: what a reader of an answer should know of how the model was read, in sentences.
        checkpoint_bytes: bytes of the weights as the files say that lie beside the config; None where none do. [B]
        quantisation: how the checkpoint stores its weights; None where all have `checkpoint_dtype`.
        max_context_tokens: the context limit that the model states; inf where it states none.
        checkpoint_dtype: dtype of the published weights.
        rope_table: (positions, width) of the rotary table that an engine keeps; (0, 0) for none.
        provenance: facts as printed, by attribute name; "" for where the model was read.

    Raises:
        InputError: sizes that cannot make a model.
    """

    name: str
    d_model: int
    vocab_size: int
    layers: tuple[Layer, ...] = field(repr=False)
    tied_embeddings: bool = False
    reduces_once: bool = False
    outside: tuple[Tensor, ...] = field(default=(), repr=False)
    towers: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    checkpoint_bytes: float | None = None
    quantisation: Quantisation | None = field(default=None, repr=False)
    max_context_tokens: float = math.inf
    checkpoint_dtype: str = "bf16"
    rope_table: tuple[int, int] = (0, 0)
    provenance: Mapping[str, Provenance] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for key in ("n_layers", "d_model", "vocab_size"):
            if getattr(self, key) < 1:
                raise InputError(f"{self.name}: {key} is {getattr(self, key)}; it must be at least 1")

    @property
    def n_layers(self) -> int:
        """L."""
        return len(self.layers)

    @property
    def n_blocks(self) -> float:
        """Layers as most models have them, token mixing and feed-forward both; one alone counts as half of a block."""
        return (len(self.mixers) + len(self.feed_forwards)) / 2

    @cached_property
    def mixers(self) -> tuple[Mixer, ...]:
        """The token mixing of each layer that has one."""
        return tuple(layer.mixer for layer in self.layers if layer.mixer)

    @cached_property
    def feed_forwards(self) -> tuple[FeedForward, ...]:
        """The feed-forward of each layer that has one."""
        return tuple(layer.feed_forward for layer in self.layers if layer.feed_forward)

    @cached_property
    def attentions(self) -> tuple[Mixer, ...]:
        """The mixers that attend to earlier tokens; the rest are recurrences."""
        return tuple(mixer for mixer in self.mixers if any(cache.head_dim for cache in mixer.caches))

    @cached_property
    def d_ff(self) -> int:
        """F: the widest feed-forward that a token passes through; of experts, the active ones together."""
        return max((ff.active_d_ff for ff in self.feed_forwards), default=0)

    @cached_property
    def n_heads(self) -> int:
        """N: the most query heads of a layer that attends."""
        return max((mixer.n_heads for mixer in self.attentions or self.mixers), default=1)

    @cached_property
    def n_kv_heads(self) -> int:
        """K: ways that the heads of every cache can be split, their greatest common divisor; index keys have none."""
        kept = [cache for mixer in self.mixers for cache in mixer.caches if cache.head_dim or cache.state_bytes]
        return math.gcd(*(cache.n_heads for cache in kept)) or 1

    @cached_property
    def head_dim(self) -> int:
        """H: the widest key."""
        return max((mixer.head_dim for mixer in self.attentions or self.mixers), default=0)

    @cached_property
    def n_experts(self) -> int:
        """E: the most experts of a layer; 0 for a dense model."""
        return max((ff.n_experts for ff in self.feed_forwards), default=0)

    @cached_property
    def n_active(self) -> int:
        """k: experts that a token is sent to in such a layer; 0 for a dense model."""
        return max((ff.n_active for ff in self.feed_forwards), default=0)

    @cached_property
    def attention_window(self) -> float:
        """Most tokens that any layer attends to; inf where one attends to all."""
        return max((cache.window for mixer in self.attentions for cache in mixer.caches), default=math.inf)

    @cached_property
    def layers_by_kind(self) -> Mapping[str, int]:
        """Layers of each kind."""
        return Counter(layer.kind for layer in self.layers)

    def embeddings(self) -> tuple[Tensor, ...]:
        """The arrays outside the layers."""
        width, vocab = ("d_model", self.d_model), ("vocab_size", self.vocab_size)
        embedding = matrix("embedding", vocab, width, ("vocab", "embed"), "embedding", module="embed_tokens")
        head = matrix(
            "lm_head", width, vocab, ("embed", "vocab"), "head", stored=not self.tied_embeddings, module="lm_head"
        )
        return (embedding, head, *self.outside)


def dense_model(
    *,
    name: str,
    n_layers: int,
    d_model: int,
    d_ff: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int,
    vocab_size: int,
    qkv_bias: bool = False,
    out_bias: bool = False,
    mlp_bias: bool = False,
    norm_weights: bool = True,
    attention_window: float = math.inf,
    more: Sequence[Sequence[object]] = (),
    **rest: object,
) -> Model:
    """A dense model of the LLaMA kind: every layer attention and a gated MLP.

    Args:
        name: what to call it.
        n_layers: L.
        d_model: D.
        d_ff: F.
        n_heads: N.
        n_kv_heads: K.
        head_dim: H.
        vocab_size: V.
        qkv_bias: biases on the query, key and value projections.
        out_bias: a bias on the output projection.
        mlp_bias: biases on the three MLP matrices.
        attention_window: most tokens that a layer attends to.
        norm_weights: RMS norms have a weight a channel.
        more: further small arrays of the attention, such as norms of queries and keys.
        rest: further attributes of the model.
    """
    width = ("d_model", d_model)
    norms = (vector("attention_norm", width, "norm"), vector("mlp_norm", width, "norm")) if norm_weights else ()
    layer = Layer(
        mixer=attention(
            d_model=d_model,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            head_dim=head_dim,
            window=attention_window,
            qkv_bias=qkv_bias,
            out_bias=out_bias,
            more=more,
        ),
        feed_forward=dense(d_model=d_model, d_ff=d_ff, bias=mlp_bias),
        norms=norms,
    )
    return Model(
        name=name,
        d_model=d_model,
        vocab_size=vocab_size,
        layers=(layer,) * n_layers,
        outside=(vector("final_norm", width, "norm"),) if norm_weights else (),
        **rest,  # type: ignore[arg-type]
    )


def reshaped(model: Model, *, n_kv_heads: int) -> Model:
    """The same model with other KV heads in every layer that attends, as a what-if."""

    def changed(layer: Layer) -> Layer:
        if layer.mixer is None:
            return layer
        mixer = attention(
            d_model=model.d_model, n_heads=layer.mixer.n_heads, n_kv_heads=n_kv_heads, head_dim=layer.mixer.head_dim
        )
        return replace(layer, mixer=mixer)

    kinds = {id(layer): changed(layer) for layer in model.layers}
    return replace(model, layers=tuple(kinds[id(layer)] for layer in model.layers))
