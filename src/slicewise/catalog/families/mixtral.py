"""Mixtral: every layer a mixture of experts, otherwise Mistral."""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, assembled, heads, routed, shape, window
from slicewise.catalog.model_record import ModelRecord

MODULE = "block_sparse_moe"
PLACES = {"gate": "w1", "up": "w3", "down": "w2"}
"""What its checkpoints call the matrices of an expert."""


def mixtral(config: Config) -> ModelRecord:
    """Mixtral: full attention where `sliding_window` is missing, unlike Mistral."""
    config.text("hidden_act", "silu", ("silu",))
    words = heads(config, must_have_kv_heads=True)
    experts = routed(config, d_ff="intermediate_size", count=("num_local_experts", "num_experts"))
    return assembled(
        shape(config),
        {FULL: {"kind": "attention", **words, **window(config)}},
        {"experts": {**experts, "module": MODULE, "places": PLACES}},
        [(FULL, "experts")] * config.layers(),
        rotated=words["head_dim"],
    )
