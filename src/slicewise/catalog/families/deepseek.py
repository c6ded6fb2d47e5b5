"""DeepSeek V2, V3 and V3.2, Kimi K2 and GLM 5: latent attention, and experts after the first layers."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import assembled, first_dense, routed, shape
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError

LATENT, SPARSE, SHARED = "latent", "sparse", "sparse_shared"
SCORING = ("softmax", "sigmoid", "sqrtsoftplus")
"""How routers score: none of them changes an array. What corrects the scores is a buffer, and not counted."""
_FEEDS = {"dense": "dense", "sparse": "experts"}


def deepseek_v2(config: Config) -> ModelRecord:
    """DeepSeek V2: queries of the Lite model are projected at once."""
    return _latent_model(config, [LATENT] * config.layers())


def deepseek_v3(config: Config) -> ModelRecord:
    """DeepSeek V3 and R1, and Kimi K2."""
    return _latent_model(config, [LATENT] * config.layers())


def deepseek_v32(config: Config) -> ModelRecord:
    """DeepSeek V3.2: an indexer in each layer chooses the tokens that its queries read."""
    return _latent_model(config, [SPARSE] * config.layers())


def glm_moe_dsa(config: Config) -> ModelRecord:
    """GLM 5: layers own an indexer, or use the choice of the last one that does (GLM 5.2)."""
    n_layers = config.layers()
    config.kinds("layer_types", n_layers, ("indexed_attention",))
    config.ignore("indexer_rope_interleave", "index_share_for_mtp_iteration")
    return _latent_model(config, _indexers(config, n_layers))


def _indexers(config: Config, n_layers: int) -> list[str]:
    """The mixer of each layer: `indexer_types` says it, a pattern of F and S, or a schedule of every so many layers."""
    words = {"full": SPARSE, "shared": SHARED}
    listed = config.kinds("indexer_types", n_layers, tuple(words))
    pattern = config.text("index_topk_pattern", "", ()) if config.has("index_topk_pattern") else ""
    step, first = config.size("index_topk_freq", default=1), config.size("index_skip_topk_offset", default=2, least=0)
    if listed is not None:
        return [words[word] for word in listed]
    if pattern:
        if len(pattern) != n_layers or set(pattern) - {"F", "S"}:
            raise InputError(
                f"{config.origin}: index_topk_pattern must be a letter F or S for each of {n_layers} layers"
            )
        return [SPARSE if letter == "F" else SHARED for letter in pattern]
    return [SPARSE if max(index - first + 1, 0) % step == 0 else SHARED for index in range(n_layers)]


def _latent_model(config: Config, mixing: list[str]) -> ModelRecord:
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("mlp_bias", "biases of the MLPs are not supported for this family")
    config.refuse("moe_layer_freq", "dense layers between those of experts are not supported for this family", but=1)
    attention = latent(config)
    mixers = {LATENT: attention}
    if mixing[0] == SHARED:
        raise InputError(f"{config.origin}: the first layer must have an indexer of its own; check indexer_types")
    if mixing[0] == SPARSE:
        index = _indexer(config)
        mixers = {SPARSE: {**attention, **index}, SHARED: {**attention, **index, "index_weights": False}}
    feeds = _feeds(config, len(mixing))
    record = assembled(
        shape(config),
        mixers,
        {
            "dense": {
                "kind": "dense",
                "d_ff": config.size("intermediate_size", default=None if "dense" in feeds else 1),
            },
            "experts": mixture(config),
        },
        list(zip(mixing, feeds, strict=True)),
        rotated=attention["qk_rope_head_dim"],
    )
    return drafted(config, record, layer_size(record, mixing[0], feeds[-1]), "num_nextn_predict_layers")


def latent(config: Config) -> dict[str, Any]:
    """The arguments of latent attention.

    Raises:
        InputError: a size is missing; `q_lora_rank` must be given, as null where queries have no factors.
    """
    bias = config.flag("attention_bias")
    nope, rope = config.size("qk_nope_head_dim"), config.size("qk_rope_head_dim")
    if config.size("qk_head_dim", default=nope + rope) != nope + rope:
        raise InputError(f"{config.origin}: qk_head_dim is not qk_nope_head_dim + qk_rope_head_dim, {nope + rope}")
    # Every head makes its own keys and values of the latent, and head_dim is the rotated part: neither says more.
    config.ignore("head_dim")
    n_heads = config.size("num_attention_heads")
    n_kv_heads = config.size("num_key_value_heads", default=n_heads)
    if n_heads % n_kv_heads:
        raise InputError(f"{config.origin}: {n_heads} query heads do not divide over num_key_value_heads {n_kv_heads}")
    return {
        "kind": "latent_attention",
        "n_heads": n_heads,
        "q_lora_rank": _stated(config, "q_lora_rank"),
        "kv_lora_rank": config.size("kv_lora_rank"),
        "qk_nope_head_dim": nope,
        "qk_rope_head_dim": rope,
        "value_dim": config.size("v_head_dim"),
        "qkv_bias": bias,
        "out_bias": bias,
    }


def mixture(config: Config) -> dict[str, Any]:
    """The arguments of experts as DeepSeek's configs name them: routed ones, and shared ones of the same width."""
    config.text("scoring_func", "sigmoid", SCORING)
    config.ignore(
        "n_group", "topk_group", "topk_method", "ep_size", "moe_router_dtype", "norm_topk_prob", "rope_interleave"
    )
    words = routed(config, d_ff="moe_intermediate_size", count=("n_routed_experts", "num_experts", "num_local_experts"))
    return {**words, "shared_d_ff": words["d_ff"] * _stated(config, "n_shared_experts")}


def _stated(config: Config, name: str) -> int:
    """A size that must be given, where null stands for none."""
    return config.size(name, default=0 if name in config.keys else None, least=0)


def _indexer(config: Config) -> dict[str, int]:
    if not config.size("q_lora_rank", default=0, least=0):
        raise InputError(f"{config.origin}: q_lora_rank is missing; the indexer's queries are made of its factor")
    return {
        "index_heads": config.size("index_n_heads"),
        "index_head_dim": config.size("index_head_dim"),
        "index_tokens": config.size("index_topk"),
    }


def _feeds(config: Config, n_layers: int) -> list[str]:
    listed = config.kinds("mlp_layer_types", n_layers, tuple(_FEEDS))
    n_dense = config.size("first_k_dense_replace", default=None if listed is None else 0, least=0)
    return first_dense(n_layers, n_dense) if listed is None else [_FEEDS[word] for word in listed]
