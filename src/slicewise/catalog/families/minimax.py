"""MiniMax M2 and M3: norms of queries and keys, experts in most layers; M3 reads the blocks that an indexer chose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, nested, routed, shape, switches
from slicewise.catalog.families.mixtral import MODULE, PLACES
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError, UnsupportedModelError

SPARSE = "sparse"
_LAYER_TYPES = {"full_attention": FULL, "minimax_m3_sparse": SPARSE}
_FEEDS = {"dense": "dense", "sparse": "experts"}


def minimax_m2(config: Config) -> ModelRecord:
    """MiniMax M2: every layer attends to all tokens and has experts; norms are over all heads together."""
    config.text("hidden_act", "silu", ("silu",))
    config.text("scoring_func", "sigmoid", ("sigmoid",))
    config.ignore("use_routing_bias")
    n_layers = config.layers()
    if set(switches(config, "attn_type_list", n_layers) or [True]) != {True}:
        raise UnsupportedModelError(f"{config.origin}: attn_type_list: lightning attention (0) is not supported")
    words = {**heads(config, must_have_kv_heads=True), "head_dim": config.size("head_dim")}
    norms = _norms(config, "per_layer", words["n_heads"] * words["head_dim"], words["n_kv_heads"] * words["head_dim"])
    experts = routed(config, d_ff="intermediate_size", count=("num_local_experts", "num_experts"))
    shared = config.size("shared_intermediate_size", default=0, least=0)
    record = assembled(
        shape(config),
        {FULL: {"kind": "attention", **words, "more": norms}},
        {"experts": {**experts, "shared_d_ff": shared, "module": MODULE, "places": PLACES}},
        [(FULL, "experts")] * n_layers,
        rotated=config.size("rotary_dim", default=words["head_dim"]),
    )
    return replace(record, left_out=_drafting(config, "mtp_transformer_layers"))


def minimax_m3(config: Config) -> ModelRecord:
    """MiniMax M3: the first layers attend to all tokens and are dense."""
    config.text("hidden_act", "swigluoai", ("swigluoai", "silu"))
    config.refuse("attention_output_gate", "a gate of the attention's output is not supported for this family")
    config.ignore("swiglu_alpha", "swiglu_limit", "use_gemma_norm", "partial_rotary_factor")
    n_layers, words = config.layers(), {**heads(config, must_have_kv_heads=True), "head_dim": config.size("head_dim")}
    attention = {**words, "more": _norms(config, "per_head", words["head_dim"], words["head_dim"])}
    mixing, index = _chosen(config, n_layers)
    feeds = _feeds(config, n_layers)
    d_ff = config.size("dense_intermediate_size", default=None if "dense" in feeds else 1)
    record = assembled(
        shape(config),
        {FULL: {"kind": "attention", **attention}, SPARSE: {"kind": "block_sparse_attention", **attention, **index}},
        {"dense": {"kind": "dense", "d_ff": d_ff}, "experts": _experts(config)},
        list(zip(mixing, feeds, strict=True)),
        rotated=config.size("rotary_dim"),
    )
    return replace(record, left_out=_drafting(config, "num_nextn_predict_layers"))


def minimax_m3_vl(config: Config) -> ModelRecord:
    """MiniMax M3 as published: its vision tower is not counted."""
    text = nested(config)
    text.ignore("quantization_config")
    record = minimax_m3(text)
    text.done()
    config.ignore("vision_config", "projector_hidden_size", "projector_hidden_act")
    return replace(record, left_out=[*record.left_out, "vision_config: the vision tower is not counted."])


def _feeds(config: Config, n_layers: int) -> list[str]:
    """The feed-forward of each layer: by its name, or by a list of 0 and 1."""
    config.ignore("first_k_dense_replace")
    listed = config.kinds("mlp_layer_types", n_layers, tuple(_FEEDS))
    routed_to = switches(config, "moe_layer_freq", n_layers)
    if listed is not None:
        return [_FEEDS[word] for word in listed]
    if routed_to is None:
        raise InputError(f"{config.origin}: moe_layer_freq is missing; a {config.family} config.json must give it")
    return ["experts" if on else "dense" for on in routed_to]


def _experts(config: Config) -> dict[str, Any]:
    """Experts of `intermediate_size`, which `moe_intermediate_size` says again."""
    words = routed(config, d_ff="intermediate_size", count=("num_local_experts", "num_experts"))
    if config.size("moe_intermediate_size", default=words["d_ff"]) != words["d_ff"]:
        raise InputError(
            f"{config.origin}: moe_intermediate_size is not intermediate_size, {words['d_ff']}; check them"
        )
    config.text("scoring_func", "sigmoid", ("sigmoid",))
    config.ignore("use_routing_bias", "routed_scaling_factor")
    shared = config.size("shared_intermediate_size") * config.size("n_shared_experts", default=1, least=0)
    return {**words, "shared_d_ff": shared, "module": MODULE, "places": PLACES}


def _norms(config: Config, kind: str, queries: int, keys: int) -> list[list[Any]]:
    if not config.flag("use_qk_norm", default=True):
        return []
    config.text("qk_norm_type", kind, (kind,))
    return [["q_norm", queries, "norm"], ["k_norm", keys, "norm"]]


def _chosen(config: Config, n_layers: int) -> tuple[list[str], dict[str, int]]:
    """The mixer of each layer, and the arguments of the indexer: flat, or in a part of its own.

    The blocks around the query are among those that count as chosen.
    """
    part = config.part("sparse_attention_config")
    if part is None:
        listed = config.kinds("layer_types", n_layers, tuple(_LAYER_TYPES))
        if listed is None:
            raise InputError(
                f"{config.origin}: sparse_attention_config is missing; a {config.family} config must give it"
            )
        config.ignore("index_local_blocks")
        tokens = config.size("index_topk_blocks") * config.size("index_block_size")
        sizes = {"index_heads": config.size("index_n_heads"), "index_head_dim": config.size("index_head_dim")}
        return [_LAYER_TYPES[word] for word in listed], {**sizes, "index_tokens": tokens}
    chosen = switches(part, "sparse_attention_freq", n_layers)
    if chosen is None:
        raise InputError(f"{part.origin}: sparse_attention_freq is missing; it says which layers choose")
    valueless = switches(part, "sparse_disable_index_value", n_layers) or chosen
    if any(on and not without for on, without in zip(chosen, valueless, strict=True)):
        raise UnsupportedModelError(
            f"{part.origin}: sparse_disable_index_value: indexers with values are not supported"
        )
    part.ignore("sparse_init_block", "sparse_local_block", "sparse_score_type")
    sizes = {"index_heads": part.size("sparse_num_index_heads"), "index_head_dim": part.size("sparse_index_dim")}
    tokens = part.size("sparse_topk_blocks") * part.size("sparse_block_size")
    on = part.flag("use_sparse_attention", default=True)
    part.done()
    return [SPARSE if on and choose else FULL for choose in chosen], {**sizes, "index_tokens": tokens}


def _drafting(config: Config, layers: str) -> list[str]:
    """Drafting modules are not in the published checkpoints, so that their arrays are not known."""
    count, each = config.size("num_mtp_modules", default=0, least=0), config.size(layers, default=1, least=0)
    if not count or not config.flag("use_mtp", default=True):
        return []
    return [f"num_mtp_modules: {count} modules of {each} layer, which only draft tokens, are not counted."]
