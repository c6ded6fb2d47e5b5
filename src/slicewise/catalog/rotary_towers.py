"""Parameters of vision towers whose positions are rotary: Qwen 2 VL, Qwen 2.5 VL and Pixtral, with their projectors.

Source: the modules of transformers 5.24, by the `model_type` of each part.
"""

from __future__ import annotations

from slicewise.catalog.config import Config
from slicewise.errors import InputError, UnsupportedModelError

_RGB = 3
_FRAMES = 2
_GELU = ("gelu", "gelu_pytorch_tanh")
_ACTIVATIONS = ("gelu", "silu")
"""Pixtral's MLPs are gated, whichever it is."""


def qwen2_visual(config: Config) -> int:
    """The vision tower of Qwen 2 VL: patches over two frames, plain MLPs, and a merger of neighbouring patches.

    Raises:
        InputError: a size is missing or absurd.
    """
    config.text("hidden_act", "quick_gelu", ("quick_gelu", *_GELU))
    width, out = config.size("embed_dim"), config.size("hidden_size")
    d_ff = int(width * config.number("mlp_ratio"))
    block = 2 * 2 * width + _linear(width, 3 * width) + _linear(width, width)
    block += _linear(width, d_ff) + _linear(d_ff, width)
    return _patches(config, width) + config.layers("depth") * block + _merger(config, width, out) + 2 * width


def qwen2_5_visual(config: Config) -> int:
    """The vision tower of Qwen 2.5 VL: gated MLPs, norms without biases, windows in most layers.

    Raises:
        InputError: a size is missing or absurd.
    """
    config.text("hidden_act", "silu", ("silu",))
    config.ignore("window_size", "tokens_per_second", "fullatt_block_indexes")
    width, d_ff, out = config.size("hidden_size"), config.size("intermediate_size"), config.size("out_hidden_size")
    block = 2 * width + _linear(width, 3 * width) + _linear(width, width)
    block += 2 * _linear(width, d_ff) + _linear(d_ff, width)
    return _patches(config, width) + config.layers("depth") * block + _merger(config, width, out) + width


def pixtral(config: Config) -> int:
    """The Pixtral tower, without its projector: one matrix a patch, and no biases.

    Raises:
        InputError: a size is missing or absurd.
    """
    config.text("hidden_act", "gelu", _ACTIVATIONS)
    config.ignore("image_size", "vocab_size", "max_position_embeddings")
    width, d_ff = config.size("hidden_size"), config.size("intermediate_size")
    n_heads = config.size("num_attention_heads")
    if width % n_heads or config.size("head_dim", default=width // n_heads) != width // n_heads:
        raise InputError(f"{config.origin}: head_dim is not hidden_size {width} over {n_heads} heads")
    patches = config.size("num_channels", default=_RGB) * config.size("patch_size") ** 2 * width
    return patches + width + config.layers() * (2 * width + 4 * width**2 + 3 * width * d_ff)


def pixtral_projector(config: Config, width: int, d_model: int) -> int:
    """The projector of Mistral Small 3: a norm, a matrix that merges neighbouring patches, and two more.

    Args:
        config: the config of the whole.
        width: of the tower.
        d_model: of the language model.

    Raises:
        InputError: a size is missing or absurd.
        UnsupportedModelError: it joins the outputs of several layers of the tower.
    """
    config.text("projector_hidden_act", "gelu", _GELU)
    if isinstance(config.keys.get("vision_feature_layer"), list):
        raise UnsupportedModelError(f"{config.origin}: vision_feature_layer: several layers are not supported")
    config.ignore("vision_feature_layer", "image_token_index")
    bias = 2 * d_model if config.flag("multimodal_projector_bias") else 0
    merged = width * config.size("spatial_merge_size", default=2) ** 2
    return width + merged * width + width * d_model + d_model**2 + bias


def _patches(config: Config, width: int) -> int:
    """The matrix of the patches, without a bias."""
    channels = config.size("in_channels", "in_chans", default=_RGB)
    frames, patch = config.size("temporal_patch_size", default=_FRAMES), config.size("patch_size")
    config.size("num_heads")
    config.ignore("in_chans", "spatial_patch_size", "initializer_range")
    return channels * frames * patch**2 * width


def _merger(config: Config, width: int, out: int) -> int:
    """Two matrices that merge neighbouring patches, without the norm before."""
    merged = width * config.size("spatial_merge_size", default=2) ** 2
    return _linear(merged, merged) + _linear(merged, out)


def _linear(n_in: int, n_out: int) -> int:
    return n_in * n_out + n_out
