"""A small config of every family that is read, made by answering its refusals: each names the key that is missing."""

from __future__ import annotations

import copy
import re
from typing import Any

from slicewise.catalog.families import FAMILIES
from slicewise.catalog.hf import model_from_config
from slicewise.errors import InputError

Keys = dict[str, Any]

N_LAYERS = 6
MOST_KEYS = 80
_MISSING = re.compile(r"config\.json: ((?:\w+: )*)(\w+) is missing")
_VALUES: dict[str, Any] = {
    "hidden_size": 256,
    "n_embd": 256,
    "d_model": 256,
    "vocab_size": 1024,
    "num_attention_heads": 8,
    "n_head": 8,
    "n_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 512,
    "hybrid_override_pattern": "M-M*-M",
    "layers_block_type": ["attention"] * N_LAYERS,
    "merge_kernel_size": [2, 2],
    "compress_ratios": [0, 4, 128] * 2,
    "hybrid_layer_pattern": [0, 1, 1] * 2,
    "sparse_attention_freq": [0, 1, 1] * 2,
    "sparse_disable_index_value": [0, 1, 1] * 2,
    "moe_layer_freq": [0, 1, 1] * 2,
    "block_configs": [{"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.0}}] * N_LAYERS,
    "num_kv_shared_layers": 1,
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "expand": 2,
    "num_heads": 16,
    "kv_n_heads": 2,
    "multi_query_group_num": 2,
    "o_groups": 2,
    "n_groups": 2,
}
"""What a key is given, where its name does not say it."""
_BY_WORD: dict[str, Any] = {
    r"^linear_attn_config$": {"kda_layers": [1, 2, 4, 5], "full_attn_layers": [3, 6]},
    r"_config$": {},
    r"types$": ["full_attention"] * N_LAYERS,
    r"^(?:use|tie)_|(?:bias|_norm|_gate)$": False,
    r"(?:_act|_activation)$": "silu",
    r"(?:ratio|factor|ffn_mult)$": 2.0,
    r"per_tok|top_?k|^moe_k$": 2,
    r"experts": 8,
    r"layer": N_LAYERS,
}
"""What a key is given by a part of its name, the first one that is in it."""
_STARTS: dict[str, Keys] = {
    "deepseek_v4": {"num_key_value_heads": 1, "head_dim": 32},
    "deepseek_ref": {"num_key_value_heads": 1, "head_dim": 32},
    "nemotron-nas": {"block_configs": _VALUES["block_configs"]},
    "qwen": {"no_bias": True},
    "mpt": {"no_bias": True, "attn_config": {"alibi": True}},
}
"""What a family must be given, and asks for in other words."""


def made() -> dict[str, Keys]:
    """A config by family, but for families whose refusals do not lead to one."""
    tried = {family: made_of(family) for family in FAMILIES}
    return {family: keys for family, keys in tried.items() if keys is not None}


def made_of(family: str) -> Keys | None:
    """A config of a family; None where its refusals do not lead to one."""
    keys: Keys = {"model_type": family, **copy.deepcopy(_STARTS.get(family, {}))}
    for _ in range(MOST_KEYS):
        try:
            model_from_config(keys, family, "config.json")
        except InputError as refusal:
            missing = _MISSING.match(str(refusal))
            if missing is None:
                return None
            around = keys
            for part in missing[1].split(": ")[:-1]:
                around = around.setdefault(part, {})
            if missing[2] in around:
                return None
            around[missing[2]] = _value(missing[2])
        else:
            return keys
    return None


def _value(name: str) -> Any:
    """What a key of this name may well hold."""
    if name in _VALUES:
        return copy.deepcopy(_VALUES[name])
    by_word = next((value for pattern, value in _BY_WORD.items() if re.search(pattern, name)), 32)
    return copy.deepcopy(by_word)
