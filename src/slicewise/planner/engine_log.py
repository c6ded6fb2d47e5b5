"""What a serving engine will count in its KV cache: blocks, tokens, and requests of the longest length.

The poorest pipeline stage decides for all.

Neglects: draft models, context parallelism, caches on the host, and blocks that requests share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from slicewise.costs import hybrid_paging, paging
from slicewise.errors import InputError
from slicewise.planner.engine_record import EngineLog, EngineRun
from slicewise.planner.engine_words import lines, notes
from slicewise.planner.engines import TPU_INFERENCE, block_tokens
from slicewise.planner.paged_layers import CHUNKED, FULL, SLIDING, PagedLayer, PagedPool, paged_layers, paged_pool
from slicewise.spec.model import Model
from slicewise.spec.precision import DTYPE_ALIASES
from slicewise.spec.ranks import stages

Layers = Sequence[tuple[PagedLayer, ...]]

LONGEST = 1 << 40
"""Tokens that no request reaches: where one of these fits, windows bound the cache first."""


def cache_dtype(model: Model, kv_dtype: str) -> str:
    """The dtype of the cache by the names of engines: "auto" is what the checkpoint asks for, or its own 16 bits."""
    if kv_dtype != "auto":
        return DTYPE_ALIASES.get(kv_dtype, kv_dtype)
    asked = model.quantisation.kv_dtype if model.quantisation else None
    return asked or ("fp16" if model.checkpoint_dtype == "fp16" else "bf16")


def engine_log(model: Model, run: EngineRun) -> EngineLog:
    """What an engine logs of a model's cache.

    Raises:
        InputError: the model cannot be divided so, keeps no cache, or the dtype is not known.
    """
    padded = run.engine.name == TPU_INFERENCE
    kv_dtype = cache_dtype(model, run.kv_dtype)
    layers = paged_layers(model, kv_dtype, run.ranks.tp, padded=padded, windows=run.windows)
    split = stages(model.n_layers, run.ranks.pp, run.layer_split)
    if not any(layers):
        raise InputError(f"{model.name} keeps no cache; there is no pool to log")
    if run.engine.pages:
        sparse = any(cache.name == "index keys" for mixer in model.mixers for cache in mixer.caches)
        block = run.block_tokens or block_tokens(run.engine, run.max_model_len, sparse=sparse)
        pool = paged_pool(layers, split, run.engine, block)
        log = _bytes_alone(layers, split, run, block) if pool is None else _shared_pool(pool, run)
    else:
        pool, log = None, _pools_of_tokens(layers, split, run)
    log = replace(log, engine=str(run.engine), weight_bytes_per_chip=run.weight_bytes_per_chip)
    return replace(log, lines=lines(log, pool, run), notes=notes(log, layers, model, run))


def _shared_pool(pool: PagedPool, run: EngineRun) -> EngineLog:
    """Blocks that groups of layers share, as vLLM and tpu-inference have them."""
    batched, engine = run.max_num_batched_tokens, run.engine
    counts = [
        float(paging.pool_blocks(free, block_bytes, 1)) if block_bytes else math.inf
        for free, block_bytes in zip(run.pools, pool.block_bytes, strict=True)
    ]
    stage = counts.index(min(counts))
    blocks, block_bytes = int(counts[stage]), pool.block_bytes[stage]
    needed = pool.request_blocks(run.max_model_len, batched, engine)
    concurrency = float(paging.max_concurrency(blocks, needed))
    smallest = min(kind.block_tokens for kind in pool.kinds)
    tokens = (
        hybrid_paging.equivalent_pool_tokens(concurrency, run.max_model_len)
        if engine.tokens_by_concurrency
        else hybrid_paging.grouped_pool_tokens(blocks, pool.n_groups, smallest)
    )
    growing = [kind for kind in pool.kinds if kind.layer.kind == FULL]
    bounded = [kind for kind in pool.kinds if kind.layer.kind != FULL]
    fixed = sum(kind.groups * kind.request_blocks(LONGEST, batched, engine) for kind in bounded)
    return EngineLog(
        engine="",
        kv_bytes_per_chip=run.pools[stage],
        block_tokens=smallest,
        block_bytes=block_bytes,
        blocks=blocks,
        tokens=int(tokens),
        tokens_are_capacity=not bounded,
        max_model_len=run.max_model_len,
        max_concurrency=concurrency,
        request_bytes=needed * block_bytes,
        longest_request_tokens=_longest(pool, blocks, run),
        fixed_bytes=fixed * block_bytes,
        marginal_bytes_per_token=sum(kind.groups * block_bytes / kind.block_tokens for kind in growing),
        groups=pool.n_groups,
        padding=tuple(pair for pair in pool.padding if pair[0]),
    )


def _longest(pool: PagedPool, blocks: int, run: EngineRun) -> int | None:
    """The longest request whose blocks are there; None where windows bound it first."""
    low, high = 0, LONGEST
    if pool.request_blocks(high, run.max_num_batched_tokens, run.engine) <= blocks:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if pool.request_blocks(middle, run.max_num_batched_tokens, run.engine) <= blocks:
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """What one token takes on a chip of a pipeline stage, and what states take. [B]"""

    full: float
    windowed: float
    full_keys: float
    windowed_keys: float
    state: float


def _of_stage(layers: Layers, stage: range) -> _Stage:
    parts = [part for index in stage for part in layers[index]]
    windowed = [part for part in parts if part.kind in (SLIDING, CHUNKED)]
    others = [part for part in parts if part.kind not in (SLIDING, CHUNKED)]
    return _Stage(
        full=sum(part.bytes_per_token for part in others),
        windowed=sum(part.bytes_per_token for part in windowed),
        full_keys=sum(part.key_bytes_per_token for part in others),
        windowed_keys=sum(part.key_bytes_per_token for part in windowed),
        state=sum(part.state_bytes for part in parts),
    )


def _widest(layers: Layers) -> float:
    """The most tokens that a layer with a window keeps; 0 where there is none."""
    return max((part.window for kept in layers for part in kept if part.window < math.inf), default=0.0)


def _pools_of_tokens(layers: Layers, split: Sequence[range], run: EngineRun) -> EngineLog:
    """SGLang: a pool of tokens for full attention, one for windows, and slots of states beside them."""
    length, widest, sums = float(run.max_model_len), _widest(layers), [_of_stage(layers, stage) for stage in split]
    share = run.window_pool_share if any(held.full for held in sums) else 1.0
    counts = [
        float(paging.full_pool_tokens(free, held.full, held.windowed, share)) if held.full + held.windowed else math.inf
        for free, held in zip(run.pools, sums, strict=True)
    ]
    tokens = min(counts)
    if tokens == math.inf:
        raise InputError("no layer keeps tokens; SGLang's pool of states has as many slots as --max-running-requests")
    held = sums[counts.index(tokens)]
    in_window = float(paging.window_pool_tokens(tokens, share))
    state = max(found.state for found in sums)
    reached = min(length, widest)
    bounds = [tokens / length] if held.full else []
    bounds += [in_window / reached] if held.windowed else []
    keys = held.full_keys * tokens + held.windowed_keys * in_window
    total = held.full * tokens + held.windowed * in_window
    return EngineLog(
        engine="",
        kv_bytes_per_chip=total,
        key_bytes_per_chip=keys or None,
        value_bytes_per_chip=total - keys if keys else None,
        block_tokens=1,
        block_bytes=held.full + share * held.windowed,
        tokens=int(tokens),
        tokens_are_capacity=not held.windowed,
        window_tokens=int(in_window) if held.windowed else None,
        max_model_len=run.max_model_len,
        max_concurrency=min(bounds),
        request_bytes=held.full * length + held.windowed * reached,
        longest_request_tokens=int(tokens) if held.full else None,
        fixed_bytes=held.windowed * widest + held.state,
        marginal_bytes_per_token=held.full,
        state_pool_bytes=state * (run.state_slots + 1) if state and run.state_slots else None,
    )


def _bytes_alone(layers: Layers, split: Sequence[range], run: EngineRun, block: int) -> EngineLog:
    """A cache whose pages are not described here: bytes, and no count of blocks or tokens."""
    held = max((_of_stage(layers, stage) for stage in split), key=lambda found: found.full)
    return EngineLog(
        engine="",
        kv_bytes_per_chip=min(run.pools),
        block_tokens=block,
        max_model_len=run.max_model_len,
        fixed_bytes=held.windowed * _widest(layers) + held.state,
        marginal_bytes_per_token=held.full,
    )
