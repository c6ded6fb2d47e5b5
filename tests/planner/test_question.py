"""Questions: words become specs, and bad words are refused in one line that names the flag."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import slicewise
from slicewise.catalog.load import load_model
from slicewise.errors import InputError
from slicewise.planner.question import Flags, Question, ask, listed, prices_of
from slicewise.spec.workload import Workload

TEXT_FLAGS = tuple(name for name in Flags.__annotations__ if name != "book")
QUANTITIES = (
    "isl", "osl", "context", "batch", "tpot", "ttft", "rate", "params", "hbm", "memory_fraction", "mfu", "price",
    "network",
)  # fmt: skip
COMMANDS = ("plan", "step", "memory", "limits", "frontier", "prefill", "disaggregate")


def asked(**flags: Any) -> Question:
    return ask("llama-3-70b", flags)  # type: ignore[arg-type]


def one_line(error: InputError) -> bool:
    return len(str(error).splitlines()) == 1


# -- lengths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "lengths"),
    [
        ({}, (8192, 512, 8448, 8704, False)),
        ({"isl": 1000, "osl": "100"}, (1000, 100, 1050, 1100, False)),
        ({"isl": 1001, "osl": 1}, (1001, 1, 1001.5, 1002, False)),
        ({"context": 4096}, (4096, 512, 4096, 4096, True)),
        ({"context": "4,096", "isl": 100}, (100, 512, 4096, 4096, True)),
        ({"book": True}, (8192, 512, 8192, 8192, False)),
        ({"book": True, "isl": 2048, "osl": 64}, (2048, 64, 2048, 2048, False)),
        ({"book": True, "context": 2048}, (2048, 512, 2048, 2048, True)),
    ],
)
def test_memory_is_counted_at_the_end_and_bandwidth_at_the_mean(
    flags: dict[str, Any], lengths: tuple[Any, ...]
) -> None:
    prompt, output, context, longest, is_set = lengths
    assert asked(**flags).workload == Workload(
        prompt_tokens=prompt,
        output_tokens=output,
        context_tokens=context,
        capacity_context_tokens=longest,
        context_is_set=is_set,
    )


# -- the other words -------------------------------------------------------------------------------------------------


def test_defaults() -> None:
    question = asked()
    assert [slice_.chip.name for slice_ in question.slices] == ["v5e"] * 8
    assert not question.slice_is_given
    assert [str(precision) for precision in question.precisions] == ["bf16 weights, bf16 cache, bf16 FLOPs"]
    assert (question.objective, question.mfu, question.batch, question.rate) == ("cost", 0.4, None, None)
    assert question.limits.tpot_s is question.limits.ttft_s is None


def test_the_checkpoint_decides_the_dtypes() -> None:
    assert str(ask("llama-2-13b", {}).precisions[0]) == "fp16 weights, fp16 cache, fp16 FLOPs"
    wide = replace(load_model("llama-3-8b"), checkpoint_dtype="fp32")
    assert str(ask(wide, {}).precisions[0]) == "fp32 weights, bf16 cache, bf16 FLOPs"
    assert str(ask("llama-2-13b", {"weights": "INT8"}).precisions[0]) == "int8 weights, fp16 cache, fp16 FLOPs"


def test_words_may_be_one_or_several() -> None:
    question = asked(chip=["v5e", "v5litepod", "h100"], weights=["bf16", "int8", "int8"], kv="int8")
    assert {slice_.chip.name for slice_ in question.slices} == {"v5e", "h100"}
    assert [(p.weights, p.kv) for p in question.precisions] == [("bf16", "int8"), ("int8", "int8")]
    assert [slice_.name for slice_ in asked(slice=["v5e:4x2", "h100:8"]).slices] == ["v5e:2x4", "h100:8"]
    assert [listed(words) for words in (None, "a", ["a", "b"], 5, ("a",))] == [[], ["a"], ["a", "b"], [5], ["a"]]


def test_engines_names_of_dtypes_are_understood() -> None:
    found = asked(weights="fp8_e4m3", kv="auto", compute="bfloat16").precisions
    assert [str(precision) for precision in found] == ["fp8 weights, bf16 cache, bf16 FLOPs"]


def test_quantities_are_read_in_peoples_units() -> None:
    question = asked(
        tpot="15ms", ttft="2s", hbm="16GB", memory_fraction="90%", params="70B", network="400Gb/s", rate="10/s"
    )
    assert (question.limits.tpot_s, question.limits.ttft_s) == (0.015, 2.0)
    assert (question.conventions.hbm_bytes_per_chip, question.conventions.memory_fraction) == (16e9, 0.9)
    assert (question.params, question.handoff_bytes_per_s, question.rate) == (70e9, 5e10, 10.0)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (None, {"v5e": 1.2, "h100": 10.8}),
        ("2.5", {"v5e": 2.5, "h100": 2.5}),
        (["v5litepod=0.6"], {"v5e": 0.6, "h100": 10.8}),
        (["3", "h100=$4"], {"v5e": 3.0, "h100": 4.0}),
        (["h100=4", 3], {"v5e": 3.0, "h100": 3.0}),
    ],
)
def test_prices_are_given_for_all_or_for_one_chip(words: object, expected: dict[str, float]) -> None:
    found = prices_of(words, ["v5e", "h100"])
    assert {chip: found[chip].usd_per_chip_hour for chip in expected} == expected
    assert found["v5p"].usd_per_chip_hour == 4.2


@pytest.mark.parametrize(
    ("words", "said"),
    [("v5p=2", "v5p is not asked about"), (["v5e=1", "v5litepod=2"], "v5e is given twice"), ("v5e=", "--price")],
)
def test_prices_that_would_go_unused_are_refused(words: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        prices_of(words, ["v5e", "h100"])


def test_a_given_price_says_that_it_was_given() -> None:
    assert "given by --price" in prices_of("2.5", ["v5e"])["v5e"].provenance.printed


def test_the_rounded_count_of_the_book() -> None:
    step = slicewise.step("llama-3-70b", slice="v5e:2x4", weights="int8", kv="int8", book=True, params="70e9", isl=8192)
    assert (step.n_params, step.weight_bytes, step.hbm_bytes, step.activation_bytes) == (70e9, 70e9, 128e9, 0)
    assert (step.context_tokens, step.capacity_context_tokens, step.max_batch) == (8192, 8192, 43)
    assert step.deployment.value("prefill_flops") == 2 * 70e9 * 8192


def test_a_word_wins_over_the_book() -> None:
    question = asked(book=True, split="whole", memory_fraction=0.9, hbm="15GiB", ici="auto", context=100)
    counted = question.conventions
    assert (counted.split, counted.memory_fraction, counted.ici) == ("whole", 0.9, "auto")
    assert (counted.hbm_bytes_per_chip, counted.nominal_hbm) == (15 * 2**30, False)
    assert not counted.activations


@pytest.mark.parametrize("command", COMMANDS)
def test_a_word_that_is_no_flag_is_refused(command: str) -> None:
    with pytest.raises(InputError, match="unknown word 'bach': did you mean batch"):
        getattr(slicewise, command)("llama-3-8b", bach=3)


def test_a_slice_of_another_chip_is_refused() -> None:
    with pytest.raises(InputError, match="v5e:2x4 is of another chip"):
        asked(slice="v5e:2x4", chip="h100")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "frontier"])
def test_only_frontiers_take_several_contexts(command: str) -> None:
    with pytest.raises(InputError, match="this takes one"):
        getattr(slicewise, command)("llama-3-8b", context=[1024, 2048])


# -- bad words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "word", "said"),
    [
        ("slice", "v5e:3x3", "--slice"),
        ("chip", "v5x", "unknown chip 'v5x'"),
        ("weights", "int3", "--weights 'int3' is not a dtype known here; choose fp32, bf16"),
        ("kv", "", "--kv ''"),
        ("compute", "tf32", "--compute 'tf32'"),
        ("isl", "0", "--isl: 0 must be greater than 0"),
        ("osl", "1.5", "--osl: 1.5 must be a whole number"),
        ("context", "many", "--context: 'many' is not a quantity"),
        ("batch", "-3", "--batch: -3 must be greater than 0"),
        ("tpot", "15 parsecs", "--tpot: '15 parsecs' has no unit known here"),
        ("ttft", "0s", "--ttft: 0s must be greater than 0"),
        ("rate", "often", "--rate"),
        ("objective", "fame", "--objective 'fame' is not offered; choose cost, latency, throughput"),
        ("params", "70Q", "--params"),
        ("params", "70", "--params: 70 is fewer parameters than any model has"),
        ("hbm", "16GX", "--hbm"),
        ("memory_fraction", "1.1", "--memory-fraction: 1.1 must be at least 0.001 and at most 1"),
        ("memory_fraction", "0", "--memory-fraction"),
        ("mfu", "-0.4", "--mfu"),
        ("price", "free", "--price"),
        ("price", "v5x=1", "unknown chip 'v5x'"),
        ("network", "400 apples", "--network"),
        ("ici", "token-ring", "--ici 'token-ring' is not offered; choose auto, ring, none"),
        ("split", "even", "--split 'even' is not offered; choose whole, ideal"),
        ("kv_split", "none", "--kv-split 'none' is not offered; choose batch, copy"),
        ("view", "rosy", "--view 'rosy' is not offered; choose roofline, overlapped, serial"),
    ],
)
def test_bad_words_are_refused_by_their_flag(flag: str, word: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        asked(**{flag: word})
    assert said in str(refused.value)
    assert one_line(refused.value)


@settings(max_examples=400)
@given(st.sampled_from(TEXT_FLAGS), st.text() | st.text("0123456789.,eE+-xinfa%GBms/=:v5 \n", max_size=8))
@example("ici", "a\nb")
@example("view", "a\r\nb")
@example("slice", "v5e-²")
@example("hbm", "1e300GB")
@example("batch", "9" * 400)
@example("price", "=")
@example("price", "v5e=\n1")
@example("weights", "int8\n")
def test_any_word_is_understood_or_refused_in_one_line(flag: str, word: str) -> None:
    try:
        assert isinstance(asked(**{flag: word}), Question)
    except InputError as error:
        assert one_line(error)  # noqa: PT017 - both outcomes are right


EXTREMES = (
    "1e-300", "1e-30", "1e-12", "0.001", "1", "1e6", "1e12", "9007199254740993", "1e18", "1e19", "1e25", "1e100",
    "1e300", "1e308",
)  # fmt: skip


@pytest.mark.parametrize("flag", QUANTITIES)
@pytest.mark.parametrize("command", COMMANDS)
def test_absurd_quantities_are_answered_or_refused_in_one_line(command: str, flag: str) -> None:
    for word in EXTREMES:
        flags = {"slice": "v5e:4x4", "rate": 10, flag: word}
        try:
            found = getattr(slicewise, command)("llama-3-8b", **flags)
        except InputError as error:
            assert one_line(error), word  # noqa: PT017 - both outcomes are right
            continue
        json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("flag", TEXT_FLAGS)
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -1, 10**400, True, {"a": 1}, object()], ids=lambda v: type(v).__name__
)
def test_values_that_are_no_words_are_refused_too(flag: str, value: Any) -> None:
    with pytest.raises(InputError):
        asked(**{flag: value})
