"""A question asked in public: why a shared prefix of 1,900 tokens is never found, though the prefix cache is on."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from helpers.traffic import assert_same
from slicewise.traffic import engine, reference
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import POLICIES, Policy, Server
from slicewise.traffic.times import Times

CASE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "44-prefix-cache-block-granularity.yaml"
PROMPT = 6000
"""Longer than what is shared, so that a rest is left to compute."""


def prefix(tokens: list[int], block: int) -> tuple[int, ...]:
    """A hash for each block, of all tokens up to its end; the last may be part of a block."""
    return tuple(hash(tuple(tokens[: start + block])) for start in range(0, len(tokens), block))


def cached_tokens(shared: int, block: int, kind: str, prompt: int = PROMPT) -> int:
    """What the second of two prompts finds that begin with the same tokens; both engines say the same."""
    first = list(range(prompt))
    second = first[:shared] + [-token for token in first[shared:]]
    requests = Requests(
        arrival_s=np.array([0.0, 100.0]),
        prompt_tokens=np.full(2, prompt),
        output_tokens=np.full(2, 8),
        prefixes=(prefix(first, block), prefix(second, block)),
        prefix_block_tokens=block,
    )
    token_s = 1e-4
    times = Times(
        knots=np.array([0.0, 1e4]), steps_s=np.full((9, 2), 0.01), prefills_s=0.05 + token_s * np.arange(prompt + 9.0)
    )
    policy = Policy(kind=kind, max_num_seqs=8, block_tokens=block, caches_prefixes=True)
    server = Server(times=times, n_blocks=60_000 // block, policy=policy)
    outcome = engine.simulate(requests, server)
    assert_same(outcome, reference.simulate(requests, server))
    first_found, found = outcome.cached_tokens.tolist()
    assert first_found == 0
    # What is found need not be computed.
    ttft_s = outcome.first_token_s - requests.arrival_s
    assert ttft_s[0] - ttft_s[1] == pytest.approx(token_s * found, abs=1e-9)
    return int(found)


@pytest.mark.parametrize("kind", POLICIES)
def test_44_prefix_cache_block_granularity(kind: str) -> None:
    if not CASE.is_file():
        pytest.skip("../shared/cases is not beside this checkout")
    case = yaml.safe_load(CASE.read_text(encoding="utf-8"))
    given, (right,) = case["inputs"], case["right_value"]
    assert (right["name"], right["tolerance"]) == ("cached_tokens", "exact")
    found = [cached_tokens(shared, given["block_tokens"], kind) for shared in given["shared_prefix"]]
    assert found == right["value"]
    assert not {str(tokens) for tokens in found} & set(case["wrong_answers_seen"])


@pytest.mark.parametrize("block", [16, 512, 2096])
@pytest.mark.parametrize("shared", [0, 15, 16, 17, 1900, 2095, 2096, 2097, 4191, 4192, 4500])
def test_a_shared_prefix_is_floored_to_whole_blocks(shared: int, block: int) -> None:
    assert cached_tokens(shared, block, POLICIES[0]) == shared // block * block


@pytest.mark.parametrize("block", [16, 2096])
def test_of_a_prompt_that_is_wholly_cached_the_last_block_is_computed(block: int) -> None:
    """An engine needs a token to go on from."""
    assert cached_tokens(4192, block, POLICIES[0], prompt=4192) == 4192 - block
