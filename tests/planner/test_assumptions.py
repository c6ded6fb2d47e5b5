"""Assumptions: what a reader of the numbers should know is said, and nothing that does not apply."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.planner.assumptions import BOUND, SERIAL, assumptions
from slicewise.planner.deployment import Deployment


@given(deployment=..., batch=st.none() | st.integers(1, 1000))
def test_assumptions_are_sentences_each_said_once(deployment: Deployment, batch: int | None) -> None:
    found = assumptions(deployment, batch=batch)
    first = {"serial": SERIAL, "expected": deployment.expectation.basis}
    assert found[0] == first.get(deployment.conventions.view, BOUND)
    assert (deployment.expectation.basis in found) is not deployment.conventions.book
    assert len(set(found)) == len(found)
    assert all(sentence.endswith(".") and "\n" not in sentence for sentence in found)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({}, "Memory is counted at 8,704 tokens a sequence (prompt plus output), bandwidth at the mean of 8,448."),
        ({"context": 4096}, "Every sequence holds 4,096 tokens, for memory and bandwidth alike."),
        ({}, "Network: line of 4 and line of 4, 1 µs a hop."),
        ({"ici": "none"}, "No network is counted (--ici none)."),
        ({"ici": "ring"}, "Every mesh axis is taken as a full ring, without hops or AllToAlls (--ici ring)."),
        ({"slice": "h100:8"}, "Network: 8 GPUs in 1 domain of up to 8, 2 µs a collective."),
        ({}, "All weights are read in each step, the input embedding too."),
        ({"params": "70e9"}, "70,000,000,000 parameters are given, not the exact count."),
        ({"weights": "int8"}, "Quantised weights are counted without scales, embeddings and head at the same width."),
        ({"book": True}, "The book's conventions: see `docs/terms.md`."),
        ({"isl": 200_000}, "200,512 tokens exceed the 131,072 that llama-3-8b states."),
        ({"slice": "v5e:8x8"}, "32 query heads over 64 chips: an even split of their matrices is assumed"),
        (
            {"slice": "v5e:4x8", "batch": 6},
            "8 head shards; 4 ways beyond them split the batch; the fullest chip decides.",
        ),
        ({"slice": "v5e:4x8", "batch": 4}, "8 head shards; 4 ways beyond them split the batch."),
        ({"slice": "v5e:4x8", "batch": 6, "split": "ideal"}, "8 head shards; 4 ways beyond them split the batch."),
        ({"slice": "v5e:4x8", "batch": 6, "kv_split": "copy"}, "4 ways beyond them hold a copy each."),
        ({}, "Price: $1.2 per chip-hour, Google Cloud"),
    ],
)
def test_what_applies_is_said(flags: dict[str, Any], said: str) -> None:
    found = slicewise.step("llama-3-8b", **{"slice": "v5e:4x4", **flags}).assumptions
    assert any(said in sentence for sentence in found), found


@pytest.mark.parametrize(
    ("flags", "unsaid"),
    [
        ({"slice": "v5e:1x1", "weights": "int4"}, "Network"),
        ({"slice": "v6e:4x4"}, "Price"),
        ({"slice": "v5e:2x4"}, "head shards"),
        ({}, "exceed"),
        ({}, "Quantised"),
    ],
)
def test_what_does_not_apply_is_not_said(flags: dict[str, Any], unsaid: str) -> None:
    found = slicewise.step("llama-3-8b", **{"slice": "v5e:4x4", **flags}).assumptions
    assert not any(unsaid in sentence for sentence in found)
