"""Attention that reads few of the tokens it could: blocks that an indexer chose, and entries that stand for several.

Both keep index keys beside the cache, which every query reads in full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from slicewise.spec.arrays import Cache, Tensor, matrix, vector
from slicewise.spec.latent import INDEX_SCALE_BYTES
from slicewise.spec.mixers import Extra, Mixer, attention, extras

HALF_BYTES = 2.0
"""A block indexer keeps its keys in 16 bits, whatever the dtype of the cache. [B]"""
COMPRESSOR_BYTES = 4.0
"""A compressor keeps the tokens of its open window in float32. [B]"""


def block_sparse_attention(
    *,
    d_model: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int,
    index_heads: int,
    index_head_dim: int,
    index_tokens: int,
    module: str = "self_attn",
    more: Sequence[Extra] = (),
) -> Mixer:
    """Softmax attention over heads that reads the blocks of tokens that a small indexer chose.

    Args:
        d_model: D.
        n_heads: N.
        n_kv_heads: K.
        head_dim: H.
        index_heads: heads of the indexer's queries.
        index_head_dim: width of an index key; all heads share one a token.
        index_tokens: tokens of the blocks that a query reads.
        module: where the projections are in a checkpoint, below the layer.
        more: further small arrays.

    Raises:
        InputError: query heads do not divide over KV heads.
    """
    full = attention(
        d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads, head_dim=head_dim, module=module, more=more
    )
    width, keys = ("d_model", d_model), ("index_head_dim", index_head_dim)
    queries = ("index_heads*index_head_dim", index_heads * index_head_dim)
    indexer = (
        matrix("index_wq", width, queries, ("embed", ""), "indexer", module=f"{module}.index_q_proj"),
        matrix("index_wk", width, keys, ("embed", ""), "indexer", module=f"{module}.index_k_proj"),
        vector("index_q_norm", keys, "norm"),
        vector("index_k_norm", keys, "norm"),
    )
    flops = 2.0 * index_heads * index_head_dim
    index_keys = Cache(
        name="index keys",
        other_bytes_per_token=index_head_dim * HALF_BYTES,
        decode_flops_per_token=flops,
        prefill_flops_per_token=flops,
    )
    (kept,) = full.caches
    return replace(
        full,
        kind="sparse",
        weights=(*full.weights, *indexer),
        caches=(replace(kept, read_tokens=float(index_tokens)), index_keys),
    )


def compressed_attention(
    *,
    d_model: int,
    n_heads: int,
    head_dim: int,
    q_lora_rank: int,
    out_groups: int,
    out_lora_rank: int,
    window: int,
    ratio: int = 0,
    index_heads: int = 0,
    index_head_dim: int = 0,
    index_entries: int = 0,
    module: str = "attn",
    more: Sequence[Extra] = (),
) -> Mixer:
    """Attention over the last tokens, and over entries that each stand for `ratio` tokens; one key-value head, K = V.

    An entry is as wide as a head, so its cache grows by head_dim / ratio elements a token, whoever shares it. With an
    indexer, a query reads the entries that it chose; then the windows of neighbouring entries overlap, so that a
    compressor projects to two entries and holds back two windows.

    Args:
        d_model: D.
        n_heads: N.
        head_dim: width of a head, of a token in the window, and of an entry.
        q_lora_rank: rank of the queries' factors.
        out_groups: groups of heads that are projected out apart, before one projection joins them.
        out_lora_rank: width of one group after that.
        window: tokens kept as they are.
        ratio: tokens that an entry stands for; 0 where there is only the window.
        index_heads: heads of the indexer; 0 where every entry is read.
        index_head_dim: width of an index key, one an entry, kept in fp8 with one scale.
        index_entries: entries that the indexer lets a query read.
        module: where all of it is in a checkpoint, below the layer.
        more: further small arrays.

    Neglects: engines that keep 64 elements of an fp8 entry in 16 bits, with scales: 584 B where 512 are counted.
    Source: the compressor's state is what vLLM's KV cache groups hold, page by page (vllm-project/vllm, issue 54703)
    """
    width, low, head = ("d_model", d_model), ("q_lora_rank", q_lora_rank), ("head_dim", head_dim)
    grouped = ("n_heads*head_dim/out_groups", n_heads * head_dim // out_groups)
    inner = ("out_groups*out_lora_rank", out_groups * out_lora_rank)

    def put(
        name: str, rows: tuple[str, int], columns: tuple[str, int], axes: tuple[str, str], units: int = 0
    ) -> Tensor:
        return matrix(name, rows, columns, axes, "attention", units=units, module=f"{module}.{name}")

    weights: list[Tensor] = [
        put("wq_a", width, low, ("embed", "")),
        vector("q_norm", low, "norm"),
        put("wq_b", low, ("n_heads*head_dim", n_heads * head_dim), ("", "heads"), n_heads),
        put("wkv", width, head, ("embed", "")),
        vector("kv_norm", head, "norm"),
        put("wo_a", grouped, inner, ("", "heads"), out_groups),
        put("wo_b", inner, width, ("heads", "embed"), out_groups),
        vector("attn_sink", ("n_heads", n_heads), "other", "heads", units=n_heads),
    ]
    flops = 2.0 * n_heads * 2 * head_dim
    kept = [
        Cache(
            name="window",
            elements_per_token=head_dim,
            window=window,
            head_dim=head_dim,
            decode_flops_per_token=flops,
            prefill_flops_per_token=flops,
            query_elements=n_heads * head_dim,
        )
    ]
    if ratio:
        series = 2 if index_heads else 1
        weights += _compressor(width, head, ratio, series, "attention", f"{module}.compressor")
        kept.append(
            Cache(
                name="compressed entries",
                elements_per_token=head_dim / ratio,
                read_tokens=float(index_entries * ratio) if index_heads else math.inf,
                state_bytes=_open_window_bytes(head_dim, ratio, series),
                head_dim=head_dim,
                decode_flops_per_token=flops / ratio,
                prefill_flops_per_token=flops / ratio,
            )
        )
    if ratio and index_heads:
        keys = ("index_head_dim", index_head_dim)
        weights += _entry_indexer(width, low, keys, index_heads, f"{module}.indexer")
        weights += _compressor(width, keys, ratio, 2, "indexer", f"{module}.indexer.compressor")
        scores = 2.0 * index_heads * index_head_dim / ratio
        kept.append(
            Cache(
                name="index keys",
                other_bytes_per_token=(index_head_dim + INDEX_SCALE_BYTES) / ratio,
                state_bytes=_open_window_bytes(index_head_dim, ratio, 2),
                decode_flops_per_token=scores,
                prefill_flops_per_token=scores,
            )
        )
    return Mixer(
        kind="sliding" if not ratio else "compressed sparse" if index_heads else "compressed",
        n_heads=n_heads,
        n_kv_heads=1,
        head_dim=head_dim,
        weights=(*weights, *extras(more, module)),
        caches=tuple(kept),
    )


def _compressor(
    width: tuple[str, int], entry: tuple[str, int], ratio: int, series: int, role: str, module: str
) -> list[Tensor]:
    """What makes entries of tokens: their contents, the weight of each token, and one such weight a place."""
    wide = (f"{entry[0]}*{series}", entry[1] * series)
    name = module.rpartition("attn.")[2]
    return [
        matrix(f"{name}.wkv", width, wide, ("embed", ""), role, module=f"{module}.wkv"),
        matrix(f"{name}.wgate", width, wide, ("embed", ""), role, module=f"{module}.wgate"),
        matrix(f"{name}.ape", ("ratio", ratio), wide, ("", ""), "other", module=f"{module}.ape"),
        vector(f"{name}.norm", entry, "norm"),
    ]


def _entry_indexer(
    width: tuple[str, int], low: tuple[str, int], keys: tuple[str, int], heads: int, module: str
) -> list[Tensor]:
    queries = ("index_heads*index_head_dim", heads * keys[1])
    return [
        matrix("index_wq", low, queries, ("", ""), "indexer", module=f"{module}.wq_b"),
        matrix(
            "index_scores", width, ("index_heads", heads), ("embed", ""), "indexer", module=f"{module}.weights_proj"
        ),
    ]


def _open_window_bytes(entry: int, ratio: int, series: int) -> float:
    """The contents and weights of the tokens whose entry is not made yet, with the window before where they overlap."""
    return series * ratio * 2 * series * entry * COMPRESSOR_BYTES
