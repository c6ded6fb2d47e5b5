"""GLM 4.5 to 4.7: grouped-query attention, and experts after the first layers."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, first_dense, heads, rotary_share, shape
from slicewise.catalog.families.deepseek import mixture
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.model_record import ModelRecord

_ROTATED = 0.5


def glm4_moe(config: Config) -> ModelRecord:
    """GLM 4.5 and its Air: the larger one has norms of queries and keys."""
    config.text("hidden_act", "silu", ("silu",))
    words = {**heads(config, must_have_kv_heads=True), "head_dim": config.size("head_dim")}
    head_dim = words["head_dim"]
    norms = [["q_norm", head_dim, "norm"], ["k_norm", head_dim, "norm"]] if config.flag("use_qk_norm") else []
    feeds = first_dense(config.layers(), config.size("first_k_dense_replace", least=0))
    record = assembled(
        shape(config),
        {FULL: {"kind": "attention", **words, "qkv_bias": config.flag("attention_bias"), "more": norms}},
        {
            "dense": {
                "kind": "dense",
                "d_ff": config.size("intermediate_size", default=None if "dense" in feeds else 1),
            },
            "experts": mixture(config),
        },
        [(FULL, feed) for feed in feeds],
        rotated=int(head_dim * rotary_share(config, _ROTATED)),
    )
    return drafted(config, record, layer_size(record, FULL, feeds[-1]), "num_nextn_predict_layers")
