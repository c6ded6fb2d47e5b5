"""Derivations of the closed form give the numbers of the closed form."""

from typing import Any

import pytest

import slicewise
from helpers.plans import BOOK, LOAD, MODEL, PLACE, simulated
from slicewise.errors import InputError, UnknownNameError
from slicewise.traffic.steady import Steady

APART = {"prefill_servers": 3, "decode_servers": 2}
FLEETS: list[Any] = [
    pytest.param({"replicas": 2}, id="shared"),
    pytest.param(APART, id="split"),
    pytest.param({**APART, "prefill_slice": "v5e:4x8"}, id="split-over-two-slices"),
    pytest.param({"replicas": 2, "batch": 4, "view": "serial"}, id="serial"),
    pytest.param({**APART, **BOOK}, id="book"),
]


@pytest.mark.parametrize("words", FLEETS)
@pytest.mark.parametrize("rate", [1, 40])
def test_a_derivation_ends_in_the_number(words: dict[str, Any], rate: float) -> None:
    found = simulated(rate=rate, **words)
    formula = found.steady
    assert formula is not None
    for name in ("ttft_s", "tpot_s", "servers", "prefill_servers"):
        value = getattr(formula, name)
        if value is not None:
            assert found.explain(name).value == pytest.approx(value), name
    assert found.explain().value == formula.tpot_s


def test_terms_of_a_step_are_explained_at_its_batch() -> None:
    found = simulated(rate=5)
    assert found.steady is not None
    assert found.steady.batch > 0.1
    full = slicewise.step(MODEL, **PLACE, isl=1000, osl=60, batch=1, view="expected")
    assert found.explain("prefill_s").value == found.steady.ttft_s
    assert found.explain("step_s").value == pytest.approx(full.step_expected_s, rel=0.05)


def test_what_is_counted_is_refused() -> None:
    found = simulated()
    for name in ("goodput_share", "output_tokens_per_s", "mean_concurrency", "itl_s"):
        with pytest.raises(InputError, match=f"{name} is counted in a run, and no formula gives it"):
            found.explain(name)


def test_what_is_put_together_is_refused_and_unknown_names_are_unknown() -> None:
    found = simulated()
    for name in ("load", "prefill_load", "capacity_requests_per_s"):
        assert name in Steady.__dataclass_fields__
        with pytest.raises(InputError, match=f"{name} is put together from several results"):
            found.explain(name)
    with pytest.raises(UnknownNameError, match="unknown number 'nonsense'"):
        found.explain("nonsense")


def test_without_a_closed_form_nothing_is_explained() -> None:
    with pytest.raises(InputError, match="weights do not fit"):
        simulated(slice="v5e:1x1").explain()
    with pytest.raises(InputError, match="the load has no rate"):
        simulated(requests=1).explain("ttft_s")


@pytest.mark.parametrize("servers", ["shared", "split"])
def test_a_size_explains_its_count_of_servers(servers: str) -> None:
    words = {**PLACE, **LOAD, "rate": 60, "osl": 200, "servers": servers, "prefill_slice": None}
    found = slicewise.size(MODEL, **words, ttft="p95:3s")
    assert found.steady is not None
    assert found.explain().value == found.explain("servers").value == found.steady.servers
    if servers == "split":
        assert found.explain("prefill_servers").value == found.steady.prefill_servers


def test_a_size_of_two_slices_explains_prefill_on_its_own() -> None:
    words = {**PLACE, **LOAD, "rate": 60, "servers": "split", "prefill_slice": "v5e:4x8"}
    found = slicewise.size(MODEL, **words, ttft="p95:3s")
    assert found.steady is not None
    assert found.explain("prefill_servers").value == found.steady.prefill_servers
    assert found.explain("ttft_s").value == pytest.approx(found.steady.ttft_s)


def test_a_size_that_found_nothing_explains_nothing() -> None:
    found = slicewise.size(MODEL, **PLACE, **LOAD, ttft="p95:1ms")
    with pytest.raises(InputError, match=r"servers has no value: .*TTFT p95"):
        found.explain()
