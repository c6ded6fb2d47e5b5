"""Shared by the tests of `verify`: a cache of their own, and what a compiler may say."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask
from slicewise.planner.slices import default_deployment
from slicewise.spec.model import Model, dense_model
from slicewise.spec.provenance import chosen
from slicewise.verify.claims import Declared
from slicewise.verify.reading import Exchange, Operation, Reading, Refusal

REFUSAL = Refusal(needed_bytes=17e9, available_bytes=16e9, message="RESOURCE_EXHAUSTED: too large")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results are kept in a test, so that none touches the user's."""
    place = tmp_path / "cache"
    monkeypatch.setenv("SLICEWISE_CACHE", str(place))
    return place


@pytest.fixture
def reading_of() -> Callable[..., Reading]:
    """Makes readings, of a small program on two devices unless said."""

    def make(**words: Any) -> Reading:
        small: dict[str, Any] = {
            "program": "decode",
            "form": "loop",
            "compiler": "a compiler",
            "compile_s": 1.0,
            "line_bytes": {"weights": 1000.0, "KV cache": 500.0, "inputs": 8.0},
            "argument_bytes": 1508.0,
            "temporary_bytes": 20.0,
            "result_bytes": 12.0,
            "exchanges": (
                Exchange(kind="all-reduce", axis="y", scope="mlp", dtype="bf16", n_bytes=64.0, count=2),
                Exchange(kind="all-reduce", axis="y", scope="embed", dtype="bf16", n_bytes=32.0, count=1),
            ),
            "flops": {"attention": 100.0, "mlp": 200.0, "head": 50.0, "dot_product": 70.0},
            "cycles": {"mlp": 900.0, "dot_product": 300.0, "head": 100.0},
            "streamed": (
                Operation(scope="dot_product", what="mul", cycles=100.0, count=2, streamed_bytes=60.0),
                Operation(scope="head", what="dot", cycles=50.0, count=1, streamed_bytes=90.0),
            ),
            "fetched_bytes": {"mlp": 400.0, "head": 30.0},
            "largest": (Operation(scope="mlp", what="dot", cycles=450.0, count=2, streamed_bytes=0.0),),
        }
        return Reading(**{**small, **words})

    return make


@pytest.fixture
def refused(reading_of: Callable[..., Reading]) -> Reading:
    """What is read of a program that is too large."""
    return Reading(program="decode", form="loop", compiler="a compiler", compile_s=1.0, refusal=REFUSAL)


@pytest.fixture
def deployment_of() -> Callable[..., Deployment]:
    """Makes the deployment that `verify` takes to the compiler: timed at the context that its cache has room for."""

    def make(model: str | Model, **flags: Any) -> Deployment:
        found = default_deployment(ask(model, flags))
        workload = found.workload
        return found.with_(workload=replace(workload, context_tokens=workload.capacity_context_tokens))

    return make


@pytest.fixture
def declared_of() -> Callable[..., Declared]:
    """Makes declarations, without scales or padding unless said."""

    def make(**words: Any) -> Declared:
        plain: dict[str, Any] = {
            "line_bytes": {"weights": 0.0, "weight scales": 0.0, "KV cache": 0.0, "KV scales": 0.0, "inputs": 0.0},
            "vector_bytes": 0.0,
            "sequences": 32,
            "head_shards": 8,
            "batch_shards": 2,
            "block_queries": 1024,
        }
        return Declared(**{**plain, **words})

    return make


@pytest.fixture(scope="session")
def tiny() -> Model:
    """A model of the family that any compiler is done with in a second."""
    return dense_model(
        name="tiny",
        provenance=MappingProxyType({"": chosen("made up")}),
        n_layers=2,
        d_model=256,
        d_ff=512,
        n_heads=4,
        n_kv_heads=2,
        head_dim=64,
        vocab_size=1024,
    )
