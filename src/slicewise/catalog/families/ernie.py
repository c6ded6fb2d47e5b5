"""ERNIE 4.5: dense, and with experts in a run of layers."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, routed, shape
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.model_record import ModelRecord

_HEAD_DIM = 128


def ernie4_5(config: Config) -> ModelRecord:
    """ERNIE 4.5 0.3B, dense: one key says of all matrices whether they have biases."""
    config.text("hidden_act", "silu", ("silu",))
    words, bias = heads(config, must_have_kv_heads=True, head_dim=_HEAD_DIM), config.flag("use_bias")
    return assembled(
        shape(config, tied=True),
        {FULL: {"kind": "attention", **words, "qkv_bias": bias, "out_bias": bias}},
        {"dense": {"kind": "dense", "d_ff": config.size("intermediate_size"), "bias": bias}},
        [(FULL, "dense")] * config.layers(),
        rotated=words["head_dim"],
    )


def ernie4_5_moe(config: Config) -> ModelRecord:
    """ERNIE 4.5 of experts: they are in every so many layers, from one to another; their router's correction counts."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("use_bias", "biases are not supported for this family")
    config.refuse("sliding_window", "windows are not supported for this family")
    config.ignore("moe_capacity", "moe_gate", "moe_norm_min", "moe_use_aux_free", "weight_share_add_bias")
    found, words = shape(config, tied=True), heads(config, must_have_kv_heads=True)
    feeds = _feeds(config)
    experts = routed(config, d_ff="moe_intermediate_size", count=("moe_num_experts",), active="moe_k")
    shared = config.size("moe_num_shared_experts", least=0) * experts["d_ff"]
    correction = [["e_score_correction_bias", experts["n_experts"], "other"]]
    d_ff = config.size("intermediate_size", default=None if "dense" in feeds else 1)
    record = assembled(
        found,
        {FULL: {"kind": "attention", **words}},
        {
            "dense": {"kind": "dense", "d_ff": d_ff},
            "experts": {**experts, "shared_d_ff": shared, "more": correction},
        },
        [(FULL, feed) for feed in feeds],
        rotated=words["head_dim"],
    )
    return drafted(config, record, layer_size(record, FULL, feeds[-1]), "num_nextn_predict_layers", about=True)


def _feeds(config: Config) -> list[str]:
    """The feed-forward of each layer."""
    n_layers, step = config.layers(), config.size("moe_layer_interval", default=1)
    first = config.size("moe_layer_start_index", least=0)
    last = config.size("moe_layer_end_index", default=-1, least=-1)
    last = n_layers - 1 if last == -1 else last
    return ["experts" if (at + 1) % step == 0 and first <= at <= last else "dense" for at in range(n_layers)]
