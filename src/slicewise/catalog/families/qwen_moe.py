"""Qwen 3 with experts: the attention of Qwen 3, and experts in every layer or every few."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, layer_numbers, routed, shape
from slicewise.catalog.families.llama import qwen3_attention
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import UnsupportedModelError

COUNTS = ("num_experts", "num_local_experts")
"""What the number of experts is called: by its makers, and in configs that transformers has saved again."""


def qwen3_moe(config: Config) -> ModelRecord:
    """Qwen 3 MoE: layers of `mlp_only_layers`, and those between every `decoder_sparse_step`-th, are dense."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("use_sliding_window", "windows of a Qwen 3 MoE model are not supported")
    config.refuse("shared_expert_intermediate_size", "a Qwen 3 MoE model has no shared expert")
    for unused in ("sliding_window", "max_window_layers"):
        config.size(unused, default=0, least=0)
    if not config.flag("use_qk_norm", default=True):
        raise UnsupportedModelError(f"{config.origin}: use_qk_norm: a Qwen 3 MoE model has norms of queries and keys")
    config.size("head_dim")
    n_layers, step = config.layers(), config.size("decoder_sparse_step", default=1)
    dense = layer_numbers(config, "mlp_only_layers", n_layers)
    feeds = ["experts" if (at + 1) % step == 0 and at not in dense else "dense" for at in range(n_layers)]
    words = heads(config, must_have_kv_heads=True)
    d_ff = config.size("intermediate_size", default=None if "dense" in feeds else 1)
    return assembled(
        shape(config),
        {FULL: {"kind": "attention", **words, **qwen3_attention(config)}},
        {
            "dense": {"kind": "dense", "d_ff": d_ff},
            "experts": routed(config, d_ff="moe_intermediate_size", count=COUNTS),
        },
        [(FULL, feed) for feed in feeds],
        rotated=words["head_dim"],
    )
