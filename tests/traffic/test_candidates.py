"""The fleets that `size` tries, and those that it leaves out with a reason."""

from typing import Any

import pytest

from helpers.plans import LOAD, MODEL, PLACE
from helpers.traffic import made_requests
from slicewise.errors import InputError
from slicewise.planner.question import ask, chosen_by
from slicewise.traffic.candidates import WORTH, LeftOut, designs_of, kinds_of, name_of, policies_of
from slicewise.traffic.design import Design
from slicewise.traffic.limits import parse_limit
from slicewise.traffic.requests import Requests
from slicewise.traffic.run import steady_of
from slicewise.traffic.server import CHUNKED, PREFILL_FIRST, STATIC
from slicewise.traffic.words import requests_of

REQUESTS = requests_of(LOAD, 2.0, 0)


def tried(
    words: dict[str, Any] | None = None, limits: tuple[str, ...] = (), requests: Requests = REQUESTS, **flags: Any
) -> tuple[dict[str, Design], tuple[LeftOut, ...]]:
    question = ask(MODEL, chosen_by({**PLACE, **flags}))  # type: ignore[arg-type]  # words of tests
    asked = [parse_limit(text, f"--{name}") for name, text in (each.split("=") for each in limits)]
    return designs_of(question, words or {}, requests, asked)


def test_both_kinds_and_two_policies_are_tried() -> None:
    found, left = tried()
    assert list(found) == [
        "v5e:4x4 int8/int8, prefill-first, batch 256", "v5e:4x4 int8/int8, chunked, batch 256",
        "v5e:4x4 int8/int8, split, batch 256",
    ]  # fmt: skip
    assert [name_of(design) for design in found.values()] == list(found)
    assert left == ()


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ({"servers": "shared"}, [PREFILL_FIRST, CHUNKED]),
        ({"servers": "split"}, ["split"]),
        ({"servers": "shared", "policy": STATIC}, [STATIC]),
        ({"servers": "shared", "policy": [STATIC, CHUNKED]}, [STATIC, CHUNKED]),
        ({"servers": "shared", "policy": [CHUNKED, CHUNKED]}, [CHUNKED]),
        ({"policy": [CHUNKED]}, [CHUNKED, "split"]),
    ],
)
def test_words_choose_kinds(words: dict[str, Any], kinds: list[str]) -> None:
    found, _ = tried(words)
    assert [name.split(", ")[1] for name in found] == kinds


def test_only_chunked_servers_have_a_most_of_tokens() -> None:
    found, _ = tried({"max_num_batched_tokens": 512})
    rules = {
        design.policy.kind: design.policy.max_num_batched_tokens for design in found.values() if not design.prefill
    }
    assert rules == {PREFILL_FIRST: 8192, CHUNKED: 512}


def test_batches_are_as_many_as_keep_a_limit_on_gaps() -> None:
    deployment = next(iter(tried()[0].values())).deployment
    for limits in (("tpot=9ms",), ("tpot=1s", "itl=9ms")):
        found, _ = tried(limits=limits)
        (batch,) = {design.policy.max_num_seqs for design in found.values()}
        assert 1 < batch < 256
        means = {"context_tokens": 1030}
        assert deployment.value("step_s", batch=batch, **means) <= 0.009
        # The planner's batches are whole rounds of its shards of the batch: 2 here.
        assert deployment.value("step_s", batch=batch + 2, **means) > 0.009
    assert {design.policy.max_num_seqs for design in tried(limits=("ttft=1ms", "e2e=1s"))[0].values()} == {256}
    assert {design.policy.max_num_seqs for design in tried({"batch": 5}, ("tpot=9ms",))[0].values()} == {5}


def test_a_prefill_slice_goes_before_decode() -> None:
    found, _ = tried({"servers": "split", "prefill_slice": "v5e:4x8"})
    (design,) = found.values()
    assert design.prefill is not None
    assert (design.prefill.slice.name, design.deployment.slice.name) == ("v5e:4x8", "v5e:4x4")
    assert design.prefill.precision == design.deployment.precision
    assert next(iter(found)).startswith("v5e:4x8 before v5e:4x4 int8/int8, split")


def test_a_prefill_slice_that_holds_no_weights_is_left_out() -> None:
    found, left = tried({"prefill_slice": "v5e:1x1"})
    assert [name.split(", ")[1] for name in found] == [PREFILL_FIRST, CHUNKED]
    (out,) = left
    assert out.why.startswith("prefill and decode apart: ")
    assert "weights do not fit" in out.why


def test_a_slice_that_does_not_fit_is_left_out_with_its_line() -> None:
    found, left = tried(slice=["v5e:1x1", "v5e:4x4"])
    assert {design.deployment.slice.name for design in found.values()} == {"v5e:4x4"}
    assert [(each.slice, "weights do not fit" in each.why) for each in left] == [("v5e:1x1", True)]


def test_a_slice_that_holds_no_mean_request_is_left_out() -> None:
    long = made_requests([(0.0, 10**7, 5), (1.0, 10**7, 5)])
    found, left = tried(requests=long, slice=None, chip="v5e")
    assert not found
    assert all("weights" in each.why or "10,000,005 tokens" in each.why for each in left)
    uneven = made_requests([(0.0, 10**7, 5), (1.0, 10, 5)])
    found, left = tried(requests=uneven, slice=None, chip="v5e")
    assert not found
    assert {each.why for each in left if "weights" not in each.why} == {"it holds no request of mean length"}
    # A slice that is named is run all the same, and the run says how many of them are dropped.
    assert len(tried(requests=uneven)[0]) == 3


def test_slices_far_dearer_than_others_are_left_out_unless_named() -> None:
    found, left = tried(slice=None, chip="v5e")
    asked = {design.deployment.slice.name: design for design in found.values() if design.prefill is None}
    costs = {}
    for name, design in asked.items():
        formula = steady_of(design, REQUESTS, 1, 0)
        assert formula is not None
        costs[name] = max(formula.servers, formula.load) * design.deployment.slice.n_chips
    assert max(costs.values()) <= WORTH * min(costs.values())
    dear = [each for each in left if "times the cheapest slice" in each.why]
    assert dear
    named, _ = tried(slice=dear[0].slice)
    assert {design.deployment.slice.name for design in named.values()} == {dear[0].slice}


def test_what_comes_at_once_is_sized_too() -> None:
    burst = made_requests([(0.0, 1000, 60)] * 20)
    assert len(tried(requests=burst)[0]) == 3
    found, left = tried(requests=burst, slice=None, chip="v5e")
    assert found
    assert any("times the cheapest slice" in each.why for each in left)


def test_a_layout_of_several_groups_is_left_out_or_refused_where_it_was_named() -> None:
    _, left = tried(slice=None, chip="v5e", tp=8)
    assert any("give --tp 16" in each.why for each in left)
    with pytest.raises(InputError, match="give --tp 16"):
        tried(tp=8)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"servers": "fun"}, "--servers 'fun' is not offered; choose shared, split, both"),
        ({"servers": ""}, "--servers '' is not offered"),
        ({"servers": "shared", "prefill_slice": "v5e:4x4"}, "leave it out, or give --servers split"),
        ({"policy": "fun"}, "--policy 'fun' is not offered"),
        ({"policy": ["fun"]}, "--policy 'fun' is not offered"),
        ({"servers": "split", "policy": CHUNKED}, "--policy: servers of one phase"),
        ({"policy": STATIC, "max_num_batched_tokens": 512}, "--max-num-batched-tokens: no prompt is cut here"),
        ({"servers": "split", "max_num_batched_tokens": 512}, "--max-num-batched-tokens: no prompt is cut here"),
        ({"max_num_batched_tokens": 5}, "5 is fewer than a token for each of 256"),
        ({"route": "fun"}, "--route 'fun'"),
        ({"prefix_cache": True}, "--prefix-cache: no hashes"),
    ],
)
def test_words_that_are_off_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        tried(words)
    assert said in str(error.value)


def test_a_bad_policy_is_refused_though_nothing_fits() -> None:
    with pytest.raises(InputError, match="--policy 'fun'"):
        tried({"policy": "fun"}, slice="v5e:1x1")


def test_defaults() -> None:
    assert kinds_of({}) == ("shared", "split")
    assert policies_of({}) == (PREFILL_FIRST, CHUNKED)
    assert policies_of({"policy": []}) == (PREFILL_FIRST, CHUNKED)
