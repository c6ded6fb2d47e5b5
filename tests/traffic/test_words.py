"""Words of a load and of rules: what they describe, and what goes wrong in one line."""

from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from helpers.traffic import made_requests
from slicewise.errors import InputError
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import CHUNKED, PREFILL_FIRST, STATIC, Policy
from slicewise.traffic.words import (
    DEFAULT_ISL,
    DEFAULT_OSL,
    DEFAULT_REQUESTS,
    MOST_SEQUENCES,
    policy_of,
    requests_of,
    route_of,
    seed_of,
)

TRACE = made_requests([(0.0, 100, 10), (1.0, 200, 20), (4.0, 300, 30)])
HASHED = made_requests([(0.0, 600, 10), (1.0, 600, 20)], ((1,), (1,)), 512)
TEXT = "arrival_s,prompt_tokens,output_tokens\n0,100,10\n1,200,20\n4,300,30\n"


def same(one: Requests, other: Requests) -> bool:
    columns = ("arrival_s", "prompt_tokens", "output_tokens")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


def test_a_trace_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(TEXT, encoding="utf-8")
    for trace in (path, str(path), TRACE):
        assert same(requests_of({"trace": trace}, None, 0), TRACE)


def test_a_rate_stretches_a_trace_and_its_bursts_stay() -> None:
    found = requests_of({"trace": TRACE}, 5.0, 0)
    np.testing.assert_allclose(found.arrival_s, [0, 0.1, 0.4])
    assert np.array_equal(found.prompt_tokens, TRACE.prompt_tokens)


def test_requests_are_drawn_from_a_trace_as_pairs_at_its_own_rate() -> None:
    found = requests_of({"trace": TRACE, "requests": "4000"}, None, 3)
    assert len(found) == 4000
    assert set(zip(found.prompt_tokens.tolist(), found.output_tokens.tolist(), strict=True)) == {
        (100, 10), (200, 20), (300, 30),
    }  # fmt: skip
    # Two gaps in 4 s: a rate of 0.5, of which 4,000 gaps are 5 standard errors near.
    assert found.arrival_s[-1] / 4000 == pytest.approx(2, rel=5 / 4000**0.5)


def test_a_word_of_arrivals_draws_as_many_as_the_trace_has() -> None:
    for words in ({"burstiness": "2"}, {"on": "2s", "off": "1s"}):
        assert len(requests_of({"trace": TRACE, **words}, 7.0, 0)) == len(TRACE)


def test_what_a_trace_dropped_is_still_told_of_draws() -> None:
    trace = Requests(
        arrival_s=TRACE.arrival_s, prompt_tokens=TRACE.prompt_tokens, output_tokens=TRACE.output_tokens,
        dropped=MappingProxyType({"an empty prompt": 2}),
    )  # fmt: skip
    assert requests_of({"trace": trace, "requests": 5}, None, 0).dropped == {"an empty prompt": 2}


def test_without_a_trace_lengths_and_arrivals_are_made() -> None:
    found = requests_of({}, 3.0, 0)
    assert len(found) == DEFAULT_REQUESTS
    assert set(found.prompt_tokens.tolist()) == {DEFAULT_ISL}
    assert set(found.output_tokens.tolist()) == {DEFAULT_OSL}
    found = requests_of({"isl": "2,000", "osl": 50, "sigma": "1", "requests": 9000}, 3.0, 0)
    assert np.unique(found.prompt_tokens).size > 1000
    # The deviation of a lognormal of sigma 1 is 1.31 times its mean.
    assert found.prompt_tokens.mean() == pytest.approx(2000, rel=5 * 1.31 / 9000**0.5)
    assert found.output_tokens.mean() == pytest.approx(50, rel=5 * 1.31 / 9000**0.5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "Poisson arrivals"),
        ({"burstiness": "0.5"}, "Gamma arrivals of burstiness 0.5"),
        ({"on": "2s", "off": "500ms"}, "on for 2 s, then off for 0.5 s"),
        ({"sigma": "1.5"}, "lognormal with sigma 1.5"),
        ({"trace": TRACE, "requests": 4}, "4 requests drawn from"),
        ({"trace": TRACE}, "at 2 requests a second"),
    ],
)
def test_the_source_says_how_they_were_made(words: dict[str, Any], said: str) -> None:
    assert said in requests_of(words, 2.0, 0).source


@pytest.mark.parametrize("words", [{}, {"sigma": 1}, {"burstiness": 0.3}, {"on": "1s", "off": "1s"}, {"trace": TRACE}])
def test_a_seed_makes_them_again_and_another_makes_others(words: dict[str, Any]) -> None:
    words = {"requests": 50, **words}
    assert same(requests_of(words, 2.0, 4), requests_of(words, 2.0, 4))
    assert not same(requests_of(words, 2.0, 4), requests_of(words, 2.0, 5))


def test_on_and_off_come_in_turns() -> None:
    found = requests_of({"on": "2s", "off": "3s", "requests": 4000}, 10.0, 0)
    assert (found.arrival_s % 5 <= 2).all()
    assert 4000 / found.arrival_s[-1] == pytest.approx(10, rel=0.1)


def columns(**changed: Any) -> Requests:
    own = {name: getattr(TRACE, name) for name in ("arrival_s", "prompt_tokens", "output_tokens")}
    return Requests(**(own | changed))


@pytest.mark.parametrize(
    ("words", "rate", "said"),
    [
        ({}, None, "give --trace FILE, or --rate"),
        ({"trace": TRACE, "isl": 3}, None, "--isl: the trace has lengths"),
        ({"trace": TRACE, "sigma": 0}, None, "--sigma: the trace has lengths"),
        ({"on": "1s"}, 1.0, "give both, or neither"),
        ({"off": "1s"}, 1.0, "give both, or neither"),
        ({"on": "1s", "off": "1s", "burstiness": 1}, 1.0, "leave one of them out"),
        ({"on": "1s", "off": "0s"}, 1.0, "--off: 0s must be greater than 0"),
        ({"requests": 0}, 1.0, "--requests: 0 must be greater than 0"),
        ({"requests": 10**9}, 1.0, "--requests: 1,000,000,000 is more than the 100,000,000"),
        ({"trace": TRACE, "requests": 10**9}, 1.0, "--requests: 1,000,000,000 is more than"),
        ({"isl": 10**10}, 1.0, "--isl: 10,000,000,000 is more than the 1,000,000,000"),
        ({"osl": "1.5"}, 1.0, "--osl: 1.5 must be a whole number"),
        ({"sigma": 9}, 1.0, "sigma: 9"),
        ({"sigma": "-1"}, 1.0, "sigma: -1"),
        ({"burstiness": 0}, 1.0, "burstiness: 0"),
        ({}, 1e-9, "more than 1,000,000,000 s are not simulated; give a higher --rate"),
        ({}, 1e-25, "more than 1,000,000,000 s are not simulated"),
        ({"trace": TRACE}, 1e-12, "more than 1,000,000,000 s are not simulated"),
        ({"trace": 5}, None, "--trace: '5' is no file"),
        ({"trace": "none.csv"}, None, "none.csv: cannot be read"),
        ({"trace": made_requests([])}, None, "hold none; give at least one"),
        ({"trace": made_requests([(0.0, 5, 5)])}, 2.0, "give one with two times at least"),
        ({"trace": columns(arrival_s=np.array([0.0, 2.0, 1.0]))}, None, "sort them"),
        ({"trace": columns(arrival_s=np.array([-1.0, 2.0, 3.0]))}, None, "times from 0 on"),
        ({"trace": columns(arrival_s=np.array([0.0, np.nan, 3.0]))}, None, "times from 0 on"),
        ({"trace": columns(prompt_tokens=np.array([1, 0, 1]))}, None, "fewer than one token"),
        ({"trace": columns(output_tokens=np.array([1, -1, 1]))}, None, "fewer than one token"),
        ({"trace": columns(output_tokens=np.array([1, 1]))}, None, "an entry a request"),
        ({"trace": columns(prefixes=((1,),), prefix_block_tokens=4)}, None, "an entry a request"),
        ({"trace": columns(prefixes=((1,),) * 3)}, None, "give prefix_block_tokens"),
    ],
)
def test_a_load_that_is_none_is_refused(words: dict[str, Any], rate: float | None, said: str) -> None:
    with pytest.raises(InputError) as error:
        requests_of(words, rate, 0)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_seed_is_a_whole_number() -> None:
    assert (seed_of(None), seed_of("7"), seed_of(0), seed_of("1.0")) == (0, 7, 0, 1)
    for off in ("-1", "1.5", "", "x", "nan", "1e300", 2**53, str(10**30)):
        with pytest.raises(InputError, match="--seed: "):
            seed_of(off)


def test_rules_have_the_defaults_of_engines() -> None:
    assert policy_of({}, TRACE) == Policy()
    given = {"policy": CHUNKED, "batch": "8", "max_num_batched_tokens": "64", "block_size": "32"}
    assert policy_of(given, TRACE) == Policy(
        kind=CHUNKED, max_num_seqs=8, max_num_batched_tokens=64, block_tokens=32, caches_prefixes=False
    )
    assert policy_of({"prefix_cache": True}, HASHED).caches_prefixes
    assert (route_of({}), route_of({"route": "round-robin"})) == ("least-loaded", "round-robin")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"policy": "fun"}, "--policy 'fun' is not offered; choose prefill-first, chunked, static"),
        ({"policy": ""}, "--policy '' is not offered"),
        ({"policy": "decode"}, "--policy 'decode' is not offered"),
        ({"prefix_cache": True}, "--prefix-cache: no hashes"),
        ({"prefix_cache": "yes"}, "--prefix-cache: 'yes' is neither true nor false"),
        ({"route": "prefix-aware"}, "add --prefix-cache"),
        ({"max_num_batched_tokens": 512}, f"{PREFILL_FIRST} cuts no prompts; add --policy chunked"),
        ({"policy": STATIC, "max_num_batched_tokens": 512}, "static cuts no prompts"),
        ({"policy": CHUNKED, "max_num_batched_tokens": 255}, "255 is fewer than a token for each of 256 sequences"),
        ({"policy": CHUNKED, "max_num_batched_tokens": 5, "batch": 6}, "5 is fewer than a token for each of 6"),
        ({"batch": 0}, "--batch: 0 must be greater than 0"),
        ({"batch": MOST_SEQUENCES + 1}, "--batch: 65,537 is more than the 65,536"),
        ({"block_size": "0"}, "--block-size: 0 must be greater than 0"),
    ],
)
def test_rules_that_are_off_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        policy_of(words, TRACE)
    assert said in str(error.value)


def test_as_many_tokens_as_sequences_are_enough() -> None:
    assert policy_of({"policy": CHUNKED, "max_num_batched_tokens": 6, "batch": 6}, TRACE).max_num_batched_tokens == 6


def test_a_route_that_is_not_known_is_refused() -> None:
    with pytest.raises(
        InputError, match="--route 'fun' is not offered; choose round-robin, least-loaded, prefix-aware"
    ):
        route_of({"route": "fun"})
