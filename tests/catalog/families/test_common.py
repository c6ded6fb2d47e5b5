"""What families share: parts of a config, windows, shares that are rotated; and absurd values, whatever the family."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise.catalog.config import Config
from slicewise.catalog.families import common
from slicewise.catalog.hf import model_from_config
from slicewise.errors import CatalogError, InputError
from slicewise.spec.tensors import caches, weight_tensors

CONFIGS = sorted((Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "model_configs").glob("*.json"))


def config(**keys: Any) -> Config:
    return Config(keys, "config.json", "a-family")


def test_the_whole_says_of_its_part_what_the_part_does_not() -> None:
    whole = config(dtype="float16", tie_word_embeddings=False, text_config={"tie_word_embeddings": True, "n_head": 2})
    part = common.nested(whole)
    assert (common.dtype(part), part.flag("tie_word_embeddings"), part.size("n_head")) == ("fp16", False, 2)
    assert part.origin == "config.json: text_config"
    own = common.nested(config(torch_dtype="float32", text_config={"dtype": "bfloat16", "tie_word_embeddings": True}))
    assert (common.dtype(own), own.flag("tie_word_embeddings")) == ("bf16", True)


def test_a_missing_part_is_refused() -> None:
    with pytest.raises(InputError, match="text_config is missing"):
        common.nested(config(dtype="float16"))


@pytest.mark.parametrize(
    ("keys", "share"),
    [
        ({}, 0.5),
        ({"partial_rotary_factor": 0.25}, 0.25),
        ({"rope_parameters": {"partial_rotary_factor": 0.75}}, 0.75),
        ({"rope_scaling": {"partial_rotary_factor": 1}, "rope_parameters": None}, 1.0),
    ],
)
def test_the_share_that_is_rotated_has_three_places(keys: dict[str, Any], share: float) -> None:
    assert common.rotary_share(config(**keys), 0.5) == share


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({}, {}),
        ({"sliding_window": None, "max_position_embeddings": 4096}, {}),
        ({"sliding_window": 512}, {"window": 512}),
        ({"sliding_window": 4096, "max_position_embeddings": 4096}, {"window": 4096}),
        ({"sliding_window": 8192, "max_position_embeddings": 4096}, {}),
    ],
)
def test_a_window_counts_where_it_is_within_the_limit(keys: dict[str, Any], found: dict[str, int]) -> None:
    assert common.window(config(**keys)) == found


@pytest.mark.parametrize("value", [0, -0.5, 1.5, True, "0.5", float("nan"), [0.5]])
def test_a_share_is_a_number_above_0_and_at_most_1(value: Any) -> None:
    with pytest.raises(InputError, match=r"partial_rotary_factor is .*; it must be a number above 0"):
        common.rotary_share(config(partial_rotary_factor=value))


def test_a_flag_or_a_number_that_must_be_there_is_missed() -> None:
    for read in (lambda keys: keys.flag("bias", default=None), lambda keys: keys.number("bias")):
        with pytest.raises(InputError, match=r"bias is missing; a a-family config\.json must give it"):
            read(config(bias=None))


def test_kinds_that_no_layer_has_are_left_away() -> None:
    record = common.assembled(
        {"d_model": 8, "vocab_size": 8}, {"a": {}, "b": {}}, {"c": {}, "d": {}}, [("a", "c"), ("a", "")], rotated=0
    )
    assert (record.mixers, record.feed_forwards, record.layers) == ({"a": {}}, {"c": {}}, [["a", "c", 1], ["a", "", 1]])


def places(keys: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in keys.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from places(value, (*above, key))


ABSURD = [-1, 0, 3, 10**30, 1.5, float("nan"), "x", True, None, [], [None], [1, 2], {}, {"a": 1}]


@pytest.mark.skipif(not CONFIGS, reason="../shared/data/model_configs is not there")
@settings(max_examples=400)
@given(data=st.data())
def test_an_absurd_value_is_refused_in_one_line_or_changes_nothing_but_sizes(data: st.DataObject) -> None:
    keys = copy.deepcopy(json.loads(data.draw(st.sampled_from(CONFIGS), label="config").read_text()))
    keys.pop("quantization_config", None)
    *above, last = data.draw(st.sampled_from(list(places(keys))), label="key")
    part = keys
    for name in above:
        part = part[name]
    part[last] = data.draw(st.sampled_from(ABSURD), label="value")
    try:
        model = model_from_config(keys, "a-model", "config.json")
    except CatalogError:
        raise
    except InputError as refused:
        assert "\n" not in str(refused)  # noqa: PT017 - a refusal is one of two outcomes that are right
        return
    assert all(tensor.size > 0 for tensor in weight_tensors(model))
    assert all(cache.window > 0 for cache in caches(model))
