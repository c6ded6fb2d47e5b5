"""Reads a Hugging Face config.json of the LLaMA family: Llama, Mistral and Qwen2, dense, grouped-query.

What is not understood is refused by the name of its key, and so is a key that is misspelt. A missing key takes the
default of transformers where that changes no size, and is refused where it would.
"""

from __future__ import annotations

import difflib
import json
import math
from pathlib import Path
from types import MappingProxyType
from typing import Any

from slicewise.errors import InputError, UnsupportedModelError
from slicewise.spec.model import Model
from slicewise.spec.provenance import Provenance

FAMILIES = ("llama", "mistral", "qwen2")
_ARCHITECTURES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "mistral", "Qwen2ForCausalLM": "qwen2"}
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_NEUTRAL: tuple[Any, ...] = (None, False, 0, 1, [], {}, "", 1.0)
_REFUSED = {
    "quantization_config": "a checkpoint with dtypes by role is not read yet; leave the key out and give --weights",
    "num_local_experts": "mixtures of experts are not read yet",
    "num_experts": "mixtures of experts are not read yet",
    "n_routed_experts": "mixtures of experts are not read yet",
    "kv_lora_rank": "latent attention is not read yet",
    "layer_types": "layers of several kinds are not read yet",
    "block_configs": "layers of several kinds are not read yet",
    "text_config": "models with a vision or audio tower are not read yet",
    "vision_config": "models with a vision or audio tower are not read yet",
}
_MISTRAL_WINDOW = 4096
_NEAR = 0.9
_READ = (
    "model_type", "hidden_act", "num_attention_heads", "hidden_size", "head_dim", "attention_bias", "torch_dtype",
    "num_hidden_layers", "intermediate_size", "num_key_value_heads", "vocab_size", "tie_word_embeddings", "mlp_bias",
    "max_position_embeddings", "sliding_window", "use_sliding_window", *_REFUSED,
)  # fmt: skip
"""Keys that are read; one that nearly is one of them is a slip."""
_LARGEST = 10**8


def read_config(path: Path) -> Model:
    """The model that a config.json describes.

    Raises:
        InputError: the file is not a JSON object, or a size is missing or no whole number.
        UnsupportedModelError: it describes what is not understood.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a readable config.json") from error
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply for a config.json; give the file of the model") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}: not valid JSON at line {error.lineno}, column {error.colno} ({error.msg});"
            " mend or download it again"
        ) from error
    except ValueError as error:
        raise InputError(f"{path}: holds a number of too many digits; mend or download it again") from error
    if not isinstance(config, dict):
        raise InputError(f"{path}: holds a {type(config).__name__}, not an object; give a Hugging Face config.json")
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return model_from_config(config, name, str(path))


def model_from_config(config: dict[str, Any], name: str, origin: str) -> Model:
    """The model that the keys of a config describe.

    Args:
        config: the object of a config.json.
        name: what to call the model.
        origin: where the config was read, for messages and derivations.

    Raises:
        InputError: a size is missing or no whole number.
        UnsupportedModelError: it describes what is not understood.
    """
    family = _family(config)
    if family not in FAMILIES:
        raise UnsupportedModelError(
            f"{origin}: model_type {family} is not supported yet; supported: {', '.join(FAMILIES)}"
        )
    _no_misspelt(config, origin)
    for key, why in _REFUSED.items():
        if not _neutral(config.get(key)) and not (key == "layer_types" and _all_full(config[key])):
            raise UnsupportedModelError(f"{origin}: {key}: {why}")
    if config.get("hidden_act", "silu") != "silu":
        raise UnsupportedModelError(
            f"{origin}: hidden_act {config['hidden_act']} is not supported yet; supported: silu"
        )
    n_heads, d_model = _size(config, "num_attention_heads", origin), _size(config, "hidden_size", origin)
    if config.get("head_dim") is None and d_model % n_heads:
        raise InputError(f"{origin}: head_dim is missing and hidden_size {d_model} does not divide by {n_heads} heads")
    attention_bias = bool(config.get("attention_bias", False))
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16").removeprefix("torch.")
    if dtype not in _DTYPES:
        raise UnsupportedModelError(f"{origin}: torch_dtype {dtype} is not supported; supported: {', '.join(_DTYPES)}")
    values: dict[str, Any] = {
        "n_layers": _size(config, "num_hidden_layers", origin),
        "d_model": d_model,
        "d_ff": _size(config, "intermediate_size", origin),
        "n_heads": n_heads,
        "n_kv_heads": _kv_heads(config, family, n_heads, origin),
        "head_dim": _size(config, "head_dim", origin, default=d_model // n_heads),
        "vocab_size": _size(config, "vocab_size", origin),
        "tied_embeddings": bool(config.get("tie_word_embeddings", False)),
        "qkv_bias": family == "qwen2" or attention_bias,
        "out_bias": family == "llama" and attention_bias,
        "mlp_bias": bool(config.get("mlp_bias", False)),
        "attention_window": _window(config, family, origin),
        "max_context_tokens": _size(config, "max_position_embeddings", origin, default=0) or math.inf,
        "checkpoint_dtype": _DTYPES[dtype],
    }
    facts = {key: Provenance(printed=f"{value}, read from {origin}") for key, value in values.items()}
    if config.get("num_key_value_heads") is None:
        printed = f"{n_heads}: {origin} states no num_key_value_heads, so every query head has its own"
        facts["n_kv_heads"] = Provenance(printed=printed)
    return Model(name=name, provenance=MappingProxyType(facts), **values)


def _neutral(value: Any) -> bool:
    """Whether a key's value says that the model has nothing of the kind: true is not the number one."""
    return value is not True and value in _NEUTRAL


def _family(config: dict[str, Any]) -> str:
    """The model_type; where it is missing, the one that the architecture's name stands for."""
    named = config.get("model_type")
    if named is None:
        listed = config.get("architectures")
        first = str(listed[0]) if isinstance(listed, list) and listed else "(missing)"
        named = _ARCHITECTURES.get(first, first)
    return named if isinstance(named, str) else str([named])[:40]


def _no_misspelt(config: dict[str, Any], origin: str) -> None:
    """Refuse a key that is nearly one that is read: the reading would go on without it, and be wrong.

    Raises:
        InputError: a key is misspelt.
    """
    for key in config:
        near = [] if key in _READ else difflib.get_close_matches(key, _READ, n=1, cutoff=_NEAR)
        if near and near[0] not in config:
            raise InputError(f"{origin}: {key} is no key of a config.json; did you mean {near[0]}?")


def _kv_heads(config: dict[str, Any], family: str, n_heads: int, origin: str) -> int:
    """KV heads: null means one a query head; a missing key means that for Llama, and is refused for the others."""
    if "num_key_value_heads" not in config and family != "llama":
        raise InputError(f"{origin}: num_key_value_heads is missing; {family} models state it")
    return _size(config, "num_key_value_heads", origin, default=n_heads)


def _all_full(layer_types: Any) -> bool:
    return isinstance(layer_types, list) and all(kind == "full_attention" for kind in layer_types)


def _size(config: dict[str, Any], key: str, origin: str, default: int | None = None) -> int:
    value = config.get(key)
    if value is None:
        value = default
    if value is None:
        raise InputError(f"{origin}: {key} is missing; a {_family(config)} config.json must give it")
    if isinstance(value, bool) or not isinstance(value, int) or (value < 1 and value != default):
        raise InputError(f"{origin}: {key} is {repr(value)[:40]}; it must be a whole number of at least 1")
    if value > _LARGEST:
        raise InputError(f"{origin}: {key} is above {_LARGEST:,}, more than any model has; check the file")
    return value


def _window(config: dict[str, Any], family: str, origin: str) -> float:
    """Most tokens that every layer attends to; inf for full attention."""
    if family == "qwen2":
        if config.get("use_sliding_window"):
            raise UnsupportedModelError(
                f"{origin}: use_sliding_window: layers of several kinds are not read yet;"
                " set it to false for full attention"
            )
        return math.inf
    if family == "mistral":
        window = config.get("sliding_window", config.get("sliding_window_size", _MISTRAL_WINDOW))
        return math.inf if window is None else _size({**config, "sliding_window": window}, "sliding_window", origin)
    if config.get("sliding_window"):
        raise UnsupportedModelError(f"{origin}: sliding_window is not a key of {family}; remove it for full attention")
    return math.inf
