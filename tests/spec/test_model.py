"""Models: sizes that cannot make one are refused."""

from dataclasses import FrozenInstanceError, replace

import pytest

from slicewise.catalog.load import load_model
from slicewise.errors import InputError


@pytest.mark.parametrize("key", ["n_layers", "d_model", "d_ff", "n_heads", "n_kv_heads", "head_dim", "vocab_size"])
@pytest.mark.parametrize("size", [0, -8])
def test_sizes_below_one_are_refused_by_name(key: str, size: int) -> None:
    with pytest.raises(InputError, match=rf"llama-3-8b: {key} is {size}; it must be at least 1"):
        replace(load_model("llama-3-8b"), **{key: size})


def test_query_heads_divide_over_kv_heads() -> None:
    with pytest.raises(InputError, match="32 query heads do not divide over 5 KV heads"):
        replace(load_model("llama-3-8b"), n_kv_heads=5)


def test_a_model_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        load_model("llama-3-8b").n_layers = 1  # type: ignore[misc]
