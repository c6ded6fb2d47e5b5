"""What-ifs: each changes one thing, and none breaks a limit."""

from typing import Any

import pytest

import slicewise


def changes(model: str = "llama-3-70b", **flags: Any) -> dict[str, Any]:
    return {what_if.change: what_if for what_if in slicewise.plan(model, **flags).what_ifs}


def test_each_changes_one_thing_of_the_plan() -> None:
    plan = slicewise.plan("llama-3-70b", slice="v5e:4x4", isl=8192, osl=512)
    found = {what_if.change: what_if.option for what_if in plan.what_ifs}
    assert list(found) == [
        "int8 weights",
        "int4 weights",
        "int8 cache",
        "int8 weights and int8 cache",
        "twice the chips (v5e:4x8)",
        "half the context (4,608 tokens)",
    ]
    places = {
        change: (option.step.slice, option.step.weight_dtype, option.step.kv_dtype, option.step.capacity_context_tokens)
        for change, option in found.items()
        if option
    }
    assert list(places.values()) == [
        ("v5e:4x4", "int8", "bf16", 8704),
        ("v5e:4x4", "int4", "bf16", 8704),
        ("v5e:4x4", "bf16", "int8", 8704),
        ("v5e:4x4", "int8", "int8", 8704),
        ("v5e:4x8", "bf16", "bf16", 8704),
        ("v5e:4x4", "bf16", "bf16", 4608),
    ]


def test_half_of_a_prompt_halves_both_contexts() -> None:
    half = changes(slice="v5e:4x4", isl=8192, osl=512)["half the context (4,608 tokens)"].option.step
    assert (half.context_tokens, half.capacity_context_tokens) == (4096 + 256, 4096 + 512)
    book = changes(slice="v5e:4x4", isl=8192, osl=512, book=True)["half the context (4,096 tokens)"].option.step
    assert (book.context_tokens, book.capacity_context_tokens) == (4096, 4096)


def test_where_nothing_fits_the_smallest_slice_that_would_comes_first() -> None:
    plan = slicewise.plan("llama-3-70b", slice="v5e:2x2")
    assert not plan.fits
    first = plan.what_ifs[0]
    assert first.change == "16 chips (v5e:4x4)"
    assert first.option
    assert first.option.step.fits


def test_what_is_still_refused_says_why() -> None:
    found = changes(slice="v5e:2x2", tpot="1ms")
    refused = [what_if for what_if in found.values() if what_if.option is None]
    assert refused
    assert all(what_if.reason and "\n" not in what_if.reason for what_if in refused)
    assert all(what_if.to_dict()["option"] is None for what_if in refused)


@pytest.mark.parametrize(("flags", "change"), [({"isl": 1}, "half"), ({"slice": "v5e:16x16"}, "twice")])
def test_what_cannot_change_is_not_offered(flags: dict[str, Any], change: str) -> None:
    assert not any(name.startswith(change) for name in changes("llama-3-8b", **flags))


def test_half_of_a_context_that_was_set_outright() -> None:
    found = changes("llama-3-8b", slice="v5e:2x4", context=8192)
    assert found["half the context (4,096 tokens)"].option.step.context_tokens == 4096
