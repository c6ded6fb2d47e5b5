"""Layouts to try: what was asked for is kept, what is left open is tried, and what is illegal is refused."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.catalog.slices import load_slice
from slicewise.errors import InputError
from slicewise.planner.layouts import DEGREES, AskedLayout, checked, layouts, legal_tensor_parallel, refusal
from slicewise.spec.legality import legal_layouts, refusals
from slicewise.spec.model import Model
from slicewise.spec.precision import Precision
from slicewise.spec.ranks import Ranks
from slicewise.spec.topology import Slice

BF16, STORED = Precision(), Precision(weights="fp8", as_stored=True)
NOTHING, AS_AN_ENGINE = AskedLayout(degrees={}), AskedLayout(degrees={}, by_ranks=True)


def tried(model: str, slice_: str, precision: Precision = BF16, *, by_ranks: bool = False, **degrees: int) -> list[str]:
    asked = AskedLayout(degrees=degrees, by_ranks=by_ranks)
    return [str(ranks) for ranks in layouts(load_model(model), load_slice(slice_), precision, asked)]


# -- nothing asked for -----------------------------------------------------------------------------------------------


def test_a_dense_model_is_cut_evenly_and_a_mixture_is_tried_with_its_experts_spread() -> None:
    assert tried("llama-3-70b", "h100:8") == ["None"]
    assert tried("mixtral-8x7b", "h100:8") == ["None", "tp 8 × ep 8", "tp 1 × dp 8 × ep 8"]
    assert tried("mixtral-8x7b", "h100:1") == ["None"]


def test_experts_that_do_not_divide_are_not_spread() -> None:
    assert tried("mixtral-8x7b", "h100:16") == ["None"]
    # 40 query heads do not divide over 16 chips, while every chip can have heads of its own.
    assert tried("llama-4-scout-17b-16e", "h100:16") == ["None", "tp 1 × dp 16 × ep 16"]


# -- what was asked for ----------------------------------------------------------------------------------------------


@given(model=..., slice_=..., data=st.data())
def test_layouts_have_what_was_asked_for_and_are_legal(model: Model, slice_: Slice, data: st.DataObject) -> None:
    degrees = data.draw(st.dictionaries(st.sampled_from(DEGREES), st.sampled_from([1, 2, 3, 4, 8]), max_size=3))
    precision = Precision(as_stored=model.quantisation is not None and data.draw(st.booleans()))
    asked = AskedLayout(degrees=degrees, by_ranks=True)
    planned = model if precision.as_stored else replace(model, quantisation=None)
    found = layouts(model, slice_, precision, asked)
    assert len(set(found)) == len(found)
    for ranks in found:
        assert ranks is not None
        assert ranks.n_chips == slice_.n_chips
        assert all(getattr(ranks, name) == ways for name, ways in degrees.items())
        assert not refusals(planned, ranks, slice_.n_chips)
    every = legal_layouts(planned, slice_.n_chips, **degrees)
    assert bool(found) == bool(every)
    if "ep" in degrees:
        assert set(found) == set(every)


def test_what_is_left_open_is_tried_the_plainest_first() -> None:
    assert tried("llama-3-70b", "h100:4", by_ranks=True)[:4] == ["tp 4", "tp 2 × dp 2", "tp 1 × dp 4", "tp 2 × pp 2"]
    assert tried("llama-3-70b", "h100:4", tp=2) == ["tp 2 × dp 2", "tp 2 × pp 2"]
    assert tried("llama-3-70b", "h100:4", pp=4) == ["tp 1 × pp 4"]


def test_experts_are_whole_or_spread_over_all_ranks_unless_a_number_of_ways_is_given() -> None:
    assert tried("mixtral-8x7b", "h100:8", tp=8) == ["tp 8", "tp 8 × ep 8"]
    assert tried("mixtral-8x7b", "h100:8", tp=8, ep=4) == ["tp 8 × ep 4"]


def test_blocks_of_scales_bound_the_checkpoint_and_not_other_weights() -> None:
    # Experts of 1,536 over 8 ranks cut through blocks of 128: errors at load in threads about this checkpoint.
    assert "tp 8" not in tried("qwen3-235b-a22b-fp8", "h100:8", STORED, by_ranks=True)
    assert "tp 8 × ep 8" in tried("qwen3-235b-a22b-fp8", "h100:8", STORED, by_ranks=True)
    assert "tp 8" in tried("qwen3-235b-a22b-fp8", "h100:8", BF16, by_ranks=True)
    fp8 = load_model("qwen3-235b-a22b-fp8")
    assert legal_tensor_parallel(fp8, STORED) != legal_tensor_parallel(fp8, BF16)
    assert 8 in legal_tensor_parallel(fp8, BF16)


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "slice_", "degrees", "said"),
    [
        ("llama-3-70b", "h100:8", {"tp": 3}, "is 3 chips, not 8"),
        ("llama-3-70b", "h100:8", {"tp": 16}, "is 16 chips, not 8"),
        ("llama-3-70b", "h100:8", {"tp": 4, "dp": 4}, "use dp 2"),
        ("llama-3-70b", "h100:8", {"ep": 2}, "spreads experts, and llama-3-70b has none"),
        ("llama-3-70b", "h100:8", {"ep": 3}, "ep 3 does not divide the 8 ranks of a stage"),
        ("llama-3-70b", "h100:256", {"pp": 128}, "pp 128 is more than the 80 layers"),
        ("mixtral-8x7b", "h100:16", {"ep": 16}, "8 experts do not divide over ep 16"),
        ("qwen2-7b", "h100:8", {"tp": 8}, "28 query heads do not divide over tp 8"),
        ("deepseek-v3", "h200:8", {"tp": 8, "ep": 3}, "ep 3 does not divide the 8 ranks"),
    ],
)
def test_a_refusal_is_one_sentence_with_the_flags_the_reason_and_what_is_legal(
    model: str, slice_: str, degrees: dict[str, int], said: str
) -> None:
    asked, chips = AskedLayout(degrees=degrees), load_slice(slice_)
    spec = load_model(model)
    assert layouts(spec, chips, BF16, asked) == ()
    words = refusal(spec, chips, BF16, asked)
    with pytest.raises(InputError, match=re.escape(words)):
        checked(spec, (chips,), BF16, asked)
    flags = " ".join(f"--{name} {ways}" for name, ways in degrees.items())
    assert words.startswith(f"{flags} on {slice_}: ")
    assert said in words
    assert "\n" not in words
    offered = words.partition("; legal there: ")[2].split(", ")
    legal = {str(ranks) for ranks in legal_layouts(spec, chips.n_chips)}
    assert offered
    assert set(offered) <= legal
    assert len(offered) == min(12, len(legal))


def test_one_slice_that_suits_is_enough() -> None:
    asked = AskedLayout(degrees={"tp": 8})
    slices = tuple(load_slice(name) for name in ("h100:4", "h100:8"))
    checked(load_model("llama-3-70b"), slices, BF16, asked)
    with pytest.raises(InputError, match="--tp 8 on h100:4: tp 8 × pp 1 × dp 1 is 8 chips, not 4"):
        checked(load_model("llama-3-70b"), slices[:1], BF16, asked)


def test_nothing_asked_for_is_never_refused() -> None:
    assert not NOTHING.is_given
    assert AS_AN_ENGINE.is_given
    checked(load_model("qwen2-7b"), (load_slice("h100:8"),), BF16, NOTHING)


def test_chips_beyond_the_tensor_ranks_that_heads_allow_are_groups() -> None:
    # 14 heads: no more than two ranks share a layer, and eight chips are four groups of them.
    assert tried("qwen2-0.5b", "h100:2", by_ranks=True)[0] == "tp 2"
    assert Ranks(tp=8) not in layouts(load_model("qwen2-0.5b"), load_slice("h100:8"), BF16, AS_AN_ENGINE)
    assert tried("qwen2-0.5b", "h100:8", by_ranks=True)[0] == "tp 2 × dp 4"
