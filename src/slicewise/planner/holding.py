"""What a deployment holds and moves, put together for the formulas: shares of ranks, experts, collectives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from slicewise.costs.layered_cache import kv_bytes_per_sequence
from slicewise.spec.arrays import MATMUL_ROLES, Cache, Tensor
from slicewise.spec.held import ExpertGroup, most_bytes, segments
from slicewise.spec.model import Model
from slicewise.spec.padding import fp4_padding, tpu_padding
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision
from slicewise.spec.ranks import HeldTensor, Ranks, cache_copies, rank_weights, share, stages
from slicewise.spec.stored import StoredTensor, as_checkpoint, uniform
from slicewise.spec.tensors import caches, weight_tensors


@dataclass(frozen=True, kw_only=True)
class Holding:
    """What the chips of a pipeline stage hold, or those of a slice over which the weights are cut evenly.

    Attributes:
        stored: every weight with its bytes, one copy.
        held: the weights of the stage's fullest chip; empty where they are cut evenly over the whole slice.
        caches: what layers keep, with the copies on ranks, as if every stage were as full.
        stage: the pipeline stage.
        unstored: matrices that are others read again, such as a tied LM head.
    """

    stored: tuple[StoredTensor, ...]
    held: tuple[HeldTensor, ...]
    caches: tuple[Cache, ...]
    stage: int = 0
    unstored: tuple[Tensor, ...] = ()

    @property
    def held_bytes(self) -> float:
        """Weights on the stage's fullest chip. [B]"""
        return sum(weight.n_bytes for weight in self.held)

    def sequence_bytes(self, kv_bytes_per_element: float, tokens: float) -> float:
        """What a sequence of so many tokens takes on all chips, as if every stage were as full. [B]"""
        return float(kv_bytes_per_sequence(self.caches, tokens, kv_bytes_per_element))


def stored_weights(model: Model, precision: Precision) -> tuple[StoredTensor, ...]:
    """Every weight with its bytes: as the checkpoint has it, or all at one dtype.

    Where the checkpoint's files were read, their sizes win: each weight takes its part of what they hold in all.
    """
    if not precision.as_stored:
        return uniform(model, precision.weights)
    stored = as_checkpoint(model)
    if model.checkpoint_bytes is None:
        return stored
    share = model.checkpoint_bytes / sum(weight.n_bytes for weight in stored)
    return tuple(
        replace(weight, element_bytes=weight.element_bytes * share, scale_bytes=weight.scale_bytes * share)
        for weight in stored
    )


def holdings(
    model: Model, precision: Precision, ranks: Ranks | None, *, padded: bool = False, widened: bool = False
) -> tuple[Holding, ...]:
    """What the fullest chips of each pipeline stage hold; of an even cut, what the whole slice does.

    Args:
        model: the model.
        precision: dtypes.
        ranks: the layout; None for an even cut over the whole slice.
        padded: the cache is padded as tpu-inference does.
        widened: experts in 4-bit floats are padded as kernels for chips without such floats do.
    """
    stored, kept = stored_weights(model, precision), caches(model)
    if ranks is None:
        return (Holding(stored=stored, held=(), caches=kept),)
    unstored = tuple(tensor for tensor in weight_tensors(model) if not tensor.stored)
    found = []
    for stage, layers in enumerate(stages(model.n_layers, ranks.pp)):
        held = rank_weights(stored, model, ranks, stage)
        if widened:
            held = tuple(_widened(weight, ranks) for weight in held)
        here = tuple(_on_stage(cache, layers, ranks, precision.kv if padded else "") for cache in kept)
        found.append(Holding(stored=stored, held=held, caches=here, stage=stage, unstored=unstored))
    return tuple(found)


def _widened(weight: HeldTensor, ranks: Ranks) -> HeldTensor:
    """An expert's matrix in 4-bit floats as its kernel holds it; any other weight as it is."""
    if weight.stored.dtype != "fp4" or not weight.stored.tensor.n_experts:
        return weight
    return replace(weight, n_bytes=weight.n_bytes * fp4_padding(weight.stored.tensor, ranks.expert_ways))


def _on_stage(cache: Cache, layers: range, ranks: Ranks, padded_dtype: str) -> Cache:
    """A cache as the chips of one stage hold it, times the stages: the fullest stage stands for all.

    Args:
        cache: what layers keep.
        layers: those of the stage.
        ranks: the layout.
        padded_dtype: dtype that rows are padded for; "" where they are not.
    """
    here = len(set(cache.layers) & set(layers))
    heads = -(-cache.n_heads // ranks.tp)
    padding = tpu_padding(cache, padded_dtype, heads) if padded_dtype else 1.0
    # What belongs to no head, such as an indexer's keys, every tensor rank scores anew.
    again = 1 if cache.head_dim or cache.state_bytes else ranks.tp
    return replace(
        cache,
        copies=cache_copies(cache, ranks.tp) * padding * ranks.pp * here / cache.n_layers,
        decode_flops_per_token=cache.decode_flops_per_token * again,
        prefill_flops_per_token=cache.prefill_flops_per_token * again,
    )


def layered_inputs(
    model: Model, precision: Precision, ranks: Ranks | None, n_chips: int, held: Holding
) -> dict[str, Any]:
    """The inputs of the formulas for layers of several kinds, experts and ranks."""
    width = BYTES_PER_ELEMENT[precision.kv]
    ep = ranks.ep if ranks else 1
    groups = _expert_groups(held, n_chips)
    idle = _idle_bytes(held, n_chips)
    n_attending = sum(1 for layer in model.layers for cache in layer.caches if cache.query_elements)
    n_expert_layers = sum(1 for ff in model.feed_forwards if ff.n_experts)
    spread, gathered = ep > 1, bool(ranks and ep == 1 and ranks.dp > 1 and n_expert_layers)
    shared = sum(1 for ff in model.feed_forwards if ff.n_experts and ff.active_d_ff > ff.n_active * ff.d_ff)
    # Shared experts are cut over the tensor ranks, and need them together, wherever the routed ones are.
    apart = n_expert_layers - (shared if ranks and ranks.tp > 1 and spread else 0) if spread or gathered else 0
    return {
        "expert_groups": groups,
        "idle_bytes": idle,
        "pipeline_stages": ranks.pp if ranks else 1,
        "batch_groups": ranks.pp * ranks.dp if ranks else 1,
        "prompts_in_flight": ranks.pp * ranks.dp if ranks else 1,
        "expert_ways": ep,
        "n_active": model.n_active or 1,
        "n_experts": model.n_experts or 1,
        "expert_d_ff": max((ff.d_ff for ff in model.feed_forwards if ff.n_experts), default=0),
        "stage_chips": ranks.stage_chips if ranks else n_chips,
        "data_groups": ranks.dp if ranks else 1,
        "tensor_ranks": ranks.tp if ranks else n_chips,
        "computed_params": _computed(held, ranks) if ranks else 0.0,
        "expert_cuts": ranks.expert_ways if ranks else 1,
        "n_expert_gathers": 2 * n_expert_layers if gathered else 0,
        "n_all_gathers": 2 * (model.n_layers if model.reduces_once else _reduced(model) - apart),
        "n_all_to_alls": 2 * n_attending if ranks is None else 0,
        "n_expert_all_to_alls": 2 * n_expert_layers if spread else 0,
        "query_elements": _mean_queries(model),
        "kv_segments": segments(held.caches, width),
        "kv_most_bytes": most_bytes(held.caches, width),
    }


def _reduced(model: Model) -> int:
    """Mixers and feed-forwards, each of which is reduced by itself."""
    return len(model.mixers) + len(model.feed_forwards)


def layered_words(model: Model, ranks: Ranks | None) -> dict[str, str]:
    """Where those inputs come from, in words."""
    spread = ranks is not None and ranks.ep > 1
    apart = spread or (ranks is not None and ranks.dp > 1 and model.n_experts > 0)
    around = "each mixer and feed-forward, but routed experts" if apart else "each mixer and feed-forward"
    if model.reduces_once:
        around = "each layer, whose mixer and feed-forward are reduced together"
    return {
        "idle_bytes": "towers, which text leaves idle" if model.towers else "no towers",
        "batch_groups": "one group of all chips",
        "prompts_in_flight": "one group of all chips",
        "expert_ways": "ways that whole experts are spread over" if spread else "experts are not spread",
        "stage_chips": "chips of a pipeline stage",
        "data_groups": "data-parallel groups",
        "tensor_ranks": "tensor-parallel ranks",
        "computed_params": "parameters that a token is multiplied with on all ranks, each copy that is computed again",
        "expert_cuts": "ways that one expert's width is cut",
        "n_expert_gathers": "two around the experts of each layer that has them",
        "n_active": "experts that a token is sent to, the most of a layer",
        "n_experts": "experts, the most of a layer",
        "expert_d_ff": "width of one expert, the widest",
        "n_all_gathers": f"two around {around}",
        "n_all_to_alls": "two around each layer that attends" if ranks is None else "ranks exchange no queries",
        "n_expert_all_to_alls": "to the experts and back, in each layer that has them",
        "query_elements": "queries of a token, on average over the layers that attend",
        "kv_most_bytes": "a sequence without end",
    }


def _computed(held: Holding, ranks: Ranks) -> float:
    """Parameters that a token is multiplied with on all ranks: what is not cut, every tensor rank multiplies anew."""
    used = (weight.tensor for weight in held.stored if weight.tensor.role in MATMUL_ROLES)
    tied = (tensor for tensor in held.unstored if tensor.role in MATMUL_ROLES)
    return sum(
        tensor.active_size * share(tensor, ranks) * (ranks.stage_chips if tensor.n_experts else ranks.tp)
        for tensor in (*used, *tied)
    )


def weight_bytes_per_param(stored: tuple[StoredTensor, ...]) -> float:
    """Bytes of a matrix' parameter, on average over what one token uses. [B]"""
    used = [weight for weight in stored if weight.tensor.role in MATMUL_ROLES]
    shares = [weight.tensor.active_size / weight.tensor.size for weight in used]
    params = sum(weight.tensor.active_size for weight in used)
    return sum(weight.n_bytes * share for weight, share in zip(used, shares, strict=True)) / params


def _expert_groups(held: Holding, n_chips: int) -> tuple[ExpertGroup, ...]:
    sizes: dict[tuple[int, int, int], float] = {}
    parts = [(w.stored.tensor, w.n_bytes * n_chips) for w in held.held] or [(w.tensor, w.n_bytes) for w in held.stored]
    for tensor, n_bytes in parts:
        if tensor.n_active:
            key = (len(tensor.layers), tensor.n_experts, tensor.n_active)
            sizes[key] = sizes.get(key, 0.0) + n_bytes
    return tuple(
        ExpertGroup(n_layers=layers, n_experts=total, n_active=active, n_bytes=n_bytes)
        for (layers, total, active), n_bytes in sizes.items()
    )


def _idle_bytes(held: Holding, n_chips: int) -> float:
    """Bytes that decode leaves alone: towers, and tables beside the input embedding, of which a token reads a row."""
    parts = [(w.stored.tensor, w.n_bytes * n_chips) for w in held.held] or [(w.tensor, w.n_bytes) for w in held.stored]
    return sum(
        n_bytes
        for tensor, n_bytes in parts
        if tensor.role == "tower" or (tensor.role == "embedding" and tensor.module != "embed_tokens")
    )


def _mean_queries(model: Model) -> float:
    widths = [cache.query_elements for layer in model.layers for cache in layer.caches if cache.query_elements]
    return sum(widths) / len(widths) if widths else 0.0


def is_plain(model: Model) -> bool:
    """Every layer is full or windowed attention of one kind and a dense MLP, without towers."""
    kinds = {id(layer) for layer in model.layers}
    if len(kinds) != 1 or model.towers or model.n_experts or model.reduces_once:
        return False
    layer = model.layers[0]
    if layer.mixer is None or layer.feed_forward is None or len(layer.caches) != 1:
        return False
    cache = layer.caches[0]
    return (
        not (cache.state_bytes or cache.other_bytes_per_token)
        and cache.elements_per_token == 2 * cache.n_heads * cache.head_dim
        and cache.reach == cache.window
    )
