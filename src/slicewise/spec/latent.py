"""Latent attention: one latent a token that all heads share, read in full or where an indexer chooses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from slicewise.spec.arrays import Cache, Tensor, matrix, vector
from slicewise.spec.mixers import Extra, Mixer, extras

INDEX_SCALE_BYTES = 4.0
"""An index key is kept in fp8 with one float32 scale. [B]"""


def latent_attention(
    *,
    d_model: int,
    n_heads: int,
    q_lora_rank: int,
    kv_lora_rank: int,
    qk_nope_head_dim: int,
    qk_rope_head_dim: int,
    value_dim: int,
    qkv_bias: bool = False,
    out_bias: bool = False,
    gated: bool = False,
    index_heads: int = 0,
    index_head_dim: int = 0,
    index_tokens: int = 0,
    index_weights: bool = True,
    module: str = "self_attn",
    more: Sequence[Extra] = (),
) -> Mixer:
    """Multi-head latent attention (MLA): one latent and one rotary key a token, shared by all heads.

    Args:
        d_model: D.
        n_heads: N.
        q_lora_rank: rank of the queries' factors; 0 where they are projected at once.
        kv_lora_rank: width of the latent.
        qk_nope_head_dim: width of a head's key that is made of the latent.
        qk_rope_head_dim: width of the rotary key.
        value_dim: width of a head's value.
        qkv_bias: the projections to the ranks have biases.
        out_bias: the projection out has one.
        gated: a projection of the input gates the output, channel by channel.
        index_heads: heads of a sparse-attention indexer; 0 where there is none.
        index_head_dim: width of an index key, kept in fp8 with one scale.
        index_tokens: tokens that the indexer lets a query attend to.
        index_weights: the indexer is this layer's own; False where it uses an earlier layer's choice.
        module: where the projections are in a checkpoint, below the layer.
        more: further small arrays.
    """
    width, rank = ("d_model", d_model), ("kv_lora_rank", kv_lora_rank)
    head = qk_nope_head_dim + qk_rope_head_dim
    queries = ("n_heads*qk_head_dim", n_heads * head)
    latent = ("kv_lora_rank+qk_rope_head_dim", kv_lora_rank + qk_rope_head_dim)
    expanded = ("n_heads*(qk_nope_head_dim+value_dim)", n_heads * (qk_nope_head_dim + value_dim))
    out = ("n_heads*value_dim", n_heads * value_dim)

    def put(name: str, rows: tuple[str, int], columns: tuple[str, int], axes: tuple[str, str], place: str) -> Tensor:
        return matrix(name, rows, columns, axes, "attention", units=n_heads, module=f"{module}.{place}")

    weights: list[Tensor] = []
    if q_lora_rank:
        low = ("q_lora_rank", q_lora_rank)
        weights += [
            put("wq_a", width, low, ("embed", ""), "q_a_proj"),
            vector("q_a_norm", low, "norm"),
            put("wq_b", low, queries, ("", "heads"), "q_b_proj"),
        ]
        if qkv_bias:
            weights.append(vector("bq_a", low, "bias"))
    else:
        weights.append(put("wq", width, queries, ("embed", "heads"), "q_proj"))
    weights += [
        put("wkv_a", width, latent, ("embed", ""), "kv_a_proj_with_mqa"),
        vector("kv_a_norm", rank, "norm"),
        put("wkv_b", rank, expanded, ("", "heads"), "kv_b_proj"),
        put("wo", out, width, ("heads", "embed"), "o_proj"),
    ]
    if gated:
        weights.append(put("wg", width, out, ("embed", "heads"), "g_proj"))
    if qkv_bias:
        weights.append(vector("bkv_a", latent, "bias"))
    if out_bias:
        weights.append(vector("bo", width, "bias"))
    if index_heads and index_weights:
        weights += _indexer(width, ("q_lora_rank", q_lora_rank), index_heads, index_head_dim, f"{module}.indexer")
    reads = float(index_tokens) if index_heads else math.inf
    kept = [
        Cache(
            name="latent",
            elements_per_token=kv_lora_rank + qk_rope_head_dim,
            read_tokens=reads,
            head_dim=kv_lora_rank + qk_rope_head_dim,
            decode_flops_per_token=2.0 * n_heads * (2 * kv_lora_rank + qk_rope_head_dim),
            prefill_flops_per_token=2.0 * n_heads * (head + value_dim),
            query_elements=n_heads * (kv_lora_rank + qk_rope_head_dim),
        )
    ]
    if index_heads and index_weights:
        flops = 2.0 * index_heads * index_head_dim
        kept.append(
            Cache(
                name="index keys",
                other_bytes_per_token=index_head_dim + INDEX_SCALE_BYTES,
                decode_flops_per_token=flops,
                prefill_flops_per_token=flops,
            )
        )
    return Mixer(
        kind="sparse" if index_heads else "latent",
        n_heads=n_heads,
        n_kv_heads=1,
        head_dim=kv_lora_rank + qk_rope_head_dim,
        weights=(*weights, *extras(more, module)),
        caches=tuple(kept),
    )


def _indexer(width: tuple[str, int], low: tuple[str, int], heads: int, head_dim: int, module: str) -> list[Tensor]:
    keys = ("index_head_dim", head_dim)
    queries, scores = ("index_heads*index_head_dim", heads * head_dim), ("index_heads", heads)
    return [
        matrix("index_wq", low, queries, ("", ""), "indexer", module=f"{module}.wq_b"),
        matrix("index_wk", width, keys, ("embed", ""), "indexer", module=f"{module}.wk"),
        matrix("index_scores", width, scores, ("embed", ""), "indexer", module=f"{module}.weights_proj"),
        vector("index_k_norm", keys, "norm"),
        vector("index_k_norm_bias", keys, "bias"),
    ]
