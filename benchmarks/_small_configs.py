"""Small made-up configs, one of each kind of layer and of quantisation that is read, to be damaged."""

from __future__ import annotations

from typing import Any

Keys = dict[str, Any]

_LLAMA: Keys = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_hidden_layers": 6,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-05,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
_ROUTED: Keys = {"num_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 128}
_LATENT: Keys = {
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 16,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 128,
    "first_k_dense_replace": 1,
    "n_group": 4,
    "topk_group": 2,
    "num_key_value_heads": 8,
}
_SLIDING = ["sliding_attention", "full_attention"] * 3
_INT4: Keys = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"type": "int", "num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": True},
            "input_activations": None,
        }
    },
    "ignore": ["lm_head"],
}
_VISION: Keys = {
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 64,
    "image_size": 56,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "patch_size": 14,
    "vision_use_head": False,
}
_DELTA: Keys = {
    "head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "partial_rotary_factor": 0.25,
    "layer_types": ["linear_attention", "linear_attention", "full_attention"] * 2,
    "shared_expert_intermediate_size": 128,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
_HYBRID: Keys = {
    "hybrid_override_pattern": "M-M*-E",
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "ssm_state_size": 16,
    "n_groups": 2,
    "conv_kernel": 4,
    "chunk_size": 128,
    "head_dim": 32,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "moe_shared_expert_intermediate_size": 64,
    "n_shared_experts": 1,
    "mlp_hidden_act": "relu2",
    "time_step_limit": [0.0, float("inf")],
}
_KIMI: Keys = {
    "linear_attn_config": {
        "kda_layers": [1, 2, 4, 5],
        "full_attn_layers": [3, 6],
        "num_heads": 8,
        "head_dim": 16,
        "short_conv_kernel_size": 4,
    },
    "num_experts_per_token": 2,
    "num_shared_experts": 1,
    "num_experts": 16,
}
_BLOCKS = [
    {"attention": {"n_heads_in_group": 4, "no_op": False}, "ffn": {"ffn_mult": 2.0, "no_op": False}},
    {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.0, "no_op": False}},
    {"attention": {"no_op": False, "replace_with_linear": True}, "ffn": {"no_op": True}},
] * 2


def _but(keys: Keys, *names: str) -> Keys:
    """A config without some keys."""
    return {name: value for name, value in keys.items() if name not in names}


SMALL: dict[str, Keys] = {
    "llama": {**_LLAMA, "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "attention_bias": False},
    "mistral, AWQ": {
        **_LLAMA,
        "model_type": "mistral",
        "sliding_window": 1024,
        "head_dim": 64,
        "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True},
    },
    "qwen2": {
        **_LLAMA, "model_type": "qwen2", "use_sliding_window": True, "sliding_window": 64, "max_window_layers": 4,
    },
    "qwen3, fp8": {
        **_LLAMA,
        "model_type": "qwen3",
        "head_dim": 64,
        "quantization_config": {
            "quant_method": "fp8",
            "activation_scheme": "dynamic",
            "weight_block_size": [128, 128],
            "modules_to_not_convert": ["lm_head"],
        },
    },
    "qwen3_moe, int4": {
        **_LLAMA, **_ROUTED, "model_type": "qwen3_moe", "head_dim": 32, "decoder_sparse_step": 1,
        "mlp_only_layers": [0], "quantization_config": _INT4,
    },
    "mixtral, GPTQ": {
        **_LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2,
        "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True},
    },
    "gemma3": {
        "model_type": "gemma3",
        "text_config": {**_but(_LLAMA, "hidden_act"), "head_dim": 32, "sliding_window": 512, "layer_types": _SLIDING},
        "vision_config": _VISION,
    },
    "gpt_oss, MXFP4": {
        **_LLAMA, "model_type": "gpt_oss", "head_dim": 32, "sliding_window": 128, "layer_types": _SLIDING,
        "num_local_experts": 8, "num_experts_per_tok": 2,
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
    },
    "deepseek_v3, fp8": {
        **_LLAMA, **_LATENT, "model_type": "deepseek_v3", "num_nextn_predict_layers": 1, "moe_layer_freq": 1,
        "quantization_config": {"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]},
    },
    "glm_moe_dsa": {
        **_LLAMA, **_LATENT, "model_type": "glm_moe_dsa", "index_n_heads": 4, "index_head_dim": 16, "index_topk": 64,
        "indexer_types": ["full", "shared", "shared"] * 2,
    },
    "qwen3_next": {**_LLAMA, **_ROUTED, **_DELTA, "model_type": "qwen3_next"},
    "nemotron_h, NVFP4": {
        **_but(_LLAMA, "hidden_act"), **_HYBRID, "model_type": "nemotron_h",
        "quantization_config": {"quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": "FP8"},
    },
    "kimi_linear": {**_LLAMA, **_but(_LATENT, "n_routed_experts", "n_shared_experts", "num_experts_per_tok", "n_group"),
                    **_KIMI, "model_type": "kimi_linear"},
    "nemotron-nas": {**_LLAMA, "model_type": "nemotron-nas", "num_key_value_heads": None, "block_configs": _BLOCKS},
    "gpt2": {
        "model_type": "gpt2", "n_embd": 256, "n_head": 8, "n_layer": 4, "n_positions": 512, "vocab_size": 1024,
        "activation_function": "gelu_new",
    },
    "falcon": {
        "model_type": "falcon", "hidden_size": 256, "num_attention_heads": 8, "num_hidden_layers": 4,
        "vocab_size": 1024, "multi_query": True, "parallel_attn": True, "bias": False, "alibi": False,
    },
}  # fmt: skip
"""Configs by name."""
