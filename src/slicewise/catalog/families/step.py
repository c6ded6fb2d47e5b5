"""Step 3.5 and 3.7: layers that slide with heads of their own, a gate a head, experts after the first layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import FULL, SLIDING, assembled, first_dense, nested, shape
from slicewise.catalog.families.drafting import drafted, layer_size
from slicewise.catalog.model_record import ModelRecord
from slicewise.catalog.towers import perception_encoder
from slicewise.errors import InputError

_KINDS = {"full_attention": FULL, "sliding_attention": SLIDING}
_FEEDS = {"dense": "dense", "sparse": "experts"}
_VOCABULARY = 128815
_MULTIPLE = 128
"""transformers takes 128,815 tokens where there is no text_config; files without one give them padded to 128."""


def step3p5(config: Config) -> ModelRecord:
    """Step 3.5 Flash, and the language model of Step 3.7 Flash."""
    config.text("hidden_act", "silu", ("silu",))
    config.refuse("attention_bias", "biases of the attention are not supported for this family")
    config.refuse("mlp_bias", "biases of the MLPs are not supported for this family")
    if not config.flag("use_head_wise_attn_gate", default=True):
        raise InputError(
            f"{config.origin}: use_head_wise_attn_gate must be true; the attention of this family is gated"
        )
    config.ignore(
        "use_moe", "use_moe_router_bias", "moe_router_activation", "moe_router_scaling_factor", "scoring_func",
        "need_fp32_gate", "norm_expert_weight", "att_impl_type", "use_qk_norm", "use_rope_layers", "yarn_only_types",
        "partial_rotary_factors", "swiglu_limits", "swiglu_limits_shared", "max_seq_len", "moe_layer_offset",
        "moe_every_n_layer", "zero_centered",
    )  # fmt: skip
    found, mixers, kinds = shape(config), _mixers(config), _kinds(config)
    d_ff = config.size("intermediate_size")
    record = assembled(
        found,
        mixers,
        {"dense": {"kind": "dense", "d_ff": d_ff}, "experts": _experts(config)},
        kinds,
        rotated=mixers[FULL]["head_dim"],
    )
    if "dense" not in record.feed_forwards:
        return record
    drafting = layer_size(record, SLIDING, "dense", mixers)
    return drafted(config, record, drafting, "num_nextn_predict_layers", about=True)


def step3p7(config: Config) -> ModelRecord:
    """Step 3.7 Flash: Step 3.5 Flash behind a vision tower, in `text_config`, or flat where there is none."""
    text = nested(config) if config.has("text_config") else config
    record = step3p5(text)
    if text is config:
        record = _unpadded(record)
    else:
        text.done()
    vision = config.part("vision_config")
    if vision is None and text is not config:
        raise InputError(f"{config.origin}: vision_config is missing; a {config.family} config.json must give it")
    vision = vision or Config({}, config.origin, config.family)
    tower = perception_encoder(vision, record.d_model)
    vision.done()
    config.ignore("understand_projector_stride", "projector_bias")
    return replace(record, towers={"vision_model": tower})


def _unpadded(record: ModelRecord) -> ModelRecord:
    """The model as transformers counts it where the file has no text_config: without rows that pad the vocabulary."""
    padding = -_VOCABULARY % _MULTIPLE
    if record.vocab_size != _VOCABULARY + padding:
        return record
    said = (
        f"vocab_size: the last {padding} of {record.vocab_size:,} rows pad the embeddings and are not counted:"
        f" {2 * padding * record.d_model:,} parameters."
    )
    return replace(record, vocab_size=_VOCABULARY, left_out=[*record.left_out, said])


def _mixers(config: Config) -> dict[str, dict[str, Any]]:
    """Layers that slide have the heads of `attention_other_setting`, or those of the others."""
    d_model, window = config.size("hidden_size"), config.size("sliding_window")
    other = config.part("attention_other_setting") or Config({}, config.origin, config.family)
    full = _heads(config, {})
    sliding = _heads(other, full)
    sliding["n_heads"] = config.size("num_sliding_attention_heads", default=sliding["n_heads"])
    other.ignore("attention_type", "true_head_dim")
    other.done()
    found = {}
    for name, words, more in ((FULL, full, {}), (SLIDING, sliding, {"window": window})):
        extra = [["q_norm", words["head_dim"], "norm"], ["k_norm", words["head_dim"], "norm"]]
        gate = ["g_proj", [d_model, words["n_heads"]], "attention", ["embed", "heads"]]
        found[name] = {"kind": "attention", **words, **more, "more": [*extra, gate]}
    return found


def _heads(config: Config, default: dict[str, int]) -> dict[str, int]:
    return {
        "n_heads": config.size("num_attention_heads", default=default.get("n_heads")),
        "n_kv_heads": config.size("num_key_value_heads", "num_attention_groups", default=default.get("n_kv_heads")),
        "head_dim": config.size("head_dim", default=default.get("head_dim")),
    }


def _kinds(config: Config) -> list[tuple[str, str]]:
    """Mixer and feed-forward of each layer; lists go on with those of the layers that draft tokens."""
    n_layers, n_drafting = config.layers(), config.size("num_nextn_predict_layers", default=0, least=0)
    words = config.listed("layer_types")
    if words is None:
        raise InputError(f"{config.origin}: layer_types is missing; a {config.family} config.json must give it")
    length = n_layers + n_drafting if len(words) == n_layers + n_drafting else n_layers
    mixing = [_KINDS[word] for word in config.kinds("layer_types", length, tuple(_KINDS)) or ()]
    return list(zip(mixing[:n_layers], _feeds(config, n_layers, n_drafting), strict=True))


def _feeds(config: Config, n_layers: int, n_drafting: int) -> list[str]:
    """The feed-forward of each layer: by its name, by the numbers of those with experts, or by how many are dense."""
    words = config.listed("mlp_layer_types")
    config.ignore("first_k_dense_replace", "moe_layers_enum")
    if words is not None:
        length = n_layers + n_drafting if len(words) == n_layers + n_drafting else n_layers
        return [_FEEDS[word] for word in config.kinds("mlp_layer_types", length, tuple(_FEEDS)) or ()][:n_layers]
    if not config.has("moe_layers_enum"):
        return first_dense(n_layers, config.size("first_k_dense_replace", least=0))
    named = config.keys["moe_layers_enum"]
    numbers = named.split(",") if isinstance(named, str) else named
    if not isinstance(numbers, list | tuple) or not all(str(number).strip().isdecimal() for number in numbers):
        raise InputError(f"{config.origin}: moe_layers_enum must be numbers of layers, with commas between")
    routed = {int(number) for number in numbers}
    return ["experts" if index in routed else "dense" for index in range(n_layers)]


def _experts(config: Config) -> dict[str, Any]:
    if config.size("n_shared_experts", default=1) != 1:
        raise InputError(f"{config.origin}: n_shared_experts must be 1; share_expert_dim is its width")
    n_experts = config.size("moe_num_experts", "num_experts", "n_routed_experts", "num_local_experts")
    return {
        "kind": "experts",
        "d_ff": config.size("moe_intermediate_size"),
        "n_experts": n_experts,
        "n_active": config.size("moe_top_k", "num_experts_per_tok"),
        "shared_d_ff": config.size("share_expert_dim", "share_expert_dims"),
        "module": "",
        "router_module": "moe.gate",
        "expert_module": "moe.{expert}",
        "shared_module": "share_expert",
    }
