"""What each layer keeps on one chip, and how vLLM groups such layers in one pool of equal blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from slicewise.costs import hybrid_paging, paging
from slicewise.errors import InputError
from slicewise.planner.engines import BLOCK_MULTIPLE, Engine
from slicewise.spec.arrays import Cache
from slicewise.spec.model import Model
from slicewise.spec.padding import tpu_padding
from slicewise.spec.precision import BYTES_PER_ELEMENT
from slicewise.spec.ranks import cache_copies

FULL, SLIDING, CHUNKED, STATE, COMPRESSED = "full", "sliding", "chunked", "state", "compressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedLayer:
    """What one layer keeps of a sequence on one chip.

    Attributes:
        kind: full, sliding, chunked, state, or compressed (entries that stand for several tokens).
        bytes_per_token: of what grows. [B]
        key_bytes_per_token: of these, of the keys; 0 where keys and values are one. [B]
        window: most tokens kept; inf where all are.
        state_bytes: of what does not grow. [B]
    """

    kind: str
    bytes_per_token: float = 0.0
    key_bytes_per_token: float = 0.0
    window: float = math.inf
    state_bytes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedKind:
    """Layers that are alike, in groups.

    Attributes:
        layer: what each keeps.
        layers: which they are.
        groups: groups that they are split into.
        block_tokens: tokens of a block.
    """

    layer: PagedLayer
    layers: tuple[int, ...]
    groups: int
    block_tokens: int

    def request_blocks(self, max_model_len: int, batched_tokens: int, engine: Engine) -> int:
        """Blocks that one request takes in each of the groups."""
        layer, length = self.layer, float(max_model_len)
        if layer.kind == STATE:
            return int(hybrid_paging.state_request_blocks(engine.resident_states, 0))
        if layer.kind == FULL:
            return int(paging.request_blocks(length, self.block_tokens))
        blocks = paging.sliding_request_blocks if layer.kind == SLIDING else paging.chunked_request_blocks
        return int(blocks(length, layer.window, batched_tokens, engine.batches_in_flight, self.block_tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedPool:
    """One pool of equal blocks.

    Attributes:
        kinds: the kinds of layers that share it.
        group_layers: layers of a group; of one kind alone, all of them.
        block_bytes: bytes of a block on a chip of each pipeline stage. [B]
    """

    kinds: tuple[PagedKind, ...]
    group_layers: int
    block_bytes: tuple[float, ...]

    @property
    def n_groups(self) -> int:
        """Groups of all kinds."""
        return sum(kind.groups for kind in self.kinds)

    @property
    def padding(self) -> tuple[tuple[int, float], ...]:
        """Layers that each kind is padded by, and their share of the kind."""
        found = []
        for kind in self.kinds:
            n_layers = len(kind.layers)
            padding = hybrid_paging.padding_layers(n_layers, kind.groups, self.group_layers)
            found.append((int(padding), float(hybrid_paging.padding_share(padding, n_layers))))
        return tuple(found)

    def request_blocks(self, max_model_len: int, batched_tokens: int, engine: Engine) -> int:
        """Blocks that one request takes over all groups."""
        blocks = tuple(kind.request_blocks(max_model_len, batched_tokens, engine) for kind in self.kinds)
        return int(hybrid_paging.grouped_request_blocks(tuple(kind.groups for kind in self.kinds), blocks))


def paged_layers(
    model: Model, kv_dtype: str, tp: int, *, padded: bool = False, windows: bool = True
) -> tuple[tuple[PagedLayer, ...], ...]:
    """What each layer of a model keeps on one of `tp` chips, kind by kind.

    Args:
        model: the model.
        kv_dtype: dtype of the cache.
        tp: tensor-parallel ranks.
        padded: rows are padded as a TPU has them.
        windows: the engine frees what a window has passed; False to charge every token.

    Raises:
        InputError: KV heads neither divide over the ranks nor divide them, or the dtype is not known.
    """
    if kv_dtype not in BYTES_PER_ELEMENT:
        raise InputError(f"kv dtype {kv_dtype} is not known; use one of {', '.join(BYTES_PER_ELEMENT)}")
    made: dict[int, tuple[PagedLayer, ...]] = {}
    found = []
    for layer in model.layers:
        if id(layer) not in made:
            chunked = layer.mixer is not None and layer.mixer.kind == CHUNKED
            kept = [_paged(cache, kv_dtype, tp, chunked=chunked, padded=padded) for cache in layer.caches]
            made[id(layer)] = _joined([_unbounded(part) if not windows else part for part in kept])
        found.append(made[id(layer)])
    return tuple(found)


def paged_pool(
    layers: Sequence[tuple[PagedLayer, ...]], stages: Sequence[range], engine: Engine, block_tokens: int
) -> PagedPool | None:
    """How an engine with pages shares out one pool; None where a layer keeps what its rules do not describe.

    Args:
        layers: what each layer keeps.
        stages: layers of each pipeline stage.
        engine: whose rules.
        block_tokens: tokens of a block before pages are made alike.
    """
    kinds: dict[PagedLayer, list[int]] = {}
    for index, kept in enumerate(layers):
        for part in kept:
            kinds.setdefault(replace(part, key_bytes_per_token=0.0), []).append(index)
    if not kinds or any(part.kind == COMPRESSED for part in kinds):
        return None
    if len({(part.kind, part.window, part.state_bytes) for part in kinds}) == 1:
        return _one_kind(kinds, stages, block_tokens)
    block = _beside_states(kinds, block_tokens)
    pages = {part: part.state_bytes if part.kind == STATE else part.bytes_per_token * block for part in kinds}
    page = max(pages.values())
    size = int(hybrid_paging.group_layers(tuple(map(len, kinds.values())), engine.padding_tolerance))
    grouped = tuple(
        PagedKind(
            layer=part,
            layers=tuple(indices),
            groups=int(hybrid_paging.groups_of_kind(len(indices), size)),
            # A page that does not go into the largest whole keeps its tokens and is padded.
            block_tokens=block if part.kind == STATE or page % pages[part] else int(block * page // pages[part]),
        )
        for part, indices in kinds.items()
    )
    deep = [max(_deepest_group(kind, stage) for kind in grouped) for stage in stages]
    return PagedPool(kinds=grouped, group_layers=size, block_bytes=tuple(page * depth for depth in deep))


def _paged(cache: Cache, kv_dtype: str, tp: int, *, chunked: bool, padded: bool) -> PagedLayer:
    heads = cache.n_heads
    if heads % tp and tp % heads:
        what = "state heads" if cache.state_bytes else "KV heads"
        raise InputError(f"{heads} {what} neither divide over tp {tp} nor divide it; use tp {math.gcd(heads, tp)}")
    held = cache_copies(cache, tp) / tp
    elements = held * BYTES_PER_ELEMENT[kv_dtype] * (tpu_padding(cache, kv_dtype, max(1, heads // tp)) if padded else 1)
    grown = cache.elements_per_token * elements + cache.other_bytes_per_token * held
    keys = cache.head_dim / (cache.head_dim + cache.value_dim) if cache.value_dim else 0.0
    if cache.state_bytes and grown:
        kind = COMPRESSED
    elif cache.state_bytes:
        kind = STATE
    elif cache.window == math.inf:
        kind = FULL
    else:
        kind = CHUNKED if chunked else SLIDING
    return PagedLayer(
        kind=kind,
        bytes_per_token=grown,
        key_bytes_per_token=cache.elements_per_token * elements * keys,
        window=cache.window,
        state_bytes=cache.state_bytes * held,
    )


def _unbounded(part: PagedLayer) -> PagedLayer:
    return replace(part, kind=FULL, window=math.inf) if part.kind in (SLIDING, CHUNKED) else part


def _joined(parts: list[PagedLayer]) -> tuple[PagedLayer, ...]:
    """The parts of a layer, those that grow alike as one: a latent with its index keys."""
    found: dict[tuple[str, float], PagedLayer] = {}
    for part in parts:
        if not (part.bytes_per_token or part.state_bytes):
            continue  # A layer that reads what an earlier one keeps.
        other = found.get((part.kind, part.window))
        found[part.kind, part.window] = part if other is None else _sum(other, part)
    return tuple(found.values())


def _sum(one: PagedLayer, other: PagedLayer) -> PagedLayer:
    return replace(
        one,
        bytes_per_token=one.bytes_per_token + other.bytes_per_token,
        key_bytes_per_token=one.key_bytes_per_token + other.key_bytes_per_token,
        state_bytes=one.state_bytes + other.state_bytes,
    )


def _one_kind(kinds: dict[PagedLayer, list[int]], stages: Sequence[range], block: int) -> PagedPool:
    """Layers that need as many blocks each make one group, whatever their widths."""
    indices = sorted(index for found in kinds.values() for index in found)
    first = next(iter(kinds))
    of_stages = [
        sum(
            (part.bytes_per_token * block or part.state_bytes) * sum(index in stage for index in found)
            for part, found in kinds.items()
        )
        for stage in stages
    ]
    kind = PagedKind(layer=first, layers=tuple(indices), groups=1, block_tokens=block)
    return PagedPool(kinds=(kind,), group_layers=len(indices), block_bytes=tuple(of_stages))


def _beside_states(kinds: dict[PagedLayer, list[int]], block: int) -> int:
    """Tokens of an attention block, long enough for its page to hold a state."""
    states = [part.state_bytes for part in kinds if part.kind == STATE]
    attention = [part for part in kinds if part.kind != STATE]
    if not states or not attention:
        return block
    per_token = next((part for part in attention if part.kind == FULL), attention[0]).bytes_per_token
    return max(block, int(hybrid_paging.attention_block_tokens(max(states), per_token, BLOCK_MULTIPLE)))


def _deepest_group(kind: PagedKind, stage: range) -> int:
    """Layers of a stage in the group that has most; layers are dealt out to the groups in turn."""
    groups = (kind.layers[start :: kind.groups] for start in range(kind.groups))
    return max(sum(index in stage for index in group) for group in groups)
