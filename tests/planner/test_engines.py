"""Rules of engines by version, and the blocks that they choose by themselves."""

import pytest

from slicewise.errors import InputError, UnknownNameError
from slicewise.planner.engines import ENGINES, NEWEST, Engine, block_tokens, engine_named


@pytest.mark.parametrize("name", ENGINES)
def test_names(name: str) -> None:
    assert engine_named(name) == Engine(name=name)
    assert engine_named(name).version == NEWEST
    assert str(engine_named(name)) == name


@pytest.mark.parametrize("text", ["vllm-0.19", "vllm 0.19.1", "vllm-v0.19.0rc1"])
def test_versions(text: str) -> None:
    assert engine_named(text) == Engine(name="vllm", version=(0, 19))
    assert str(engine_named(text)) == "vllm 0.19"


def test_what_is_no_engine_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean sglang"):
        engine_named("sglan")
    with pytest.raises(UnknownNameError, match="engine 'vllmx'"):
        engine_named("vllmx")
    with pytest.raises(InputError, match=r"'latest' is no version; write for example vllm-0\.19"):
        engine_named("vllm-latest")


def test_rules_change_with_the_version() -> None:
    old, new = engine_named("vllm-0.9"), engine_named("vllm")
    assert (old.tokens_by_concurrency, new.tokens_by_concurrency) == (False, True)
    assert (old.padding_tolerance, engine_named("vllm-0.15").padding_tolerance, new.padding_tolerance) == (1, 1.25, 1.5)
    assert (old.batches_in_flight, new.batches_in_flight) == (1, 2)
    assert (old.resident_states, new.resident_states) == (1, 2)


def test_flags_win_over_the_version() -> None:
    assert Engine(name="vllm", async_scheduling=False).batches_in_flight == 1
    assert Engine(name="vllm", version=(0, 19), async_scheduling=True).batches_in_flight == 2
    assert Engine(name="vllm", prefix_caching=False).resident_states == 1
    assert Engine(name="vllm", version=(0, 24), prefix_caching=True).resident_states == 2


def test_blocks_of_gpus() -> None:
    assert block_tokens(engine_named("vllm"), 8192, sparse=False) == 16
    assert block_tokens(engine_named("vllm"), 8192, sparse=True) == 64
    assert block_tokens(engine_named("sglang"), 8192, sparse=True) == 1


@pytest.mark.parametrize(
    ("length", "sequences", "tokens"),
    [
        (1024, 256, 64),  # maxtext's notebook on TPU7x: a shape of (53059, 64, 8, 2, 128)
        (4096, 256, 256),  # vllm-project/tpu-inference#145: 256 tokens
        (128, 256, 16),
        (8192, 256, 256),
        (16_384, 256, 32),
        (131_072, 256, 256),
        (131_072, 16, 16),
    ],
)
def test_pages_of_tpus(length: int, sequences: int, tokens: int) -> None:
    assert block_tokens(engine_named("tpu-inference"), length, sparse=False, max_num_seqs=sequences) == tokens
