"""What each rank of a deployment holds: layers by pipeline stages, widths by tensor ranks, experts by expert ranks.

The rules are those of vLLM, which other engines share but for the vocabulary's padding. Describes the fullest rank of
each stage, for that is the one that runs out of memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slicewise.errors import InputError
from slicewise.spec.arrays import Cache, Tensor
from slicewise.spec.model import Model
from slicewise.spec.stored import StoredTensor

VOCAB_MULTIPLE = 64
"""Vocabularies are padded to a multiple of this before they are cut."""

ROPE_BYTES_PER_ELEMENT = 2.0
"""A rotary table is kept in the 16 bits of the activations. [B]"""

_ENTRY_ROLES = ("embedding", "tower", "other")
"""Roles of what is outside the layers and feeds the first one; the rest follows the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Ways that a model is divided over chips.

    Attributes:
        tp: tensor-parallel ranks, which share the heads, the feed-forward widths and the vocabulary.
        pp: pipeline stages, which share the layers.
        dp: groups of tensor ranks that each hold attention, dense MLPs and shared experts, for other sequences.
        ep: ways that whole experts are spread over the tp * dp ranks of a stage; each is cut over the ranks that are
            left, which at 1 are all of them.

    Raises:
        InputError: a degree is below 1, or ep does not divide tp * dp.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1

    def __post_init__(self) -> None:
        for key in ("tp", "pp", "dp", "ep"):
            if getattr(self, key) < 1:
                raise InputError(f"{key} is {getattr(self, key)}; it must be at least 1")
        if self.stage_chips % self.ep:
            raise InputError(
                f"ep {self.ep} does not divide the {self.stage_chips} ranks of a stage"
                f" (tp {self.tp} × dp {self.dp}); use ep {math.gcd(self.ep, self.stage_chips)}"
            )

    @property
    def stage_chips(self) -> int:
        """Chips of one pipeline stage."""
        return self.tp * self.dp

    @property
    def n_chips(self) -> int:
        """Chips in all."""
        return self.stage_chips * self.pp

    @property
    def expert_ways(self) -> int:
        """Ways that the width of one expert is cut."""
        return self.stage_chips // self.ep

    def __str__(self) -> str:
        more = ((key, getattr(self, key)) for key in ("pp", "dp", "ep"))
        return " × ".join([f"tp {self.tp}", *(f"{key} {ways}" for key, ways in more if ways > 1)])


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTensor:
    """A weight on the fullest rank of a stage.

    Attributes:
        stored: the weight as it is stored, over all layers and ranks.
        n_layers: layers of the stage that have it; 1 for what is outside the layers.
        share: of one layer's array, what the rank holds; above 1 where padding exceeds what is cut off. []
        n_bytes: bytes on the rank, scales included. [B]
    """

    stored: StoredTensor
    n_layers: int
    share: float
    n_bytes: float

    def __str__(self) -> str:
        layers = f"{self.n_layers} layer{'s' * (self.n_layers > 1)} of " if self.stored.tensor.layers else ""
        return f"{layers}{self.stored.tensor.name}, {self.share:.6g} of each: {self.n_bytes:,.0f} B"


def stages(n_layers: int, pp: int, split: Sequence[int] = ()) -> tuple[range, ...]:
    """The layers of each pipeline stage.

    Layers that are left over go one each to the last stages but one, backwards: the last stage has the LM head, and
    the first one, which has the embedding, is the last to get one.

    >>> [len(stage) for stage in stages(30, 4)], [len(stage) for stage in stages(27, 2)]
    ([7, 8, 8, 7], [14, 13])

    Args:
        n_layers: L.
        pp: stages.
        split: layers of each stage, where they are set (VLLM_PP_LAYER_PARTITION).

    Raises:
        InputError: more stages than layers, or a split that is not of these layers.

    Source: get_pp_indices in vllm/distributed/utils.py
    """
    if pp > n_layers:
        raise InputError(f"pp {pp} is more than the {n_layers} layers; use pp {n_layers} or less")
    if split and (len(split) != pp or sum(split) != n_layers or min(split) < 1):
        raise InputError(
            f"layer split {','.join(map(str, split))} is not {n_layers} layers over {pp} stages;"
            f" give {pp} counts of at least 1 that add up to {n_layers}"
        )
    counts = list(split) or [n_layers // pp] * pp
    for back in range(0 if split else n_layers % pp):
        counts[-2 - back] += 1
    ends = [sum(counts[: stage + 1]) for stage in range(pp)]
    return tuple(range(end - count, end) for end, count in zip(ends, counts, strict=True))


def padded_vocab(vocab_size: int) -> int:
    """Rows of a vocabulary once padded."""
    return -(-vocab_size // VOCAB_MULTIPLE) * VOCAB_MULTIPLE


def share(tensor: Tensor, ranks: Ranks) -> float:
    """Of one layer's array, what the fullest rank of its stage holds; above 1 where padding exceeds what is cut. []

    Heads, feed-forward widths and the vocabulary are cut tp ways, KV heads no further than one a rank. Experts are
    spread over ep, the first ranks one more where they do not divide. Norms, routers, indexers, the down-projections
    of a latent, the biases of what is summed over ranks, and towers are whole on every rank (for towers that is
    vLLM's `--mm-encoder-tp-mode data`; its default cuts what it can of them).

    Neglects: keys of a recurrence that several heads share, and that ranks beyond their number copy; shared experts
    that vLLM keeps whole where it splits the tokens over the ranks.
    Source: the parallel layers of vLLM, and start-up logs that agree with them to 4 digits
    """
    return math.prod(_held_dims(tensor, ranks)) / tensor.size


def rank_weights(
    stored: Iterable[StoredTensor], model: Model, ranks: Ranks, stage: int, split: Sequence[int] = ()
) -> tuple[HeldTensor, ...]:
    """The weights on the fullest rank of a pipeline stage, without the rotary table.

    The embedding and the towers are on the first stage, the last norm and the LM head on the last. A head that is the
    embedding read again needs a copy of it where the last stage is not the first.

    Args:
        stored: the weights, all layers.
        model: whose weights they are; its quantisation says how scales are cut.
        ranks: how the model is divided.
        stage: the pipeline stage, from 0.
        split: layers of each stage, where they are set.

    Raises:
        InputError: more stages than layers, or a split that is not of these layers.
    """
    layers = stages(model.n_layers, ranks.pp, split)[stage]
    found = ((array, _held_layers(array.tensor, model, ranks, stage, layers)) for array in stored)
    return tuple(_held(array, ranks, n_layers) for array, n_layers in found if n_layers)


def weight_bytes_per_chip(
    stored: Sequence[StoredTensor], model: Model, ranks: Ranks, split: Sequence[int] = ()
) -> tuple[float, ...]:
    """Bytes of weights on the fullest rank of each pipeline stage, without the rotary table. [B]

    Raises:
        InputError: more stages than layers, or a split that is not of these layers.
    """
    return tuple(
        sum(held.n_bytes for held in rank_weights(stored, model, ranks, stage, split)) for stage in range(ranks.pp)
    )


def rope_table_bytes(model: Model) -> float:
    """Bytes of the rotary table, which every rank keeps whole: positions × width in 16 bits. [B]

    vLLM keeps one for each distinct rotary embedding; counted is the one that the model declares.
    """
    positions, width = model.rope_table
    return positions * width * ROPE_BYTES_PER_ELEMENT


def cache_copies(cache: Cache, tp: int) -> float:
    """What the tensor ranks hold of a cache together, over one copy. []

    Heads are cut, and kept more than once where they are fewer than the ranks or do not divide. What all heads share
    (a latent, index keys) is whole on every rank.

    >>> cache_copies(Cache(name="k and v", n_heads=8), 64), cache_copies(Cache(name="latent"), 8)
    (8.0, 8.0)
    """
    return tp * -(-cache.n_heads // tp) / cache.n_heads


def kv_bytes_per_token_per_chip(
    caches: Iterable[Cache], kv_bytes_per_element: float, tp: int, layers: range | None = None
) -> float:
    """Cache bytes of one token on each tensor rank of a stage, where no window bounds them. [B]

    Args:
        caches: what the layers keep.
        kv_bytes_per_element: of the dtype of the cache. [B]
        tp: tensor ranks.
        layers: those of the stage; None for all.
    """
    return sum(
        (cache.elements_per_token * kv_bytes_per_element + cache.other_bytes_per_token)
        * (cache.n_layers if layers is None else sum(layer in layers for layer in cache.layers))
        * cache_copies(cache, tp)
        / tp
        for cache in caches
    )


def _held_dims(tensor: Tensor, ranks: Ranks) -> tuple[int, ...]:
    """The sizes of an array on the fullest rank; all layers where there is one a layer."""
    experts_ways = ranks.expert_ways if tensor.n_experts else ranks.tp
    ways = {"heads": ranks.tp, "kv_heads": ranks.tp, "ff": experts_ways, "vocab": ranks.tp, "experts": ranks.ep}
    return tuple(
        _cut(size, axis, ways[axis], tensor.units) if axis in ways else size
        for (_, size), axis in zip(tensor.dims, tensor.axes, strict=True)
    )


def _cut(size: int, axis: str, ways: int, units: int) -> int:
    whole = padded_vocab(size) if axis == "vocab" else size
    parts = units if units and axis in ("heads", "kv_heads") else whole
    return -(-(-(-parts // ways) * whole) // parts)


def _held_layers(tensor: Tensor, model: Model, ranks: Ranks, stage: int, layers: range) -> int:
    """Layers of a stage that have an array; for one outside the layers, whether the stage has it."""
    if tensor.layers:
        return sum(layer in layers for layer in tensor.layers)
    first, last = stage == 0, stage == ranks.pp - 1
    if model.tied_embeddings and tensor.module == "embed_tokens":
        return int(first or last)
    return int(first if tensor.role in _ENTRY_ROLES else last)


def _held(stored: StoredTensor, ranks: Ranks, n_layers: int) -> HeldTensor:
    tensor, part = stored.tensor, share(stored.tensor, ranks)
    of_all = n_layers / max(1, len(tensor.layers))
    scale_bytes = stored.scale_bytes * part * of_all
    if stored.scheme and stored.scale_bytes:
        # What lies along the uncut side, such as a row-parallel matrix's scales of outputs, is whole on each rank.
        *lead, n_in, n_out = _held_dims(tensor, ranks)
        matrices = math.prod(lead[1:] if tensor.layers else lead) * n_layers
        *every, rows, columns = (size for _, size in tensor.dims)
        said = stored.scale_bytes / (math.prod(every) * stored.scheme.overhead_bytes(rows, columns))
        scale_bytes = said * matrices * stored.scheme.overhead_bytes(n_in, n_out)
    return HeldTensor(
        stored=stored, n_layers=n_layers, share=part, n_bytes=stored.element_bytes * part * of_all + scale_bytes
    )
