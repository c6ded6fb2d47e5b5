"""DeepSeek V4: a window and compressed entries in place of a latent, residual streams that mix, experts throughout."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import assembled, shape
from slicewise.catalog.families.deepseek import mixture
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError, UnsupportedModelError

WINDOW, CHOSEN, ALL = "window", "chosen", "all"
"""Layers that keep a window alone; those that read the entries an indexer chose; and those that read every entry."""
RATIOS = {0: WINDOW, 4: CHOSEN, 128: ALL}
LAYER_TYPES = {
    "sliding_attention": WINDOW,
    "compressed_sparse_attention": CHOSEN,
    "heavily_compressed_attention": ALL,
}
PLACES = {"gate": "w1", "up": "w3", "down": "w2"}
"""What its checkpoints call the matrices of an expert."""


def deepseek_v4(config: Config) -> ModelRecord:
    """DeepSeek V4 Flash and Pro. The hash that routes the first layers is a table of experts: a buffer, not counted."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("attention_bias", "biases of the attention are not supported for this family")
    config.refuse("mlp_bias", "biases of the MLPs are not supported for this family")
    config.refuse("kv_lora_rank", "a DeepSeek V4 model keeps no latent")
    if config.size("num_key_value_heads") != 1:
        raise UnsupportedModelError(f"{config.origin}: num_key_value_heads must be 1; all heads share keys and values")
    config.ignore(
        "expert_dtype", "qk_nope_head_dim", "v_head_dim", "num_hash_layers", "hc_sinkhorn_iters", "compress_rope_theta",
        "compress_rope_parameters", "first_k_dense_replace", "rope_interleave", "partial_rotary_factor",
    )  # fmt: skip
    n_layers = config.layers()
    config.kinds("mlp_layer_types", n_layers, ("hash_moe", "moe"))
    kinds, rates = _kinds(config, n_layers)
    found, mixers = shape(config), _mixers(config, rates)
    record = assembled(
        found,
        mixers,
        {"experts": {**mixture(config), "module": "ffn", "places": PLACES}},
        [(kind, "experts") for kind in kinds],
        rotated=config.size("qk_rope_head_dim"),
        **_streams(config, found["d_model"]),
    )
    drafting = layer_size(record, WINDOW, "experts", mixers)
    return drafted(config, record, drafting, "num_nextn_predict_layers", about=True)


def _kinds(config: Config, n_layers: int) -> tuple[list[str], dict[str, int]]:
    """The mixer of each layer, and how many tokens an entry stands for in each kind.

    `compress_ratios` has entries for the drafting layers, too.
    """
    rates = {CHOSEN: 4, ALL: 128}
    stated = config.part("compress_rates")
    if stated:
        rates |= {LAYER_TYPES[word]: stated.size(word) for word in stated.keys if word in LAYER_TYPES}
    words = config.kinds("layer_types", n_layers, tuple(LAYER_TYPES))
    ratios = config.listed("compress_ratios")
    if words is not None:
        return [LAYER_TYPES[word] for word in words], rates
    if ratios is None:
        raise InputError(f"{config.origin}: compress_ratios is missing; a {config.family} config.json must give it")
    n_drafting = config.size("num_nextn_predict_layers", default=0, least=0)
    if len(ratios) not in (n_layers, n_layers + n_drafting):
        raise InputError(
            f"{config.origin}: compress_ratios has {len(ratios)} entries for {n_layers} layers and {n_drafting} more"
            " that draft; check the file"
        )
    for ratio in ratios:
        if config.whole(ratio, "compress_ratios", least=0) not in RATIOS:
            raise UnsupportedModelError(
                f"{config.origin}: compress_ratios holds {ratio}; supported: {', '.join(map(str, RATIOS))}"
            )
    return [RATIOS[ratio] for ratio in ratios[:n_layers]], {CHOSEN: 4, ALL: 128}


def _mixers(config: Config, rates: dict[str, int]) -> dict[str, dict[str, Any]]:
    n_heads, head_dim, groups = config.size("num_attention_heads"), config.size("head_dim"), config.size("o_groups")
    if n_heads % groups:
        raise InputError(f"{config.origin}: {n_heads} query heads do not divide into o_groups of {groups}")
    every = {
        "kind": "compressed_attention",
        "n_heads": n_heads,
        "head_dim": head_dim,
        "q_lora_rank": config.size("q_lora_rank"),
        "out_groups": groups,
        "out_lora_rank": config.size("o_lora_rank"),
        "window": config.size("sliding_window"),
    }
    index = {
        "index_heads": config.size("index_n_heads"),
        "index_head_dim": config.size("index_head_dim"),
        "index_entries": config.size("index_topk"),
    }
    compressed = {kind: {**every, "ratio": rate} for kind, rate in rates.items()}
    return {
        WINDOW: every,
        **{kind: {**words, **(index if kind == CHOSEN else {})} for kind, words in compressed.items()},
    }


def _streams(config: Config, d_model: int) -> dict[str, Any]:
    """Hyper-connections: `hc_mult` residual streams, weighted before and mixed after the attention and the experts."""
    n = config.size("hc_mult")
    sizes: dict[str, int | list[int]] = {"fn": [(2 + n) * n, n * d_model], "base": (2 + n) * n, "scale": 3}
    head = [["hc_head_fn", [n, n * d_model], "other"], ["hc_head_base", n, "other"], ["hc_head_scale", 1, "other"]]
    parts = [[f"hc_{part}_{name}", size, "other"] for part in ("attn", "ffn") for name, size in sizes.items()]
    return {"layer_more": parts, "more": head}
