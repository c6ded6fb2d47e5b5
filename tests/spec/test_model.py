"""Models: sizes that cannot make one are refused."""

from dataclasses import FrozenInstanceError

import pytest

from slicewise.catalog.load import load_model
from slicewise.errors import InputError
from slicewise.spec.model import dense_model

SIZES = {
    "n_layers": 4, "d_model": 64, "d_ff": 128, "n_heads": 8, "n_kv_heads": 4, "head_dim": 16, "vocab_size": 100,
}  # fmt: skip


@pytest.mark.parametrize("key", SIZES)
@pytest.mark.parametrize("size", [0, -8])
def test_sizes_below_one_are_refused_by_name(key: str, size: int) -> None:
    with pytest.raises(InputError, match=rf"{key} is {size if key != 'n_layers' else 0}; it must be at least 1"):
        dense_model(name="made-up", **{**SIZES, key: size})


def test_query_heads_divide_over_kv_heads() -> None:
    with pytest.raises(InputError, match="8 query heads do not divide over 5 KV heads"):
        dense_model(name="made-up", **{**SIZES, "n_kv_heads": 5})


def test_a_model_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        load_model("llama-3-8b").d_model = 1  # type: ignore[misc]
