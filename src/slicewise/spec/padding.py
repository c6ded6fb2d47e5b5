"""How engines pad: the KV cache on a TPU, and experts in 4-bit floats on GPUs that lack them.

On a TPU heads are padded to the lanes, and rows of narrow dtypes to whole words. Describes tpu-inference, the engine
behind vLLM on TPU: the pages of its ragged paged attention, [tokens, rows, width] with the keys and
values of the heads on a chip as rows, and those of its latent attention, where tokens are the rows.
A layout that puts tokens on the lanes, which it can be switched to since July 2026, pads no rows and is not described.

Source: get_kv_cache_shape of its kernels ragged_paged_attention/v3 and mla, and the logs in its pull requests 757 and
1285 (github.com/vllm-project/tpu-inference)
"""

from __future__ import annotations

from slicewise.errors import InputError
from slicewise.spec.arrays import Cache, Tensor
from slicewise.spec.precision import BYTES_PER_ELEMENT
from slicewise.units import BITS_PER_BYTE

LANES = 128
"""Elements of a row are padded to a multiple of this."""

HALF_HEAD = 64
"""A key and a value of this width lie side by side in one row."""

FP4_FF_MULTIPLE, FP4_WIDTH_MULTIPLE = 128, 256
"""What vLLM's kernels for 4-bit floats on chips without them pad an expert's width and the model's to."""

WORD_BITS = 32
"""Rows are packed into words of so many bits along the heads."""


def packing(kv_dtype: str) -> int:
    """Rows that share a word: 2 in bf16, 4 in fp8.

    Raises:
        InputError: the dtype is not known.
    """
    if kv_dtype not in BYTES_PER_ELEMENT:
        raise InputError(f"kv dtype {kv_dtype} is not known; use one of {', '.join(BYTES_PER_ELEMENT)}")
    # Scales of 4-bit floats lie elsewhere, and are no part of a row.
    return WORD_BITS // max(4, int(BITS_PER_BYTE * BYTES_PER_ELEMENT[kv_dtype]))


def padded_bytes_per_token(cache: Cache, kv_dtype: str, heads_per_chip: int) -> float:
    """Bytes that one token of one layer takes on each chip, for what is kept in the dtype of the cache. [B]

    Args:
        cache: what the layer keeps, or reads again of an earlier layer.
        kv_dtype: dtype of the cache.
        heads_per_chip: KV heads on each chip, at least one.

    Raises:
        InputError: the dtype is not known.
    """
    rows, width = _rows(cache, packing(kv_dtype), heads_per_chip)
    return rows * width * BYTES_PER_ELEMENT[kv_dtype]


def tpu_padding(cache: Cache, kv_dtype: str, heads_per_chip: int) -> float:
    """What a token takes on a chip, over what its elements would take unpadded; 1 for what has no such array. []

    Narrow caches of few heads a chip gain nothing: with one head, fp8 pads its two rows to four, the bytes of bf16.

    >>> cache = Cache(name="k and v", elements_per_token=2 * 8 * 128, n_heads=8, head_dim=128, value_dim=128)
    >>> tpu_padding(cache, "fp8", 1), tpu_padding(cache, "fp8", 2), tpu_padding(cache, "bf16", 1)
    (2.0, 1.0, 1.0)

    Args:
        cache: what the layer keeps, or reads again of an earlier layer.
        kv_dtype: dtype of the cache.
        heads_per_chip: KV heads on each chip, at least one.

    Raises:
        InputError: the dtype is not known.
    """
    padded = padded_bytes_per_token(cache, kv_dtype, heads_per_chip)
    plain = _elements(cache) / cache.n_heads * heads_per_chip * BYTES_PER_ELEMENT[kv_dtype]
    return padded / plain if plain else 1.0


def fp4_padding(tensor: Tensor, ways: int) -> float:
    """What an expert's matrix in 4-bit floats takes on a chip without such floats, over its part of the elements. []

    The kernel pads a rank's part of the experts' width to a multiple of 128, and the model's width to one of 256: 2,880
    becomes 2,944 and 3,072, so gpt-oss-120b takes 65.9 GiB rather than 60.8.

    Args:
        tensor: an expert's matrix.
        ways: ways that the experts' width is cut.
    """
    factor = 1.0
    for (_, size), axis in zip(tensor.dims[-2:], tensor.axes[-2:], strict=True):
        part = -(-size // ways) if axis == "ff" else size
        factor *= _up(part, FP4_FF_MULTIPLE if axis == "ff" else FP4_WIDTH_MULTIPLE) / part
    return factor


def _rows(cache: Cache, rows_per_word: int, heads_per_chip: int) -> tuple[float, int]:
    """Rows of one token on a chip and their width, padded."""
    if not _elements(cache):
        return 0, 0
    if not cache.value_dim:
        # Keys that are the values, too, are rows by tokens: tokens of a page, not heads, make up their words.
        return _elements(cache) / cache.head_dim, _up(cache.head_dim, LANES)
    if cache.head_dim == cache.value_dim == HALF_HEAD:
        return _up(heads_per_chip, rows_per_word), LANES
    return _up(2 * heads_per_chip, rows_per_word), _up(max(cache.head_dim, cache.value_dim), LANES)


def _elements(cache: Cache) -> float:
    return cache.elements_per_token or cache.reread_elements_per_token


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
