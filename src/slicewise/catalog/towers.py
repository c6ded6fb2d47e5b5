"""Parameters of vision and audio towers, with their projectors, counted from the parts of a config that describe them.

Only counts: a tower is not planned, it is held. Buffers, such as the bounds of clipped matrices, are not counted.

Source: the modules of transformers 5.24, by the `model_type` of each part.
"""

from __future__ import annotations

from typing import Any

from slicewise.catalog.config import Config
from slicewise.errors import InputError

GELU = ("gelu", "gelu_pytorch_tanh")
_RGB = 3
_EARLY = "deepstack_visual_indexes"
_PAIR = 2


def qwen3_visual(config: Config) -> int:
    """The vision tower of Qwen 3 VL: patches over two frames, a merger, and one more for each layer that feeds early.

    Raises:
        InputError: a size is missing or absurd.
    """
    config.text("hidden_act", "gelu_pytorch_tanh", GELU)
    width, d_ff = config.size("hidden_size"), config.size("intermediate_size")
    patch = (
        config.size("in_channels", default=_RGB) * config.size("temporal_patch_size") * config.size("patch_size") ** 2
    )
    merged, out = width * config.size("spatial_merge_size") ** 2, config.size("out_hidden_size")
    early = len([config.whole(at, _EARLY, least=0) for at in config.listed(_EARLY) or ()])
    block = 2 * _norm(width) + _linear(width, 3 * width) + _linear(width, width) + _mlp(width, d_ff)
    merger = _linear(merged, merged) + _linear(merged, out)
    config.size("num_heads")
    return (
        _linear(patch, width)
        + config.size("num_position_embeddings") * width
        + config.layers("depth") * block
        + (1 + early) * merger
        + _norm(width)
        + early * _norm(merged)
    )


def siglip(config: Config, d_model: int) -> int:
    """The SigLIP tower of Gemma 3, and the projector that makes its patches as wide as the language model.

    Args:
        config: the `vision_config`.
        d_model: width of the language model.

    Raises:
        InputError: a size is missing or absurd.
        UnsupportedModelError: it has a pooling head.
    """
    config.text("hidden_act", "gelu_pytorch_tanh", GELU)
    config.flag("vision_use_head", default=None)
    config.refuse("vision_use_head", "a pooling head is not counted")
    width, patch = config.size("hidden_size"), config.size("patch_size")
    positions = (config.size("image_size") // patch) ** 2
    embeddings = _linear(config.size("num_channels", default=_RGB) * patch**2, width) + positions * width
    block = 2 * _norm(width) + 4 * _linear(width, width) + _mlp(width, config.size("intermediate_size"))
    projector = width * d_model + width
    config.size("num_attention_heads")
    return embeddings + config.layers() * block + _norm(width) + projector


def llama4_vision(config: Config, d_model: int) -> int:
    """The vision tower of Llama 4, the adapter that merges its patches, and the projector.

    Args:
        config: the `vision_config`.
        d_model: width of the language model.

    Raises:
        InputError: a size is missing or absurd.
        UnsupportedModelError: its projector has biases.
    """
    config.text("hidden_act", "gelu", GELU)
    config.refuse("multi_modal_projector_bias", "the projector of a Llama 4 tower has no biases")
    width, patch, d_ff = config.size("hidden_size"), config.size("patch_size"), config.size("intermediate_size")
    positions = (config.size("image_size") // patch) ** 2 + 1
    embeddings = config.size("num_channels", default=_RGB) * patch**2 * width + (positions + 1) * width
    block = 2 * _norm(width) + 4 * _linear(width, width) + _mlp(width, d_ff)
    adapter = d_ff * config.size("projector_input_dim") + config.size("projector_output_dim") ** 2
    config.ignore(
        "num_attention_heads", "pixel_shuffle_ratio", "projector_dropout", "vision_feature_layer",
        "vision_feature_select_strategy",
    )  # fmt: skip
    projector = config.size("vision_output_dim") * d_model
    return embeddings + 2 * _norm(width) + config.layers() * block + adapter + projector


def gemma4_vision(config: Config, d_model: int) -> int:
    """The vision tower of Gemma 4, a position table for each axis, and the projector.

    Args:
        config: the `vision_config`.
        d_model: width of the language model.

    Raises:
        InputError: a size is missing or absurd.
        UnsupportedModelError: its attention has biases.
    """
    config.text("hidden_activation", "gelu_pytorch_tanh", GELU)
    config.refuse("attention_bias", "a Gemma 4 tower has no biases")
    width, d_ff, head_dim = config.size("hidden_size"), config.size("intermediate_size"), config.size("head_dim")
    n_heads, n_kv_heads = config.size("num_attention_heads"), config.size("num_key_value_heads")
    if n_heads % n_kv_heads:
        raise InputError(f"{config.origin}: {n_heads} heads do not divide over num_key_value_heads {n_kv_heads}")
    attention = 2 * width * (n_heads + n_kv_heads) * head_dim + 2 * head_dim
    block = attention + 3 * width * d_ff + 4 * width
    positions = 2 * config.size("position_embedding_size") * width
    config.ignore(
        "global_head_dim", "max_position_embeddings", "pooling_kernel_size", "default_output_length", "standardize",
        "use_clipped_linears", "image_seq_length", "video_seq_length",
    )  # fmt: skip
    patches = _RGB * config.size("patch_size") ** 2 * width
    return patches + positions + config.layers() * block + width * d_model


def gemma4_audio(config: Config, d_model: int) -> int:
    """The audio tower of Gemma 4, a conformer behind two strided convolutions over a quarter of the mel bands.

    Args:
        config: the `audio_config`.
        d_model: width of the language model.

    Raises:
        InputError: a size is missing or absurd.
    """
    config.text("hidden_act", "silu", ("silu",))
    width, out = config.size("hidden_size"), config.size("output_proj_dims")
    channels = [
        config.whole(value, "subsampling_conv_channels") for value in _pair(config, "subsampling_conv_channels")
    ]
    kernel = 3**2
    strided = kernel * channels[0] + channels[0] + kernel * channels[0] * channels[1] + channels[1]
    entry = strided + channels[0] // 4 * channels[1] * width
    attention = 5 * width**2 + width // config.size("num_attention_heads")
    forward = 2 * (2 * width * 4 * width + 2 * width)
    convolution = 3 * width**2 + config.size("conv_kernel_size") * width + 2 * width
    config.ignore(
        "attention_chunk_size", "attention_context_left", "attention_context_right", "attention_logit_cap",
        "attention_invalid_logits_value", "use_clipped_linears", "residual_weight", "gradient_clipping",
    )  # fmt: skip
    layer = attention + forward + convolution + 3 * width
    return entry + config.layers() * layer + _linear(width, out) + out * d_model


def moonvit(config: Config) -> int:
    """The vision tower of Kimi K2.5, with a grid of positions, without the projector.

    Args:
        config: the `vision_config`.

    Raises:
        InputError: a size is missing or absurd.
        UnsupportedModelError: positions of another make.
    """
    config.text("pos_emb_type", "divided_fixed", ("divided_fixed",))
    width, patch = config.size("vt_hidden_size"), config.size("patch_size")
    positions = config.size("init_pos_emb_height") * config.size("init_pos_emb_width") * width
    block = 2 * _norm(width) + 4 * _linear(width, width) + _mlp(width, config.size("vt_intermediate_size"))
    config.ignore("vt_num_attention_heads", "init_pos_emb_time", "merge_type", "video_attn_type")
    return _linear(_RGB * patch**2, width) + positions + config.layers("vt_num_hidden_layers") * block + _norm(width)


def perception_encoder(config: Config, d_model: int) -> int:
    """The vision tower of Step 3.7, scaled layers and two strided convolutions, and a projector of one matrix.

    Args:
        config: the `vision_config`; what it leaves out is what transformers takes.
        d_model: width of the language model.

    Raises:
        InputError: a size is absurd.
    """
    config.text("hidden_act", "quick_gelu", ("quick_gelu",))
    width, patch = config.size("width", "hidden_size", default=1536), config.size("patch_size", default=14)
    d_ff = int(width * config.number("mlp_ratio", default=8960 / 1536))
    positions = (config.size("image_size", default=728) // patch) ** 2
    embeddings = config.size("num_channels", default=_RGB) * patch**2 * width + positions * width
    block = 2 * _norm(width) + 4 * _linear(width, width) + _mlp(width, d_ff) + 2 * width
    strided = _linear(3**2 * width, 2 * width) + _linear(3**2 * 2 * width, 4 * width)
    n_layers = config.layers("layers", "num_hidden_layers", default=47)
    config.ignore(
        "heads", "num_attention_heads", "intermediate_size", "use_cls_token", "ues_cls_token", "use_ln_pre",
        "use_ln_post", "use_abs_posemb", "use_rope2d", "ls_init_value", "max_position_embeddings",
    )  # fmt: skip
    return embeddings + _norm(width) + n_layers * block + strided + 4 * width * d_model


def _pair(config: Config, name: str) -> list[Any]:
    found = config.listed(name)
    if found is None or len(found) != _PAIR:
        raise InputError(f"{config.origin}: {name} must be a list of two counts")
    return found


def _linear(n_in: int, n_out: int) -> int:
    return n_in * n_out + n_out


def _norm(width: int) -> int:
    return 2 * width


def _mlp(width: int, d_ff: int) -> int:
    return _linear(width, d_ff) + _linear(d_ff, width)
