"""What an engine will log of a deployment: its pool between the ends of the reserve, or as it was logged."""

import json
from typing import Any

import pytest
from hypothesis import assume, given

import slicewise
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.engine_memory import EngineMemory, Started, engine_memory, started
from slicewise.units import GIB


def logged(model: str, slice_: str, **words: Any) -> EngineMemory:
    found = slicewise.memory(model, slice=slice_, **{"engine": "vllm", "context": 4096, **words}).engine
    assert found is not None
    return found


# -- the pool --------------------------------------------------------------------------------------------------------


def test_the_pool_is_what_weights_tables_and_the_middle_of_the_reserve_leave() -> None:
    found = slicewise.memory("llama-3-8b", slice="h100:1", engine="vllm", context=4096)
    assert found.engine is not None
    assert found.engine.reserve is not None
    granted = found.ledger.deployment.hbm_bytes_per_chip * 0.95
    # 14.9888 GiB of weights with the rotary table of 131,072 positions, as vLLM logs them.
    weights = 14.9888 * GIB
    assert found.engine.log.weight_bytes_per_chip == pytest.approx(weights, rel=1e-5)
    assert found.engine.log.kv_bytes_per_chip == pytest.approx(granted - 4 * GIB - weights, rel=1e-5)
    assert found.engine.least is not None
    assert found.engine.most is not None
    ends = [found.engine.least.kv_bytes_per_chip, found.engine.most.kv_bytes_per_chip]
    assert ends == pytest.approx([granted - 6 * GIB - weights, granted - 2 * GIB - weights], rel=1e-5)


@given(...)
def test_the_pool_lies_between_those_of_the_least_and_the_most_that_is_kept(deployment: Deployment) -> None:
    assume(deployment.engine is not None)
    try:
        found = engine_memory(deployment, Started(), reserve_is_given=False)
    except InputError as error:
        assert "no layer keeps tokens" in str(error)  # noqa: PT017 - states alone have slots, not tokens
        return
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.implied is None
    assert found.reserve is not None
    if found.least is None or found.most is None:
        assert found.reserve.low_bytes == found.reserve.high_bytes
        return
    assert found.least.kv_bytes_per_chip <= found.most.kv_bytes_per_chip
    assert (found.least.tokens or 0) <= (found.most.tokens or 0)
    given_ = engine_memory(deployment, Started(), reserve_is_given=True)
    assert (given_.least, given_.most, given_.reserve) == (None, None, None)
    assert given_.log == found.log


@pytest.mark.parametrize(("engine", "slice_"), [("sglang", "h100:8"), ("tpu-inference", "v6e:2x4")])
def test_engines_that_keep_nothing_of_their_fraction_have_one_pool(engine: str, slice_: str) -> None:
    found = logged("llama-3-70b", slice_, engine=engine)
    assert (found.least, found.most) == (None, None)
    assert found.reserve is not None
    assert found.reserve.typical_bytes == 0


def test_a_given_reserve_is_taken_as_it_is() -> None:
    found, less = (logged("llama-3-70b", "h100:8", reserve=f"{gib}GiB") for gib in (2, 5))
    assert found.least is found.most is found.reserve is None
    assert found.log.kv_bytes_per_chip - less.log.kv_bytes_per_chip == pytest.approx(3 * GIB)


def test_the_poorest_stage_decides() -> None:
    # Two stages of 40 layers: the first has the embedding, the last the head and the last norm of 8,192 channels.
    found = logged("llama-3-70b", "h100:2", pp=2, weights="int8", reserve="0GiB")
    deployment = slicewise.step("llama-3-70b", slice="h100:2", pp=2, weights="int8", engine="vllm").deployment
    stages = [part.held_bytes + deployment.table_bytes for part in deployment.holdings]
    assert found.log.weight_bytes_per_chip == max(stages)
    assert max(stages) - min(stages) == 8192
    granted = deployment.hbm_bytes_per_chip * 0.95
    assert found.log.kv_bytes_per_chip == pytest.approx(granted - max(stages))


# -- what was logged -------------------------------------------------------------------------------------------------


def test_a_logged_pool_is_taken_for_the_counted_one() -> None:
    # 40 GiB over 16 tokens of 70,272 B each: 38,199 blocks on every rank.
    found = logged("deepseek-v3", "h200:8", logged_kv_gib=40)
    assert (found.log.kv_bytes_per_chip, found.log.blocks) == (40 * GIB, 38_199)
    assert (found.least, found.most) == (None, None)
    assert found.log.tokens == 38_199 * 16
    assert found.implied is not None
    assert found.implied.reserve_bytes_per_chip is not None
    deployment = slicewise.step("deepseek-v3", slice="h200:8", engine="vllm").deployment
    left = deployment.hbm_bytes_per_chip * 0.95 - 40 * GIB - (found.log.weight_bytes_per_chip or 0)
    assert found.implied.reserve_bytes_per_chip == pytest.approx(left)


def test_logged_tokens_imply_bytes_a_token_beside_a_logged_pool() -> None:
    found = logged("deepseek-v3", "h200:8", logged_kv_gib="40 GiB", logged_kv_tokens=611_184)
    assert found.implied is not None
    assert found.implied.bytes_per_token == pytest.approx(70_272, rel=1e-4)
    assert found.implied.readings[0].ratio == pytest.approx(1, rel=5e-3)


# -- how it is started -----------------------------------------------------------------------------------------------


def test_words_are_read_as_people_write_them() -> None:
    assert started({}) == Started()
    assert not started({"logged_kv_gib": None}).is_given
    read = started({"max_model_len": "4096", "block_size": 32, "logged_kv_gib": "11.5", "logged_kv_tokens": "1,000"})
    assert read.is_given
    assert (read.max_model_len, read.block_size, read.logged_kv_tokens) == (4096, 32, 1000)
    assert read.logged_kv_bytes == 11.5 * GIB == started({"logged_kv_gib": "11.5GiB"}).logged_kv_bytes


@pytest.mark.parametrize(
    ("word", "value", "flag"),
    [
        ("max_model_len", "0", "--max-model-len"),
        ("max_num_batched_tokens", "1.5", "--max-num-batched-tokens"),
        ("block_size", "many", "--block-size"),
        ("logged_kv_gib", "-3", "--logged-kv-gib"),
        ("logged_kv_gib", "", "--logged-kv-gib"),
        ("logged_kv_gib", "40GB", "--logged-kv-gib"),
        ("logged_kv_tokens", "0", "--logged-kv-tokens"),
    ],
)
def test_bad_words_are_refused_by_their_flag(word: str, value: str, flag: str) -> None:
    with pytest.raises(InputError) as refused:
        slicewise.memory("llama-3-8b", slice="h100:1", engine="vllm", **{word: value})
    assert str(refused.value).startswith(flag)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "word", ["max_model_len", "max_num_batched_tokens", "block_size", "logged_kv_gib", "logged_kv_tokens"]
)
def test_words_of_an_engine_need_one(word: str) -> None:
    with pytest.raises(InputError, match="give --engine vllm too"):
        slicewise.memory("llama-3-8b", slice="h100:1", **{word: 64})


def test_an_engine_is_needed_to_say_what_it_logs() -> None:
    deployment = slicewise.step("llama-3-8b", slice="h100:1").deployment
    with pytest.raises(InputError, match="give --engine vllm, sglang or tpu-inference"):
        engine_memory(deployment, Started(), reserve_is_given=False)
    assert slicewise.memory("llama-3-8b", slice="h100:1").engine is None


def test_the_longest_request_is_the_context_held_unless_it_is_given() -> None:
    assert logged("llama-3-8b", "h100:1").log.max_model_len == 4096
    assert logged("llama-3-8b", "h100:1", context=None, isl=8192, osl=511).log.max_model_len == 8703
    assert logged("llama-3-8b", "h100:1", max_model_len=131_072).log.max_model_len == 131_072


def test_a_longer_batch_keeps_more_of_a_window() -> None:
    few, many = (logged("gemma-3-12b", "h100:1", logged_kv_gib=20, max_num_batched_tokens=n) for n in (1024, 8192))
    assert few.log.max_concurrency is not None
    assert many.log.max_concurrency is not None
    assert few.log.max_concurrency > many.log.max_concurrency
    assert logged("gemma-3-12b", "h100:1", logged_kv_gib=20).log == many.log


@pytest.mark.parametrize(("size", "tokens"), [(16, 16), (64, 64), (None, 16)])
def test_a_block_has_the_tokens_that_are_set(size: int | None, tokens: int) -> None:
    assert logged("llama-3-8b", "h100:1", block_size=size).log.block_tokens == tokens
