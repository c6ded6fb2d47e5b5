"""Hunyuan: dense, and A13B of experts, both with norms of queries and keys."""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, shape
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError, UnsupportedModelError


def hunyuan_v1_dense(config: Config) -> ModelRecord:
    """Hunyuan 0.5B to 7B."""
    feed = {"kind": "dense", "d_ff": config.size("intermediate_size")}
    config.refuse("num_experts", "a dense Hunyuan model has no experts", but=1)
    config.ignore("moe_intermediate_size", "moe_layer_num_skipped", "moe_topk", "num_shared_expert")
    config.ignore("use_mixed_mlp_moe")
    return _model(config, "dense", feed)


def hunyuan_v1_moe(config: Config) -> ModelRecord:
    """Hunyuan A13B: a shared expert as wide as the routed ones."""
    d_ff, n_experts, n_active = config.size("intermediate_size"), config.size("num_experts"), _same(config, "moe_topk")
    if _same(config, "moe_intermediate_size", d_ff) != d_ff or _same(config, "num_shared_expert", 1) != 1:
        raise UnsupportedModelError(
            f"{config.origin}: moe_intermediate_size must be intermediate_size, and num_shared_expert 1, in every layer"
        )
    if n_active > n_experts:
        raise InputError(f"{config.origin}: moe_topk is {n_active}, of {n_experts} experts; check the file")
    config.refuse("moe_layer_num_skipped", "dense layers before those of experts are not supported")
    if not config.flag("use_mixed_mlp_moe", default=True):
        raise UnsupportedModelError(f"{config.origin}: use_mixed_mlp_moe must be true; there is a shared expert")
    experts = {"kind": "experts", "d_ff": d_ff, "n_experts": n_experts, "n_active": n_active, "shared_d_ff": d_ff}
    return _model(config, "experts", {**experts, "router_module": "gate.wg", "shared_module": "shared_mlp"})


def _model(config: Config, name: str, feed: dict[str, Any]) -> ModelRecord:
    config.text("hidden_act", "silu", ("silu",))
    for key in ("use_qk_norm", "use_rotary_pos_emb"):
        if not config.flag(key, default=True):
            raise UnsupportedModelError(f"{config.origin}: {key} must be true for this family")
    for key in ("use_cla", "mlp_bias", "use_mla", "add_classification_head", "anyres_vit_max_image_size"):
        config.refuse(key, "is not supported for this family")
    _unused(config)
    found, bias = shape(config), config.flag("attention_bias")
    stated = config.size("head_dim", "attention_head_dim", default=0)
    words = heads(config, must_have_kv_heads=True, head_dim=stated or None)
    width = words["head_dim"]
    norms = [["query_layernorm", width, "norm"], ["key_layernorm", width, "norm"]]
    return assembled(
        found,
        {FULL: {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias, "more": norms}},
        {name: feed},
        [(FULL, name)] * config.layers(),
        rotated=width,
    )


def _unused(config: Config) -> None:
    """Keys of parts that these models leave switched off, and of training."""
    config.ignore(
        "cla_share_factor", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
        "class_num", "group_limited_greedy", "mask_init_id", "max_image_size", "moe_drop_tokens",
        "moe_random_routing_dropped_token", "n_group", "topk_group", "norm_type", "num_media_embeds",
        "org_vocab_size", "pool_type", "position_embedding_xdrope", "routed_scaling_factor", "text_end_id",
        "text_start_id", "use_rotary_pos_emb", "vit_mapping_type", "vit_norm_type", "vit_patch", "vit_path",
        "vit_type", "vit_used_rms_norm", "vit_add_patchemb_bias", "vit_input_resolution", "vit_token",
        "vit_remove_prenorm", "dense_list", "im_end_id", "im_newline_id", "im_start_id", "image_token_id",
        "skip_cls_token", "xdrope_section", "video_end_id", "video_start_id", "attention_head_dim", "ep_size",
    )  # fmt: skip


def _same(config: Config, name: str, default: int | None = None) -> int:
    """A size that may be a list of one entry a layer, all alike.

    Raises:
        UnsupportedModelError: layers differ.
    """
    if not isinstance(config.keys.get(name), list):
        return config.size(name, default=default)
    sizes = {config.whole(value, name) for value in config.listed(name, config.layers()) or ()}
    if len(sizes) != 1:
        raise UnsupportedModelError(f"{config.origin}: {name}: layers that differ are not supported")
    return sizes.pop()
