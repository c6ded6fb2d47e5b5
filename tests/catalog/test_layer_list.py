"""Layers as text: what is folded unfolds to the same layers, and what is not understood is refused."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slicewise.catalog.layer_list import MOST_LAYERS, fold, unfold
from slicewise.catalog.load import model_aliases, read_data
from slicewise.errors import CatalogError

KINDS = st.sampled_from(
    [("full", "dense"), ("sliding", "dense"), ("mamba", ""), ("", "experts"), ("groups-of-8", "dense-14336")]
)


def one_by_one(layers: list[list[Any]]) -> list[tuple[str, str]]:
    return [(mixer, feed) for mixer, feed, count in layers for _ in range(count)]


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("full+dense", [["full", "dense", 1]]),
        ("32 full+dense", [["full", "dense", 32]]),
        ("mamba+, +experts", [["mamba", "", 1], ["", "experts", 1]]),
        ("2 × (sliding+dense, full+dense)", [["sliding", "dense", 1], ["full", "dense", 1]] * 2),
        ("3 latent+dense, 58 latent+experts", [["latent", "dense", 3], ["latent", "experts", 58]]),
    ],
)
def test_text_unfolds_to_layers(text: str, layers: list[list[Any]]) -> None:
    assert unfold(text) == layers


@pytest.mark.parametrize(
    ("layers", "text"),
    [
        ([["full", "dense", 32]], "32 full+dense"),
        ([["a", "b", 1], ["c", "b", 1]] * 4, "4 × (a+b, c+b)"),
        ([["a", "b", 5], ["c", "b", 1]] * 8 + [["a", "b", 2]], "8 × (5 a+b, c+b), 2 a+b"),
        ([["a", "b", 1], ["a", "", 1], ["", "b", 1]], "a+b, a+, +b"),
    ],
)
def test_layers_fold_to_text(layers: list[list[Any]], text: str) -> None:
    assert fold(layers) == text


@given(st.lists(st.tuples(KINDS, st.integers(1, 4)).map(lambda pair: [*pair[0], pair[1]]), min_size=1, max_size=60))
@example([["full", "dense", 1], ["sliding", "dense", 1]] * 23)
@example([["full", "dense", 1]] * 3)
def test_what_is_folded_unfolds_to_the_same_layers(layers: list[list[Any]]) -> None:
    assert one_by_one(unfold(fold(layers))) == one_by_one(layers)


@pytest.mark.parametrize("name", sorted(model_aliases()))
def test_the_catalog_s_layers_are_folded(name: str) -> None:
    text = read_data(f"models/{name}.toml")["layers"]
    assert fold(unfold(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "full", "+", "3 +", "full dense", "32", "full+dense;", "-1 full+dense", "1.5 a+b", "full+dense,full+dense",
        "2 x (full+dense)", "2 × full+dense", "2 × (full+dense", "2 × (2 × (full+dense))", "full+dense, ", "a b+dense",
        "32  full+dense", "2 × ()",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(CatalogError, match=r"^layers: '.*' is not understood; write for example"):
        unfold(text)


@pytest.mark.parametrize("value", [3, None, ["full+dense"], [["full", "dense", 2]], {}])
def test_what_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(CatalogError, match=r"^layers: .* is no text; write for example"):
        unfold(value)


@pytest.mark.parametrize("text", ["1001 a+b", "1001 × (a+b)", "999999999999 × (a+b, c+d)", "0 a+b", "0 × (a+b)"])
def test_as_many_layers_as_no_model_has_are_refused(text: str) -> None:
    with pytest.raises(CatalogError, match=r"^layers: "):
        unfold(text)


def test_the_most_layers_are_read() -> None:
    assert unfold(f"{MOST_LAYERS} a+b") == [["a", "b", MOST_LAYERS]]
