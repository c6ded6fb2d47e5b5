"""The lines that an engine logs, as it rounds and names them, and what to know before comparing them.

Engines print binary units whatever they call them: SGLang's "GB", and vLLM's before 2025, are GiB.
"""

from __future__ import annotations

from collections.abc import Sequence

from slicewise.planner.engine_record import EngineLog, EngineRun
from slicewise.planner.engines import SGLANG, VLLM
from slicewise.planner.paged_layers import STATE, PagedLayer, PagedPool
from slicewise.spec.model import Model
from slicewise.units import GIB, show, show_gib

_BLOCKS_PRINTED = (0, 8)
"""vLLM printed blocks before this version, tokens since."""


def lines(log: EngineLog, pool: PagedPool | None, run: EngineRun) -> tuple[str, ...]:
    """The lines of the log that tell of memory.

    Args:
        log: the numbers.
        pool: how layers share it, where they do.
        run: how the engine is started.
    """
    return tuple(_sglang(log) if run.engine.name == SGLANG else _vllm(log, pool, run))


def _vllm(log: EngineLog, pool: PagedPool | None, run: EngineRun) -> list[str]:
    is_old = run.engine.name == VLLM and run.engine.version < _BLOCKS_PRINTED
    found = []
    if log.weight_bytes_per_chip is not None:
        weights = log.weight_bytes_per_chip / GIB
        found.append(
            f"Loading model weights took {weights:.4f} GB" if is_old else f"Model loading took {weights:.2f} GiB memory"
        )
    states = [kind.block_tokens for kind in pool.kinds if kind.layer.kind == STATE] if pool else []
    if states and pool and len(pool.kinds) > 1:
        found.append(f"Setting attention block size to {states[0]} tokens")
    found.append(f"Available KV cache memory: {log.kv_bytes_per_chip / GIB:.2f} GiB")
    found += [
        f"Add {n_layers} padding layers, may waste at most {share:.2%} KV cache memory"
        for n_layers, share in log.padding
    ]
    if log.tokens is not None:
        found.append(f"# GPU blocks: {log.blocks}" if is_old else f"GPU KV cache size: {log.tokens:,} tokens")
    if log.max_concurrency is not None:
        length = f"{log.max_model_len}" if is_old else f"{log.max_model_len:,}"
        found.append(f"Maximum concurrency for {length} tokens per request: {log.max_concurrency:.2f}x")
    return found


def _sglang(log: EngineLog) -> list[str]:
    found = []
    if log.weight_bytes_per_chip is not None:
        found.append(f"Load weight end. mem usage={log.weight_bytes_per_chip / GIB:.2f} GB.")
    if log.state_pool_bytes is not None:
        found.append(f"Mamba Cache is allocated. {log.state_pool_bytes / GIB:.2f}GB of conv_state and ssm_state")
    if log.window_tokens is not None:
        size = f"{log.kv_bytes_per_chip / GIB:.2f} GB"
        return [*found, f"SWAKVPool mem usage: {size}, swa size: {log.window_tokens}, full size: {log.tokens}"]
    size = f"KV size: {log.kv_bytes_per_chip / GIB:.2f} GB"
    if log.key_bytes_per_chip is not None and log.value_bytes_per_chip is not None:
        keys, values = log.key_bytes_per_chip / GIB, log.value_bytes_per_chip / GIB
        size = f"K size: {keys:.2f} GB, V size: {values:.2f} GB"
    found.append(f"KV Cache is allocated. #tokens: {log.tokens}, {size}")
    return found


def notes(log: EngineLog, layers: Sequence[tuple[PagedLayer, ...]], model: Model, run: EngineRun) -> tuple[str, ...]:
    """What to know before comparing, in sentences.

    Args:
        log: the numbers.
        layers: what each layer keeps.
        model: whose they are.
        run: how the engine is started.
    """
    found = []
    if not log.starts and run.engine.name != SGLANG and log.request_bytes is not None:
        longest = f"; the longest that fits is {log.longest_request_tokens:,} tokens" if log.blocks else ""
        found.append(
            f"the engine refuses to start: one request of {log.max_model_len:,} tokens needs"
            f" {show_gib(log.request_bytes)} a chip, and {show_gib(log.kv_bytes_per_chip)} are there{longest}"
        )
    if log.tokens is None:
        found.append(
            "how the engine cuts this cache into pages is not described here, so no tokens and no concurrency are given"
        )
    elif not log.tokens_are_capacity:
        found.append(_no_capacity(log, run))
    if any(part.kind == STATE for kept in layers for part in kept) and run.engine.name == SGLANG:
        pool = "" if log.state_pool_bytes is not None else "; give its slots to have its size"
        found.append(f"recurrent states are in a pool of their own, so the tokens are those of attention{pool}")
    if run.ranks.pp > 1:
        found.append(f"the poorest of {run.ranks.pp} pipeline stages decides; others may print more memory")
    if run.ranks.dp > 1:
        found.append(f"each of {run.ranks.dp} replicas logs this; together they hold {run.ranks.dp} times as much")
    kept = [cache for mixer in model.mixers for cache in mixer.caches if cache.elements_per_token or cache.state_bytes]
    fewest = min(cache.n_heads for cache in kept)
    if fewest < run.ranks.tp:
        what = "a cache that all heads share (MLA, one KV head) is" if fewest == 1 else f"{fewest} KV heads are"
        found.append(f"{what} replicated over tp {run.ranks.tp}: more chips add cache only by freed weights")
    return tuple(found)


def _no_capacity(log: EngineLog, run: EngineRun) -> str:
    many = f"{log.max_concurrency:,.2f} requests of {log.max_model_len:,} tokens fit"
    grows = (
        f"a request takes {show(log.fixed_bytes, 'B')} and {show(log.marginal_bytes_per_token, 'B')} a token, a chip"
    )
    if run.engine.name == SGLANG:
        return f"the tokens are of full attention, beside {log.window_tokens:,} in windows: {many}; {grows}"
    return f"the token count is no capacity, for windows and states do not grow with the length: {many}; {grows}"
