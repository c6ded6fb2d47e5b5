"""Configs of small models, and weights from a seed with numpy alone, so that transformers can be given the same."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[np.float32]]

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 40,
    "max_position_embeddings": 512,
    "torch_dtype": "float32",
}
# Of the eight frequencies of a head of 16, one is kept, two are stretched in part, and the rest wholly.
STRETCH = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**SMALL, "model_type": "llama", "rms_norm_eps": 1e-5, "rope_theta": 500000.0},
    "llama-heads-of-their-own": {**SMALL, "model_type": "llama", "num_key_value_heads": 4, "rms_norm_eps": 1e-2},
    "llama-one-kv-head": {**SMALL, "model_type": "llama", "num_key_value_heads": 1, "head_dim": 16},
    "llama-stretched": {
        **SMALL, "model_type": "llama", "head_dim": 16, "rope_theta": 10000.0, "rope_scaling": STRETCH,
    },
    "llama-tied": {
        **SMALL,
        "model_type": "llama",
        "tie_word_embeddings": True,
        "head_dim": 16,
        "rope_parameters": {**STRETCH, "rope_theta": 1000.0},
    },
    "mistral": {**SMALL, "model_type": "mistral", "sliding_window": None, "rope_theta": 1e6},
    "qwen2": {**SMALL, "model_type": "qwen2", "rope_theta": 1e6, "rms_norm_eps": 1e-6},
    "qwen3": {**SMALL, "model_type": "qwen3", "head_dim": 16, "rope_theta": 1e6, "tie_word_embeddings": True},
}  # fmt: skip
"""Configs as Hugging Face has them, by what is particular about each."""

N_TOKENS = 10


def made_weights(config: dict[str, Any], seed: int = 0) -> Weights:
    """The weights of a config, by transformers' names and [outputs, inputs] as it has them.

    Activations come out near one in size, so that no part of a layer is too faint to be seen.
    """
    return {name: _values(name, shape, seed) for name, shape in _shapes(config).items()}


def made_tokens(config: dict[str, Any], rows: int = 1, n_tokens: int = N_TOKENS, seed: int = 0) -> NDArray[np.int32]:
    """Tokens of some sequences, [rows, n_tokens]."""
    raw = np.random.PCG64([seed, rows, n_tokens]).random_raw(rows * n_tokens)
    return (raw % config["vocab_size"]).astype(np.int32).reshape(rows, n_tokens)


def _shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    width, hidden, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head_dim = config.get("head_dim") or width // config["num_attention_heads"]
    queries, keys = (config[f"num_{name}_heads"] * head_dim for name in ("attention", "key_value"))
    layer: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj.weight": (queries, width),
        "self_attn.k_proj.weight": (keys, width),
        "self_attn.v_proj.weight": (keys, width),
        "self_attn.o_proj.weight": (width, queries),
        "mlp.gate_proj.weight": (hidden, width),
        "mlp.up_proj.weight": (hidden, width),
        "mlp.down_proj.weight": (width, hidden),
        "input_layernorm.weight": (width,),
        "post_attention_layernorm.weight": (width,),
    }
    if config["model_type"] == "qwen2":
        layer |= {
            f"self_attn.{name}_proj.bias": (size,) for name, size in zip("qkv", (queries, keys, keys), strict=True)
        }
    if config["model_type"] == "qwen3":
        layer |= {f"self_attn.{name}_norm.weight": (head_dim,) for name in "qk"}
    layers = {
        f"model.layers.{index}.{name}": shape
        for index in range(config["num_hidden_layers"])
        for name, shape in layer.items()
    }
    head = {} if config.get("tie_word_embeddings") else {"lm_head.weight": (vocab, width)}
    return {"model.embed_tokens.weight": (vocab, width), **layers, "model.norm.weight": (width,), **head}


def _values(name: str, shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """Numbers evenly spread; of numpy's generators, raw bits are what is promised to stay the same."""
    raw = np.random.PCG64([seed, *name.encode()]).random_raw(math.prod(shape))
    even = ((raw >> np.uint64(40)) / 2.0**24 - 0.5).astype(np.float32).reshape(shape)
    if "norm" in name:
        return 1 + even
    if name.endswith("bias"):
        return even
    inputs = 1 if "embed_tokens" in name else shape[1]
    return even * np.float32(math.sqrt(12 / inputs))
