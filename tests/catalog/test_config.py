"""The reader of a config's keys: each getter refuses what it cannot take, and nothing that matters is left unread."""

import math
from typing import Any

import pytest

from slicewise.catalog.config import LARGEST, MOST_LAYERS, MOST_UNREAD, Config, run_lengths
from slicewise.catalog.config_keys import HARMLESS, is_harmless, is_neutral, may_change_a_size, says_a_size, shown
from slicewise.errors import InputError, UnsupportedModelError

NO_SIZE = [-1, 1.5, 32.0, "32", True, [32], {"of": 32}, math.nan, math.inf, 1e30, 10**12, 10**400]


def config(**keys: Any) -> Config:
    return Config(keys, "config.json", "a-family")


# -- getters ---------------------------------------------------------------------------------------------------------


def test_a_size_is_the_first_of_its_names() -> None:
    keys = config(num_experts=8, num_local_experts=16)
    assert keys.size("num_experts", "num_local_experts") == 8
    assert keys.size("n_experts", "num_local_experts") == 16
    assert keys.size("n_heads", default=3) == 3
    assert config(n=0).size("n", least=0) == 0


@pytest.mark.parametrize("value", [0, *NO_SIZE])
def test_a_size_is_a_whole_number_within_reason(value: Any) -> None:
    with pytest.raises(InputError, match=r"^config\.json: num_layers (is|holds) "):
        config(num_layers=value).size("num_layers")
    # One of its other names may not say nonsense either.
    with pytest.raises(InputError, match=r"^config\.json: num_layers (is|holds) "):
        config(n_layers=3, num_layers=value).size("n_layers", "num_layers")


def test_the_largest_size_is_read_and_the_next_is_not() -> None:
    assert config(n=LARGEST).size("n") == LARGEST
    with pytest.raises(InputError, match="n is above 100,000,000, more than any model has"):
        config(n=LARGEST + 1).size("n")
    assert config(n=MOST_LAYERS).layers("n") == MOST_LAYERS
    with pytest.raises(InputError, match="n is 1,001, more than any model has"):
        config(n=MOST_LAYERS + 1).layers("n")
    assert config().layers("n", default=2) == 2


def test_what_is_missing_is_refused_with_the_key_that_may_have_been_meant() -> None:
    with pytest.raises(InputError, match=r"num_heads is missing; a a-family config.json must give it$"):
        config(num_heads=None).size("num_heads")
    with pytest.raises(
        InputError, match=r"num_attention_head is no key of a config\.json; did you mean num_attention_heads"
    ):
        config(num_attention_head=4).size("num_attention_heads")


@pytest.mark.parametrize("value", [0, 1, "true", [], math.nan])
def test_a_flag_is_true_or_false(value: Any) -> None:
    assert config(bias=True).flag("bias") is True
    assert config(bias=None).flag("bias", default=True) is True
    assert config(qkv=True).flag("bias", "qkv") is True
    with pytest.raises(InputError, match=r"bias is .*; it must be true or false"):
        config(bias=value).flag("bias")


@pytest.mark.parametrize("value", [0, -0.5, "1", True, [1.0], math.nan, math.inf, 10**400])
def test_a_number_is_above_zero_and_finite(value: Any) -> None:
    assert config(factor=2).number("factor") == 2.0
    assert config().number("factor", 0.5) == 0.5
    with pytest.raises(InputError, match=r"factor is .*; it must be a number above 0 and no more than"):
        config(factor=value).number("factor")


@pytest.mark.parametrize("value", [7, True, ["silu"], {}, math.nan])
def test_a_word_is_text_and_known(value: Any) -> None:
    assert config(act="silu").text("act", known=("silu",)) == "silu"
    assert config().text("act", "silu", ("silu",)) == "silu"
    with pytest.raises(InputError, match=r"act is .*; it must be a word"):
        config(act=value).text("act", "silu")
    with pytest.raises(UnsupportedModelError, match="act gelu is not supported for a-family; supported: silu, relu"):
        config(act="gelu").text("act", known=("silu", "relu"))


@pytest.mark.parametrize("value", [7, "ab", True, {"0": "a"}, math.nan])
def test_a_list_is_a_list_of_the_length_that_the_layers_ask_for(value: Any) -> None:
    assert config(kinds=["a", "b"]).listed("kinds", 2) == ["a", "b"]
    assert config(kinds=None).listed("kinds", 2) is None
    with pytest.raises(InputError, match=r"kinds is .*; it must be a list"):
        config(kinds=value).listed("kinds")
    for wrong in (["a"], ["a"] * 3, []):
        with pytest.raises(InputError, match=f"kinds has {len(wrong)} entries for 2 layers; check the file"):
            config(kinds=wrong).listed("kinds", 2)


@pytest.mark.parametrize("entry", ["c", 7, None, ["a"], {"a": 1}, math.nan])
def test_kinds_are_known_words(entry: Any) -> None:
    assert config(kinds=["a", "b"]).kinds("kinds", 2, ("a", "b")) == ["a", "b"]
    with pytest.raises(UnsupportedModelError, match=r"kinds holds .*, which is not supported for a-family"):
        config(kinds=["a", entry]).kinds("kinds", 2, ("a", "b"))


@pytest.mark.parametrize("value", [7, "x", True, [1], math.nan])
def test_a_part_is_an_object_and_says_where_it_is(value: Any) -> None:
    part = config(vision={"depth": -1}).part("vision")
    assert part is not None
    with pytest.raises(InputError, match=r"^config\.json: vision: depth is -1"):
        part.size("depth")
    assert config(vision=None).part("vision") is None
    with pytest.raises(InputError, match=r"vision is .*; it must be an object"):
        config(vision=value).part("vision")


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, False, 0, 0.0, "", [], {}])
def test_a_key_that_says_nothing_is_not_refused(value: Any) -> None:
    config(sinks=value).refuse("sinks", "are not supported")
    config().refuse("sinks", "are not supported")


@pytest.mark.parametrize("value", [True, 1, 2, -1, "yes", [0], {"a": 0}, math.nan])
def test_a_key_that_asks_for_what_is_not_supported_is_refused(value: Any) -> None:
    with pytest.raises(UnsupportedModelError, match=r"^config\.json: sinks: are not supported$"):
        config(sinks=value).refuse("sinks", "are not supported")


def test_one_number_may_say_that_there_is_nothing_of_the_kind() -> None:
    config(every=1).refuse("every", "layers between are not supported", but=1)
    for value in (2, True, 1.5):
        with pytest.raises(UnsupportedModelError, match="every: layers between"):
            config(every=value).refuse("every", "layers between are not supported", but=1)


def test_what_was_read_ignored_or_is_harmless_is_done_with() -> None:
    keys = config(num_heads=2, n_group=1, rms_norm_eps=1e-5, eos_token_id=[1, 2], made_up="anything", dropout=0.5)
    keys.size("num_heads")
    keys.ignore("n_group")
    keys.done()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_blocks", 4), ("num_blocks", 1), ("new_head_dim", 64), ("attention_sinks", True), ("moe_kind", "x"),
        ("text_config", {"a": 1}), ("audio_config", {"a": 1}), ("layer_scale", [1.0]), ("num_blocks", math.nan),
    ],
)  # fmt: skip
def test_what_may_change_a_size_and_is_not_read_is_refused(name: str, value: Any) -> None:
    with pytest.raises(UnsupportedModelError, match=f"{name} is not understood for a a-family model, and may change"):
        config(**{name: value}).done()


@pytest.mark.parametrize(
    ("name", "value"), [("num_blocks", 0), ("num_blocks", None), ("attention_sinks", False), ("mlp_multiplier", 1.0)]
)
def test_what_says_that_it_changes_nothing_is_not_refused(name: str, value: Any) -> None:
    config(**{name: value}).done()


@pytest.mark.parametrize("value", [-7, 1.5, "8", True, [8], {"a": 8}, math.nan, 10**12])
def test_a_size_that_nobody_needs_must_still_be_one(value: Any) -> None:
    keys = config(n_group=value)
    keys.ignore("n_group")
    with pytest.raises(InputError, match=r"n_group is "):
        keys.done()
    for harmless in (None, -1, 0, 8):
        keys = config(n_group=harmless)
        keys.ignore("n_group")
        keys.done()


@pytest.mark.parametrize(
    ("slip", "key"),
    [
        ("num_key_value_head", "num_key_value_heads"),
        ("tie_word_embedding", "tie_word_embeddings"),
        ("sliding_windows", "sliding_window"),
        ("head_dims", "head_dim"),
        ("rope_paramters", "rope_parameters"),
    ],
)
def test_a_misspelt_key_is_refused_with_the_right_one(slip: str, key: str) -> None:
    for value in (8, False, None, 0):
        keys = config(**{slip: value})
        keys.has(key)
        with pytest.raises(InputError, match=f"{slip} is no key of a config.json; did you mean {key}"):
            keys.done()


def test_a_key_like_one_that_is_there_is_not_misspelt() -> None:
    keys = config(q_group_size=4, group_size=8)
    assert keys.size("group_size") == 8
    keys.misspelt()


def test_keys_of_parts_may_be_misspelt() -> None:
    keys = config(outer={"inner": {"partial_rotary_facto": 0.5}})
    outer = keys.part("outer")
    assert outer is not None
    inner = outer.part("inner")
    assert inner is not None
    assert not inner.has("partial_rotary_factor")
    with pytest.raises(
        InputError, match=r"outer: inner: partial_rotary_facto is no key of a config.json; did you mean"
    ):
        keys.done()


def test_a_part_is_the_same_whoever_asks_for_it() -> None:
    keys = config(rope={"factor": 2.0})
    assert keys.part("rope") is keys.part("rope")


def test_objects_of_thousands_of_unknown_keys_are_refused() -> None:
    with pytest.raises(InputError, match=r"holds 1,001 keys that no config\.json has; check the file"):
        config(**{f"a{number}": 0 for number in range(MOST_UNREAD + 1)}).done()


def test_messages_stay_short_whatever_a_key_is_called() -> None:
    with pytest.raises(UnsupportedModelError) as refused:
        config(**{"num_" * 50_000: 8}).done()
    assert len(str(refused.value)) < 300


# -- names and values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["num_experts", "n_group", "hidden_size", "head_dim", "q_lora_rank", "num_layers"])
def test_names_of_sizes_are_known(name: str) -> None:
    assert says_a_size(name)
    assert may_change_a_size(name)
    assert not is_neutral(name, 1)
    assert is_neutral(name, 0)


@pytest.mark.parametrize("name", ["rms_norm_eps", "rope_theta", "eos_token_id", "image_token_index", *sorted(HARMLESS)])
def test_harmless_names_are_no_sizes(name: str) -> None:
    assert is_harmless(name)
    assert not says_a_size(name)


def test_a_factor_of_one_changes_nothing_and_true_is_no_number() -> None:
    assert is_neutral("mlp_multiplier", 1)
    assert is_neutral("mlp_multiplier", 1.0)
    assert not is_neutral("mlp_multiplier", True)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("silu", "'silu'"),
        (None, "None"),
        ([1, 2], "[1, 2]"),
        ([[1]], "a list of 1"),
        ([0] * 9, "a list of 9"),
        ({"a": 1}, "{'a': 1}"),
        ({"a": [1]}, "an object of 1"),
        pytest.param(10**5000, "a number of many digits", id="long"),
        ("x" * 100, f"'{'x' * 39}"),
    ],
)
def test_values_are_shown_shortly(value: Any, said: str) -> None:
    assert shown(value) == said


def test_run_lengths() -> None:
    assert run_lengths([("a", "b"), ("a", "b"), ("", "b"), ("a", "b")]) == [["a", "b", 2], ["", "b", 1], ["a", "b", 1]]
    assert run_lengths([]) == []
