"""What the names and values of a config's keys say of themselves: harmless, of a size, or of nothing at all."""

from __future__ import annotations

import re
from typing import Any

_STRUCTURAL = (
    "num_", "n_", "_size", "_dim", "dim_", "_rank", "layer", "expert", "head", "window", "hidden", "inter", "kv_",
    "lora", "tie", "bias", "moe", "mlp", "attn", "attention", "chunk", "conv", "mamba", "ssm", "stride", "index",
    "latent", "vocab", "depth", "block", "share",
)  # fmt: skip
"""Parts of the names of keys that may change a size."""
_SIZE = re.compile(r"(?:^|_)(?:num|n)_|_(?:size|dim|rank|heads?|layers?|experts|groups|embd|width)$")
"""Names of keys that say a size, whatever it is of."""
_HARMLESS = (
    "architectures auto_map model_type transformers_version torch_dtype dtype name_or_path _name_or_path id2label"
    " label2id bos_token_id eos_token_id pad_token_id sep_token_id decoder_start_token_id initializer_range"
    " initializer_factor rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps norm_epsilon rope_theta rope_scaling"
    " rope_parameters attention_dropout hidden_dropout resid_pdrop embd_pdrop attn_pdrop hidden_dropout_prob"
    " attention_probs_dropout_prob classifier_dropout residual_dropout embedding_dropout use_cache output_attentions"
    " output_hidden_states output_router_logits router_aux_loss_coef pretraining_tp num_beams num_beam_groups"
    " num_return_sequences chunk_size_feed_forward cross_attention_hidden_size is_encoder_decoder is_decoder"
    " encoder_no_repeat_ngram_size no_repeat_ngram_size diversity_penalty length_penalty max_length min_length"
    " problem_type pruned_heads tf_legacy_loss tie_encoder_decoder tokenizer_class torchscript typical_p use_bfloat16"
    " use_flash_attn attn_implementation _attn_implementation attn_implementation_autoset _attn_implementation_autoset"
    " attention_type_id attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar scale_attn_weights"
    " scale_attn_by_inverse_layer_idx reorder_and_upcast_attn scale_attention_softmax_in_fp32"
    " attention_softmax_in_fp32 use_sliding_window_attention_id unsloth_fixed unsloth_version head_dtype"
    " context_window_size prefill_chunk_size attention_sink_size tensor_parallel_shards pipeline_parallel_stages"
    " max_batch_size cache_implementation original_max_position_embeddings use_mrope return_dict logit_scale"
    " norm_topk_prob router_jitter_noise ignore_index"
)
HARMLESS = frozenset(_HARMLESS.split())
"""Keys that change no array of a decoder, whatever they say."""
HARMLESS_ENDINGS = ("_token_id", "_token_ids", "_token_index")
"""Endings of keys that name a token of the vocabulary."""
_MOST, _LONGEST = 8, 40
"""Entries and letters of a value in a message."""


def is_harmless(name: str) -> bool:
    """Whether a key changes no array, whatever it says."""
    return name in HARMLESS or name.endswith(HARMLESS_ENDINGS)


def may_change_a_size(name: str) -> bool:
    """Whether a key that nobody reads may change an array, by its name."""
    return any(part in name.lower() for part in _STRUCTURAL)


def says_a_size(name: str) -> bool:
    """Whether a key says how large or how many, by its name."""
    return bool(_SIZE.search(name)) and not is_harmless(name)


def is_nothing(value: Any) -> bool:
    """Whether a value says that the model has nothing of the kind."""
    return value is None or value in (False, "", [], {})


def is_neutral(name: str, value: Any) -> bool:
    """Whether a key changes nothing: a factor of one does not, and one more layer does."""
    is_one = not isinstance(value, bool) and value == 1
    return is_nothing(value) or (is_one and not says_a_size(name))


def shown(value: Any) -> str:
    """A value for a message: short, whatever it holds."""
    items = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
    if len(items) > _MOST or any(isinstance(item, list | dict) for item in items):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(items)}"
    if any(isinstance(item, int) and item.bit_length() > _LONGEST for item in items):
        return "a number of many digits"
    return repr(value)[:_LONGEST]
