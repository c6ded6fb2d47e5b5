"""Llama Nemotron models made by a search over blocks: each layer has an attention and an MLP of its own, or none.

Source: `block_configs` of the models' config.json, read by their own `modeling_decilm.py`.
"""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.catalog.families.common import assembled, heads, shape
from slicewise.catalog.model_record import ModelRecord
from slicewise.errors import InputError

_MULTIPLE = 256
_SPARSE = ("num_sink_tokens", "sparsify", "unshifted_sink", "use_prefill_window_in_sink_attention")
"""Keys of a block that ask for what no published model of the family has."""


def nemotron_nas(config: Config) -> ModelRecord:
    """Llama 3.1 and 3.3 Nemotron: 51B, Super 49B, Ultra 253B."""
    config.text("hidden_act", "silu", ("silu",))
    found, n_layers, words = shape(config), config.layers(), heads(config)
    bias, mlp_bias = config.flag("attention_bias"), config.flag("mlp_bias")
    config.ignore("intermediate_size")
    mixers: dict[str, dict[str, Any]] = {}
    feeds: dict[str, dict[str, Any]] = {}
    kinds = []
    for block in _blocks(config, n_layers):
        mixer, own = _attention(block, {**words, "qkv_bias": bias, "out_bias": bias})
        feed, sizes = _mlp(block, found["d_model"], bias=mlp_bias)
        mixers[mixer] = {**own, "more": [["input_layernorm", found["d_model"], "norm"]]}
        feeds[feed] = {**sizes, "more": [["post_attention_layernorm", found["d_model"], "norm"]]}
        kinds.append((mixer, feed))
        block.done()
    mixers.pop("", None)
    feeds.pop("", None)
    return assembled(found, mixers, feeds, kinds, rotated=words["head_dim"], norms=[])


def _blocks(config: Config, n_layers: int) -> list[Config]:
    listed = config.listed("block_configs", n_layers)
    if listed is None or not all(isinstance(block, dict) for block in listed):
        raise InputError(f"{config.origin}: block_configs must be a list of objects, one a layer")
    return [
        Config(block, f"{config.origin}: block_configs[{index}]", config.family) for index, block in enumerate(listed)
    ]


def _part(block: Config, name: str) -> Config:
    part = block.part(name)
    if part is None:
        raise InputError(f"{block.origin}: {name} is missing; give it, or no_op in it")
    return part


def _attention(block: Config, words: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a block's attention; "" and none where it has none."""
    part = _part(block, "attention")
    for key in _SPARSE:
        part.refuse(key, "attention sinks and sparsity within a block are not supported")
    absent, linear = part.flag("no_op"), part.flag("replace_with_linear")
    window = part.size("window_length", default=0)
    part.ignore("n_heads_in_group")
    name, own = "", dict[str, Any]()
    if linear and not absent:
        name, own = "linear", {"kind": "linear_map", "bias": words["qkv_bias"], "module": "self_attn.linear_attn"}
    elif not absent:
        group = part.size("n_heads_in_group")
        if words["n_heads"] % group:
            raise InputError(
                f"{part.origin}: n_heads_in_group is {group}; {words['n_heads']} heads do not divide by it"
            )
        reach = {"window": window} if window else {}
        name = f"groups-of-{group}{f'-window-{window}' if window else ''}"
        own = {"kind": "attention", **words, "n_kv_heads": words["n_heads"] // group, **reach}
    part.done()
    return name, own


def _mlp(block: Config, d_model: int, *, bias: bool) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a block's MLP; "" and none where it has none."""
    part = _part(block, "ffn")
    part.refuse("sparsify", "sparsity within a block is not supported")
    absent, linear = part.flag("no_op"), part.flag("replace_with_linear")
    part.ignore("ffn_mult", "intermediate_size")
    name, words = "", dict[str, Any]()
    if linear and not absent:
        name, words = "linear", {"kind": "linear_map", "module": "mlp.linear_mlp"}
    elif not absent:
        d_ff = part.size("intermediate_size", default=0) or _width(part.number("ffn_mult"), d_model)
        name, words = f"dense-{d_ff}", {"kind": "dense", "d_ff": d_ff, "bias": bias}
    part.done()
    return name, words


def _width(factor: float, d_model: int) -> int:
    """The width that a factor of 2/3 of 3 widths stands for, rounded up to whole tiles."""
    return -(-int(2 * factor * d_model / 3) // _MULTIPLE) * _MULTIPLE
