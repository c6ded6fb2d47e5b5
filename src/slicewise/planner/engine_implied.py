"""What a logged figure implies where it differs from the predicted one: the reserve, or a cache kept another way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slicewise.costs import paging
from slicewise.errors import InputError
from slicewise.planner.engine_log import cache_dtype, engine_log
from slicewise.planner.engine_record import EngineLog, EngineRun
from slicewise.planner.engines import TPU_INFERENCE, VLLM, Engine
from slicewise.planner.record import record
from slicewise.planner.reserve import Reserve, reserve
from slicewise.spec.arrays import Cache
from slicewise.spec.model import Layer, Model
from slicewise.spec.precision import BYTES_PER_ELEMENT
from slicewise.spec.ranks import Ranks
from slicewise.units import GIB, show_gib

CLOSE = 0.005
"""A reading explains a count of tokens that it gives within this share of it. []"""
_RANK_MISSING = 0.25
"""Another rank may have this much less memory before something else is the likelier reason. []"""
_DTYPES = ("bf16", "fp8", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A way to read a logged figure.

    Attributes:
        what: as predicted, another dtype, unsharded heads, unpadded rows, one stage for all, materialised heads,
            windows charged in full, pages as wide as the widest, or another rank.
        tokens: the tokens that it gives.
        ratio: the logged tokens over these; 1 where it explains them. []
        detail: one sentence.
    """

    what: str
    tokens: int
    ratio: float
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """What a logged figure implies.

    Attributes:
        reserve_bytes_per_chip: what weights and cache leave of the share of memory; None where that is not known. [B]
        missing_bytes_per_chip: predicted pool less the logged one; None where no pool was logged. [B]
        memory_fraction: share of memory that gives the logged pool with the predicted reserve; None as above. []
        bytes_per_token: logged pool over logged tokens, on a chip; None where no tokens were logged. [B]
        readings: ways to read the tokens that explain them, likeliest first; empty where none does.
        sentences: all of it in words.
    """

    reserve_bytes_per_chip: float | None
    missing_bytes_per_chip: float | None
    memory_fraction: float | None
    bytes_per_token: float | None
    readings: tuple[Reading, ...]
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        own = record(self, without=("readings",))
        return {**own, "readings": [record(reading) for reading in self.readings]}


def implied(
    model: Model,
    run: EngineRun,
    *,
    kv_bytes_per_chip: float | None = None,
    tokens: int | None = None,
    hbm_bytes_per_chip: float | None = None,
    memory_fraction: float | None = None,
) -> Implied:
    """What an engine's logged pool or tokens imply.

    Args:
        model: what was served.
        run: as it was predicted.
        kv_bytes_per_chip: the logged pool. [B]
        tokens: the logged tokens.
        hbm_bytes_per_chip: memory of a chip, for the reserve. [B]
        memory_fraction: share of it that the engine was told to use.

    Raises:
        InputError: neither a pool nor tokens were given, or the run cannot be.
    """
    if kv_bytes_per_chip is None and tokens is None:
        raise InputError("nothing logged was given; give the pool or the tokens that the engine printed")
    predicted, usual = engine_log(model, run), reserve(run.engine, model, run.ranks)
    pool_is_logged = kv_bytes_per_chip is not None
    if kv_bytes_per_chip is None and predicted.tokens and tokens and hbm_bytes_per_chip and memory_fraction:
        # Tokens alone: the pool that they need is likely, where what it leaves is what engines keep.
        needed = predicted.kv_bytes_per_chip * tokens / predicted.tokens
        left = memory_fraction * hbm_bytes_per_chip - (run.weight_bytes_per_chip or 0.0) - needed
        if usual.low_bytes <= left <= usual.high_bytes:
            kv_bytes_per_chip = needed
    pool = predicted.kv_bytes_per_chip if kv_bytes_per_chip is None else kv_bytes_per_chip
    missing = None if kv_bytes_per_chip is None else predicted.kv_bytes_per_chip - kv_bytes_per_chip
    weights = run.weight_bytes_per_chip
    kept = share = None
    if missing is not None and hbm_bytes_per_chip and memory_fraction:
        share = memory_fraction - missing / hbm_bytes_per_chip
        if weights is not None:
            kept = float(paging.fraction_pool_bytes(memory_fraction, hbm_bytes_per_chip, weights + pool, 0.0))
    known = replace(run, pool_bytes_per_chip=pool)
    readings = () if tokens is None else _readings(model, known, tokens, pool_is_logged=pool_is_logged)
    found = Implied(
        reserve_bytes_per_chip=kept,
        missing_bytes_per_chip=missing,
        memory_fraction=share,
        bytes_per_token=pool / tokens if tokens else None,
        readings=readings,
        sentences=(),
    )
    told = _sentences(found, predicted, pool, tokens, usual, memory_fraction, pool_is_logged=pool_is_logged)
    return replace(found, sentences=tuple(told))


def _readings(model: Model, run: EngineRun, tokens: int, *, pool_is_logged: bool) -> tuple[Reading, ...]:
    """The readings that explain the tokens; pairs with another dtype are tried where no single one does."""
    tried = [_reading(what, detail, log, tokens) for what, detail, log in _alternatives(model, run)]
    close = [reading for reading in tried if abs(reading.ratio - 1) <= CLOSE]
    if close:
        # What was predicted needs no other reading that comes to the same.
        return (close[0],) if close[0] is tried[0] else tuple(close)
    own = cache_dtype(model, run.kv_dtype)
    for dtype in (name for name in _DTYPES if BYTES_PER_ELEMENT[name] != BYTES_PER_ELEMENT[own]):
        for what, detail, log in _alternatives(model, replace(run, kv_dtype=dtype)):
            reading = _reading(f"{what} and {dtype} cache", f"{detail}, in {dtype}", log, tokens)
            if abs(reading.ratio - 1) <= CLOSE:
                return (reading,)
    first = tried[0]
    if pool_is_logged and 1 - _RANK_MISSING <= first.ratio < 1:
        decides = run.pools[0] * first.ratio
        detail = f"a poorer rank, which has {show_gib(decides)} for its cache, decides how many tokens all hold"
        return (replace(first, what="another rank", detail=detail),)
    return ()


def _reading(what: str, detail: str, log: EngineLog, tokens: int) -> Reading:
    counted = log.tokens or 0
    return Reading(what=what, tokens=counted, ratio=tokens / counted if counted else math.inf, detail=detail)


def _alternatives(model: Model, run: EngineRun) -> Iterator[tuple[str, str, EngineLog]]:
    """Ways in which an engine may have kept the cache, and what it would have logged."""
    own = cache_dtype(model, run.kv_dtype)
    yield "as predicted", "the tokens are those of this pool", engine_log(model, run)
    for dtype in _DTYPES:
        if BYTES_PER_ELEMENT[dtype] != BYTES_PER_ELEMENT[own]:
            detail = f"the cache is kept in {dtype} rather than {own}"
            yield f"{dtype} cache", detail, engine_log(model, replace(run, kv_dtype=dtype))
    if run.ranks.tp > 1:
        ranks = Ranks(tp=1, pp=run.ranks.pp)
        detail = f"every chip is charged all KV heads, as if they were not cut over tp {run.ranks.tp}"
        yield "unsharded heads", detail, engine_log(model, replace(run, ranks=ranks))
    if run.engine.name == TPU_INFERENCE:
        block = engine_log(model, run).block_tokens
        detail = "rows are counted without the padding that the chip's words and lanes ask for"
        yield "unpadded rows", detail, engine_log(model, replace(run, engine=Engine(name=VLLM), block_tokens=block))
    if run.ranks.pp > 1:
        ranks = replace(run.ranks, pp=1)
        detail = f"one rank is charged all {model.n_layers} layers, not those of its stage"
        alone = replace(run, ranks=ranks, layer_split=(), pool_bytes_per_chip=min(run.pools))
        yield "one stage for all", detail, engine_log(model, alone)
    if any(_is_latent(layer) for layer in model.layers):
        detail = "keys and values are kept for every head instead of the latent, as before engines knew it"
        yield "materialised heads", detail, engine_log(_materialised(model), run)
    if any(cache.window < math.inf for mixer in model.attentions for cache in mixer.caches):
        detail = "layers with a window are charged every token, as an engine does that frees nothing behind a window"
        yield "windows charged in full", detail, engine_log(model, replace(run, windows=False))
        detail = "every layer is charged every token, and a page as wide as the widest layer's"
        yield "pages as wide as the widest", detail, engine_log(_widest(model), replace(run, windows=False))


def _with_caches(model: Model, change: Mapping[int, tuple[Cache, ...]]) -> Model:
    """The model with other caches in some of its layers, which are told apart by identity."""
    made: dict[int, Layer] = {}
    for layer in model.layers:
        if id(layer) in change and layer.mixer is not None and id(layer) not in made:
            made[id(layer)] = replace(layer, mixer=replace(layer.mixer, caches=change[id(layer)]))
    return replace(model, layers=tuple(made.get(id(layer), layer) for layer in model.layers))


def _is_latent(layer: Layer) -> bool:
    return any(cache.name == "latent" for cache in layer.caches)


def _materialised(model: Model) -> Model:
    """The model as it is cached head by head, keys and values padded to a power of two."""
    change = {}
    for layer in model.layers:
        if layer.mixer is None or not _is_latent(layer):
            continue
        heads = layer.mixer.n_heads
        (out,) = [tensor for tensor in layer.mixer.weights if tensor.name in ("wq_b", "wq")]
        width = 1 << (out.dims[-1][1] // heads - 1).bit_length()
        kept = Cache(
            name="k and v", elements_per_token=2 * heads * width, n_heads=heads, head_dim=width, value_dim=width
        )
        change[id(layer)] = (kept,)
    return _with_caches(model, change)


def _widest(model: Model) -> Model:
    """The model with every layer's keys and values as wide as the widest layer's."""
    caches = [cache for mixer in model.attentions for cache in mixer.caches if cache.head_dim]
    widest = max(caches, key=lambda cache: cache.elements_per_token)
    change = {
        id(layer): (replace(widest, window=math.inf),)
        for layer in model.layers
        if layer.mixer in model.attentions and any(cache.elements_per_token for cache in layer.caches)
    }
    return _with_caches(model, change)


def _sentences(
    found: Implied,
    predicted: EngineLog,
    pool: float,
    tokens: int | None,
    usual: Reserve,
    memory_fraction: float | None,
    *,
    pool_is_logged: bool,
) -> Iterator[str]:
    missing = found.missing_bytes_per_chip
    if missing is not None:
        side = "less" if missing >= 0 else "more"
        what = (
            "the logged pool"
            if pool_is_logged
            else f"{tokens:,} tokens need a pool, and that"
            if tokens
            else "the pool"
        )
        yield (
            f"{what} of {show_gib(pool)} a chip is {show_gib(abs(missing))} {side} than the predicted"
            f" {show_gib(predicted.kv_bytes_per_chip)}"
        )
    if found.reserve_bytes_per_chip is not None:
        least, most = usual.low_bytes / GIB, usual.high_bytes / GIB
        yield (
            f"it leaves {show_gib(found.reserve_bytes_per_chip)} a chip for activations, graphs and buffers"
            f"{f', where logs show {least:g} to {most:g} GiB' if most else ''};"
            " the largest batch, the vocabulary and the engine's version set that, not the model's config alone"
        )
    if found.memory_fraction is not None and memory_fraction is not None and missing:
        yield f"a memory fraction of {found.memory_fraction:.3g} instead of {memory_fraction:g} would give it, too"
    if tokens is None:
        return
    if found.bytes_per_token is not None:
        yield f"{tokens:,} tokens of {show_gib(pool)} are {found.bytes_per_token:,.1f} B a token on each chip"
    if not found.readings:
        yield (
            f"no reading known here explains them: {predicted.tokens:,} were predicted"
            if predicted.tokens is not None and missing in (None, 0.0)
            else "no reading known here explains them"
        )
    for reading in found.readings:
        yield f"{reading.what}: {reading.detail} ({reading.tokens:,} tokens)"
