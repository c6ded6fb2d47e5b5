"""A model in the project's own form, as models/*.toml hold it and as a config.json is read, made into a spec.

A model is its widths, its kinds of mixers and of feed-forwards, and a run-length list of layers that names them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar

from slicewise.catalog.layer_list import unfold
from slicewise.errors import CatalogError
from slicewise.spec import feed_forward, latent, mixers, recurrences, side_by_side, sparse
from slicewise.spec.arrays import Tensor, vector
from slicewise.spec.feed_forward import FeedForward
from slicewise.spec.mixers import Mixer, extras
from slicewise.spec.model import Layer, Model
from slicewise.spec.provenance import Provenance
from slicewise.spec.quantisation import Quantisation, Scheme

MIXERS: dict[str, Callable[..., Mixer]] = {
    "attention": mixers.attention,
    "latent_attention": latent.latent_attention,
    "recurrence": recurrences.recurrence,
    "compressed_attention": sparse.compressed_attention,
    "block_sparse_attention": sparse.block_sparse_attention,
    "linear_map": mixers.linear_map,
    "side_by_side": side_by_side.side_by_side,
}
FEED_FORWARDS: dict[str, Callable[..., FeedForward]] = {
    "dense": feed_forward.dense,
    "experts": feed_forward.experts,
    "linear_map": feed_forward.linear_map,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """One model.

    Attributes:
        mixers: kinds of token mixing by a name of one's own: `kind`, a key of MIXERS, and that function's arguments.
        feed_forwards: kinds of feed-forward alike: `kind`, a key of FEED_FORWARDS, and that function's arguments.
        layers: [mixer, feed-forward, how many], in order; "" where a layer has none.
        norms: names of the norms of a layer, a weight a channel each; and of the last norm.
        norm_bias: norms have a bias a channel too.
        reduces_once: attention and MLP of a layer work side by side, and chips sum up both in one reduction.
        more: further arrays outside the layers, (name, size or [rows, columns], role).
        layer_more: the same in every layer.
        towers: parameters of vision and audio towers by name.
        left_out: what the config describes and is not counted, in sentences.
        quantisation: method, rules (pattern, scheme), ignored patterns, kv_dtype, experts_only.
        rope_table: positions and width of the rotary table that an engine keeps.
        source: key of sources.toml, for a model that has no repository.
        repo: Hugging Face repository whose config.json was read.
        found_at: where a copy of it was read, where not there; repository, commit and path.
        date: when it was read.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    d_model: int
    vocab_size: int
    layers: list[list[Any]]
    mixers: dict[str, dict[str, Any]] = field(default_factory=dict)
    feed_forwards: dict[str, dict[str, Any]] = field(default_factory=dict)
    norms: list[str] = field(default_factory=lambda: ["attention_norm", "mlp_norm"])
    final_norm: bool = True
    norm_bias: bool = False
    more: list[list[Any]] = field(default_factory=list)
    layer_more: list[list[Any]] = field(default_factory=list)
    tied_embeddings: bool = False
    reduces_once: bool = False
    towers: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    quantisation: dict[str, Any] | None = None
    max_context_tokens: float = math.inf
    checkpoint_dtype: str = "bf16"
    rope_table: list[int] = field(default_factory=lambda: [0, 0])
    source: str = ""
    repo: str = ""
    found_at: str = ""
    date: str = ""

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> ModelRecord:
        """The record that an entry of the catalog holds, its layers as text.

        Raises:
            CatalogError: a key is unknown or missing, or the layers are not understood.
        """
        known = {item.name: item.default is MISSING and item.default_factory is MISSING for item in fields(cls)}
        _refuse_strange(entry.keys(), known, "a model", "")
        return cls(**{**entry, "layers": unfold(entry["layers"])})

    def to_spec(self, name: str, provenance: Mapping[str, Provenance]) -> Model:
        """The model.

        Args:
            name: what to call it.
            provenance: where its shape was read, under ""; what is to be said of one value, under its name.

        Raises:
            CatalogError: a layer names a kind that is not there, or a kind has an unknown argument or lacks one.
            InputError: sizes that make no model.
        """
        mixing = {key: _make(MIXERS, words, self.d_model, f"mixers.{key}") for key, words in self.mixers.items()}
        forward = {
            key: _make(FEED_FORWARDS, words, self.d_model, f"feed_forwards.{key}")
            for key, words in self.feed_forwards.items()
        }
        norms = self._norms(self.norms)
        kinds: dict[tuple[str, str], Layer] = {}
        layers: list[Layer] = []
        for mixer, feed, count in self.layers:
            for key, known in ((mixer, mixing), (feed, forward)):
                if key and key not in known:
                    raise CatalogError(f"layers: {key} is no kind of this model; there are {', '.join(known)}")
            made = Layer(mixer=mixing.get(mixer), feed_forward=forward.get(feed), norms=norms)
            layers += [kinds.setdefault((mixer, feed), made)] * count
        last = self._norms(["final_norm"]) if self.final_norm else ()
        outside = tuple(tensor for tensor in last if self.norms or tensor.role == "norm")
        return Model(
            name=name,
            d_model=self.d_model,
            vocab_size=self.vocab_size,
            layers=tuple(layers),
            tied_embeddings=self.tied_embeddings,
            reduces_once=self.reduces_once,
            outside=(*outside, *extras(self.more)),
            towers=MappingProxyType(self.towers),
            left_out=tuple(self.left_out),
            quantisation=_quantisation(self.quantisation) if self.quantisation else None,
            max_context_tokens=self.max_context_tokens,
            checkpoint_dtype=self.checkpoint_dtype,
            rope_table=(self.rope_table[0], self.rope_table[1]),
            provenance=provenance,
        )

    def _norms(self, names: list[str]) -> tuple[Tensor, ...]:
        width = ("d_model", self.d_model)
        weights = tuple(vector(name, width, "norm") for name in names)
        biases = tuple(vector(f"{name}_bias", width, "bias") for name in names) if self.norm_bias else ()
        return (*weights, *biases, *(extras(self.layer_more) if names is self.norms else ()))


def _make(known: Mapping[str, Callable[..., Any]], words: Mapping[str, Any], d_model: int, where: str) -> Any:
    kind = str(words.get("kind"))
    if kind not in known:
        raise CatalogError(f"{where}: kind {kind!r} is not one of {', '.join(known)}")
    arguments = {key: value for key, value in words.items() if key != "kind"}
    parameters = inspect.signature(known[kind]).parameters
    width = {"d_model": d_model} if "d_model" in parameters else {}
    wanted = {key: each.default is each.empty for key, each in parameters.items() if key not in width}
    _refuse_strange(arguments.keys(), wanted, kind, f"{where}: ")
    return known[kind](**width, **arguments)


def _refuse_strange(given: Collection[str], wanted: Mapping[str, bool], what: str, where: str) -> None:
    """Refuse keys that are unknown, or missing where they must be there.

    Raises:
        CatalogError: there are some.
    """
    strange = sorted(set(given) - wanted.keys())
    missing = [key for key, must in wanted.items() if must and key not in given]
    if strange:
        raise CatalogError(f"{where}{', '.join(strange)}: no key of {what}; known: {', '.join(wanted)}")
    if missing:
        raise CatalogError(f"{where}{', '.join(missing)}: missing; {what} must have it")


def _quantisation(words: Mapping[str, Any]) -> Quantisation:
    rules = tuple(
        (pattern, Scheme(**{**scheme, "block": tuple(scheme.get("block", (0, 0)))}))
        for pattern, scheme in words["rules"]
    )
    return Quantisation(**{**words, "rules": rules, "ignored": tuple(words.get("ignored", ()))})
