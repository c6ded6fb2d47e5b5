"""Token mixing: places of projections, caches that are read again, one matrix in the place of attention."""

import pytest

from slicewise.errors import InputError
from slicewise.spec.arrays import Tensor
from slicewise.spec.mixers import attention, extras, linear_map

SIZES = {"d_model": 64, "n_heads": 8, "n_kv_heads": 2, "head_dim": 16}


def named(tensors: tuple[Tensor, ...]) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in tensors}


def test_projections_are_where_they_are_said_to_be() -> None:
    usual, fused = (
        named(attention(**SIZES).weights),
        named(attention(**SIZES, places={"q": "qkv", "o": "dense"}).weights),
    )
    assert [usual[name].module for name in ("wq", "wk", "wv", "wo")] == [
        f"self_attn.{name}_proj" for name in ("q", "k", "v", "o")
    ]
    assert (fused["wq"].module, fused["wk"].module, fused["wo"].module) == (
        "self_attn.qkv", "self_attn.k_proj", "self_attn.dense",
    )  # fmt: skip


def test_attention_over_earlier_keys_and_values_keeps_none_and_reads_as_many() -> None:
    own, later = attention(**SIZES, qkv_bias=True), attention(**SIZES, qkv_bias=True, earlier_kv=True)
    assert set(named(own.weights)) - set(named(later.weights)) == {"wk", "wv", "bk", "bv"}
    (kept,), (read,) = own.caches, later.caches
    assert (kept.elements_per_token, kept.reread_elements_per_token) == (2 * 2 * 16, 0)
    assert (read.elements_per_token, read.reread_elements_per_token) == (0, 2 * 2 * 16)
    assert read.decode_flops_per_token == kept.decode_flops_per_token
    assert "read 64 elements a token of an earlier layer" in str(read)


def test_a_value_that_is_the_key_is_kept_but_not_projected() -> None:
    shared = attention(**SIZES, shared_kv=True)
    assert "wv" not in named(shared.weights)
    assert shared.caches == attention(**SIZES).caches


def test_one_matrix_in_the_place_of_attention_keeps_nothing() -> None:
    mixer = linear_map(d_model=64, bias=True, module="self_attn.linear_attn")
    assert sum(tensor.size for tensor in mixer.weights) == 64**2 + 64
    assert (mixer.caches, mixer.kind) == ((), "linear map")
    assert mixer.weights[0].module == "self_attn.linear_attn"


def test_a_further_array_is_split_where_it_says_so() -> None:
    table, norm = extras([["table", [100, 8], "embedding", ["vocab", "embed"]], ["norm", 8, "norm"]], "part")
    assert (table.axes, table.size, table.module) == (("vocab", "embed"), 800, "part.table")
    assert (norm.axes, norm.module) == (("",), "part.norm")


@pytest.mark.parametrize("change", [{"n_heads": 7}, {"head_dim": 0}, {"n_kv_heads": 0}])
def test_sizes_that_make_no_attention_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(InputError):
        attention(**{**SIZES, **change})
