"""The mesh: axes whose cuts multiply to the shards, rings where the slice has them, and a well-formed picture."""

import math
from xml.etree import ElementTree

import pytest

from slicewise.planner.question import ask
from slicewise.report.explorer.mesh import mesh

SLICES = ["v5e:1x1", "v5e:2x4", "v5e:4x4", "v5e:16x16", "v5p:2x2x1", "v5p:4x4x4", "v5p:8x8x16", "v6e:2x2"]


def of(slice_: str, model: str = "llama-3-70b", **words: object) -> dict:
    return mesh(ask(model, {"slice": slice_, **words}).deployment())


@pytest.mark.parametrize("name", SLICES)
def test_cuts_multiply_to_the_shards(name: str) -> None:
    found = of(name)
    assert math.prod(axis["head_ways"] for axis in found["axes"]) == found["head_shards"]
    assert math.prod(axis["batch_ways"] for axis in found["axes"]) == found["batch_shards"]
    assert all(axis["head_ways"] * axis["batch_ways"] == axis["length"] for axis in found["axes"])
    assert math.prod(found["shape"]) == found["n_chips"]


def test_rings_are_those_of_the_slice_or_of_the_convention() -> None:
    assert [axis["wraps"] for axis in of("v5e:8x16")["axes"]] == [False, True]
    assert [axis["wraps"] for axis in of("v5e:8x16", ici="ring")["axes"]] == [True, True]
    assert all(axis["wraps"] for axis in of("v5p:4x4x4")["axes"])


def test_ranks_are_named() -> None:
    found = of("v5p:2x2x2", "mixtral-8x7b", tp=4, dp=2)
    assert math.prod(axis["head_ways"] for axis in found["axes"]) == 4
    assert any("tensor parallel" in axis["shards"] for axis in found["axes"])
    assert "tp 4" in found["sentence"]


@pytest.mark.parametrize("name", [*SLICES, "h100:1", "h100:8", "h100:64"])
def test_picture_is_well_formed_and_shows_every_chip(name: str) -> None:
    found = of(name)
    tree = ElementTree.fromstring(found["svg"])
    drawn = sum(element.get("class", "").startswith("mesh-chip") for element in tree.iter())
    assert drawn == min(found["n_chips"], 512)
    loops = sum(element.get("class") == "mesh-loop" for element in tree.iter())
    assert (loops > 0) == any(axis["wraps"] for axis in found["axes"])
    assert len(found["svg"]) < 200_000
