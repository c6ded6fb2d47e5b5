"""Prefill of a prompt: question 0.10 of chapter 8, and what is unknown where it does not fit."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.prefill import PREFILL_TERMS, prefill_of

TIMES = (*PREFILL_TERMS, "prefill_roofline_s", "prefill_overlapped_s", "prefill_serial_s", "prefill_s", "bound")


@pytest.mark.parametrize(
    ("flags", "time_s"),
    [
        ({"book": True, "params": "70e9"}, 0.90964),
        ({"book": True}, 0.9168),
        # The head for the last token only, and causal attention: 0.8895 s and 0.0697 s.
        ({"ici": "none"}, 0.8895 + 0.06974),
    ],
)
def test_question_10_of_chapter_8(flags: dict[str, Any], time_s: float) -> None:
    found = slicewise.prefill("llama-3-70b", slice="v5e:4x4", weights="int8", kv="int8", isl=8192, **flags)
    assert found.prefill_s == pytest.approx(time_s, rel=1e-4)
    assert found.tokens_per_s_per_chip == pytest.approx(8192 / 16 / time_s, rel=1e-4)


@given(...)
def test_what_fits_is_timed_and_what_does_not_says_why(deployment: Deployment) -> None:
    found = prefill_of(deployment)
    json.dumps(found.to_dict(), allow_nan=False)
    prompt = deployment.workload.prompt_tokens
    free = float(deployment.value("free_bytes", batch=1, capacity_context_tokens=prompt))
    assert found.fits == (free >= -0.5) == (found.reason is None)
    assert all((getattr(found, name) is None) != found.fits for name in TIMES)
    if found.fits:
        terms = {name: getattr(found, name) for name in PREFILL_TERMS}
        if found.view == "roofline":
            del terms["prefill_ici_s"]
        assert terms[f"{found.bound}_s"] == max(terms.values())
        assert found.prefill_s == getattr(found, f"prefill_{found.view}_s")
    assert (found.usd_per_million_input_tokens is None) == (not found.fits or deployment.price is None)


@given(st.integers(1, 2**16), st.integers(1, 2**16), st.sampled_from(["v5e:2x4", "h100:8"]))
def test_a_longer_prompt_never_takes_less(short: int, more: int, slice_: str) -> None:
    times = [slicewise.prefill("llama-3-8b", slice=slice_, isl=n, batch=1).prefill_s for n in (short, short + more)]
    assert times == sorted(times)


def test_memory_is_that_of_the_prompt() -> None:
    longest = slicewise.memory("llama-3-70b", slice="v5e:4x4").max_context_tokens
    assert longest
    assert slicewise.prefill("llama-3-70b", slice="v5e:4x4", isl=longest).fits
    assert not slicewise.prefill("llama-3-70b", slice="v5e:4x4", isl=longest + 1).fits


@pytest.mark.parametrize("name", ["", "prefill_s", "prefill_flops", "tokens_per_s_per_chip", "prefill_ici_s"])
def test_numbers_are_explained(name: str) -> None:
    found = slicewise.prefill("llama-3-8b", slice="v5e:2x4")
    assert found.explain(name).value == pytest.approx(getattr(found, name or "prefill_s"))


@pytest.mark.parametrize("name", ["", "prefill_flops_s", "tokens_per_s_per_chip"])
def test_no_time_is_derived_for_what_does_not_fit(name: str) -> None:
    found = slicewise.prefill("llama-3-405b", slice="v5e:2x2")
    with pytest.raises(InputError, match="has no value for what does not fit"):
        found.explain(name)
    assert found.explain("prefill_flops").value == found.prefill_flops


def test_dollars_of_input_tokens_follow_the_price() -> None:
    found = slicewise.prefill("llama-3-8b", slice="v5e:2x4", price=3.6)
    expected = 8 * 3.6 / 3600 * (found.prefill_s or 0) / 8192 * 1e6
    assert found.usd_per_million_input_tokens == pytest.approx(expected)
