"""Disaggregation: the ratio balances the phases, the hand-off is the prompt's cache, and the advice has a reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.errors import InputError

SLICES = st.sampled_from(["v5e:2x4", "v5e:4x4", "v5e:8x16", "v5p:2x2x1", "h100:8", "h100:16", "l40s:8"])


@given(
    SLICES,
    st.none() | SLICES,
    st.integers(1, 40),
    st.integers(1, 2**14),
    st.integers(1, 2**11),
    st.floats(0.1, 500),
    st.sampled_from(["overlapped", "expected"]),
)
def test_requests_are_conserved(
    slice_: str, other: str | None, batch: int, isl: int, osl: int, rate: float, view: str
) -> None:
    words: Any = {"isl": isl, "osl": osl, "view": view}
    found = slicewise.disaggregate("llama-3-8b", slice=slice_, prefill_slice=other, batch=batch, rate=rate, **words)
    json.dumps(found.to_dict(), allow_nan=False)
    if not found.fits:
        assert found.reason
        assert found.prefill_servers_per_decode_server is found.handoff_s is found.split is None
        return
    v = found.to_dict()
    ratio = v["prefill_servers_per_decode_server"]
    assert ratio == pytest.approx(batch * v["prefill_s"] / (v["step_s"] * osl))
    # What the prefill servers of one decode server give, it takes; and what it takes, it finishes.
    assert ratio * v["prefill_requests_per_s"] == pytest.approx(v["decode_requests_per_s"])
    assert v["sequences_finished_per_step"] / v["step_s"] == pytest.approx(v["decode_requests_per_s"])
    assert v["tokens_evicted_per_step"] == pytest.approx(v["sequences_finished_per_step"] * (isl + osl))
    # Sharing takes place on the decode slice, whatever slice prefills where the phases are split.
    shared_prefill_s = slicewise.prefill("llama-3-8b", slice=slice_, **words).prefill_s
    assert v["tpot_shared_s"] == pytest.approx(v["step_s"] + batch * shared_prefill_s / osl)
    assert v["handoff_bytes"] == isl * 131_072
    assert v["prefill_servers"] >= rate * v["prefill_s"] * (1 - 1e-9) > v["prefill_servers"] - 1 - 1e-9
    assert v["decode_servers"] >= rate / v["decode_requests_per_s"] * (1 - 1e-9) > v["decode_servers"] - 1 - 1e-9
    assert v["prefill_s"] == slicewise.prefill("llama-3-8b", slice=other or slice_, **words).prefill_s


def test_question_12_of_chapter_8() -> None:
    # bf16 on 4x4, P = 8192, G = 512. The book prints 3 from B = 32 with the step of B = 43; from one consistent B = 32
    # it is 3.302.
    found = slicewise.disaggregate(
        "llama-3-70b", slice="v5e:4x4", kv="int8", batch=32, isl=8192, osl=512, book=True, params="70e9", weights="bf16"
    )
    assert found.prefill_s == pytest.approx(0.90964, rel=1e-4)
    expected = 32 * 0.90964 / (512 * (140e9 + 32 * 8192 * 163_840) / (16 * 8.2e11))
    assert found.prefill_servers_per_decode_server == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("slice_", "rate"),
    [("v5e:4x4", 16 * 3.125e9), ("h100:8", 4.0e11), ("h100:16", 8.0e11), ("v5p:2x2x1", 4 * 6.25e9)],
)
def test_the_cache_leaves_through_the_chips_network(slice_: str, rate: float) -> None:
    found = slicewise.disaggregate("llama-3-8b", slice=slice_)
    assert found.handoff_bytes_per_s == rate
    assert found.handoff_s == pytest.approx((found.handoff_bytes or 0) / rate)


def test_the_slower_end_decides_the_hand_off() -> None:
    found = slicewise.disaggregate("llama-3-8b", slice="v5e:2x2", prefill_slice="v5e:4x4")
    assert found.handoff_bytes_per_s == 4 * 3.125e9
    other = slicewise.disaggregate("llama-3-8b", slice="v5e:4x4", prefill_slice="v5e:2x4")
    assert other.handoff_bytes_per_s == 8 * 3.125e9
    assert other.ttft_split_s == pytest.approx((other.prefill_s or 0) + (other.handoff_s or 0))
    assert other.explain("handoff_s").value == other.handoff_s


@pytest.mark.parametrize("tpot", ["12ms", "20ms", "50ms"])
def test_without_a_batch_the_most_tokens_within_the_limit_are_decoded(tpot: str) -> None:
    found = slicewise.disaggregate("llama-3-8b", slice="v5e:2x4", tpot=tpot)
    limit_s = float(tpot.removesuffix("ms")) / 1000
    deployment = found.decode.deployment
    rates = {
        batch: batch / deployment.value("step_s", batch=batch)
        for batch in range(1, found.decode.max_batch + 1)
        if deployment.value("step_s", batch=batch) <= limit_s
    }
    assert found.batch in rates
    assert rates[found.batch] == pytest.approx(max(rates.values()))


def test_a_given_network_wins_and_is_in_bits_or_bytes() -> None:
    bits, bytes_ = (slicewise.disaggregate("llama-3-8b", network=rate).handoff_s for rate in ("400Gb/s", "50GB/s"))
    assert bits == bytes_ == pytest.approx(8192 * 131_072 / 5e10)


def test_where_the_network_is_not_known_the_hand_off_is_not() -> None:
    found = slicewise.disaggregate("llama-3-8b", slice="l40s:8")
    assert found.handoff_bytes == 8192 * 131_072
    assert found.handoff_bytes_per_s is found.handoff_s is None
    assert "not known" in found.why


@pytest.mark.parametrize(
    ("flags", "split", "said"),
    [
        ({}, True, "yes: sharing the chips makes a token take"),
        ({"tpot": "10s"}, False, "no: sharing meets the limits"),
        ({"network": "1MB/s"}, False, "takes longer than prefill itself"),
        ({"ttft": "220ms"}, False, "no: prefill and hand-off take 252.2 ms, over the TTFT limit of 220 ms"),
        ({"ttft": "220ms", "view": None}, None, "neither way meets the limits"),
        ({"tpot": "10ms"}, True, "yes: sharing gives a token"),
        ({"ttft": "1ms"}, None, "neither way meets the limits"),
        ({"tpot": "1ms"}, None, "parameter loading alone takes"),
        ({"isl": 64, "osl": 4096}, False, "no: sharing the chips makes a token take only"),
    ],
)
def test_the_advice_has_a_reason(flags: dict[str, Any], split: bool | None, said: str) -> None:
    found = slicewise.disaggregate("llama-3-8b", slice="v5e:2x4", **{"view": "overlapped", **flags})
    assert found.split is split
    assert said in found.why
    assert found.fits is (split is not None)


@pytest.mark.parametrize("prefill_slice", [None, "v5e:4x4"])
@pytest.mark.parametrize(
    "name",
    [
        "",
        "prefill_servers_per_decode_server",
        "handoff_s",
        "handoff_bytes",
        "prefill_s",
        "step_s",
        "tpot_shared_s",
        "prefill_requests_per_s",
    ],
)
def test_numbers_are_explained(prefill_slice: str | None, name: str) -> None:
    found = slicewise.disaggregate("llama-3-8b", slice="v5e:2x4", prefill_slice=prefill_slice)
    value = getattr(found, name or "prefill_servers_per_decode_server")
    assert found.explain(name).value == pytest.approx(value)


@pytest.mark.parametrize("name", ["prefill_servers", "decode_servers", "handoff_s"])
def test_unknown_numbers_are_refused_in_one_line(name: str) -> None:
    found = slicewise.disaggregate("llama-3-8b", slice="l40s:8")
    assert getattr(found, name) is None
    with pytest.raises(InputError) as refused:
        found.explain(name)
    assert "\n" not in str(refused.value)


def test_what_does_not_fit_has_no_ratio() -> None:
    found = slicewise.disaggregate("llama-3-405b", slice="v5e:2x2")
    assert not found.fits
    assert "do not fit" in found.why
    with pytest.raises(InputError):
        found.explain()


def test_fewer_sequences_than_a_round_share_where_no_round_keeps_the_limits() -> None:
    # Splitting misses the TTFT limit. A round of 32 shares too slowly, so the most that keep TPOT are fewer.
    words = {"slice": "v5e:16x16", "weights": "int8", "ttft": "240ms", "view": "overlapped"}
    found = slicewise.disaggregate("llama-3-70b", tpot="12ms", **words)
    assert found.fits
    assert found.split is False
    brute = [
        batch
        for batch in range(1, 33)
        if slicewise.step("llama-3-70b", slice="v5e:16x16", weights="int8").deployment.value(
            "tpot_shared_s", batch=batch
        )
        <= 0.012
    ]
    assert found.batch == brute[-1] < 32
