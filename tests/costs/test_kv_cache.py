"""The KV cache: published bytes a token, and what uneven splits add."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.costs import kv_cache
from slicewise.spec.tensors import caches

GIB = 2**30


@pytest.mark.parametrize(
    ("model", "width", "n_bytes"),
    [
        ("llama-3-70b", 1.0, 163_840),  # chapter 8, question 0.1
        ("llama-3-70b", 0.5, 81_920),  # chapter 8, question 0.5
        ("llama-3-405b", 2.0, 516_096),  # https://github.com/huggingface/blog/issues/2345
        ("llama-2-13b", 2.0, 819_200),
        ("chapter-7-exercise", 1.0, 262_144),  # chapter 7, worked problem 1
    ],
)
def test_bytes_of_a_token(model: str, width: float, n_bytes: int) -> None:
    elements = kv_cache.kv_elements_per_token(caches(load_model(model)))
    assert kv_cache.kv_bytes_per_token(elements, width) == n_bytes


def test_a_sequence_of_128k_tokens_of_405b() -> None:
    # 63 GiB, not the 123 of a widely copied table: https://github.com/huggingface/blog/issues/2345
    assert kv_cache.kv_bytes_per_sequence(131_072, 516_096) == 63 * GIB


def test_a_sequence_of_8k_tokens_of_13b() -> None:
    # 6.7 GB: How to Scale Your Model, ch. 7.
    assert kv_cache.kv_bytes_per_sequence(8192, 819_200) == 6_710_886_400


def test_a_window_bounds_what_is_held_and_read() -> None:
    assert kv_cache.window_tokens(8192, 4096) == 4096
    assert kv_cache.kv_held_tokens(8192, 4096) == kv_cache.kv_read_tokens(8192, 4096) == 4096
    assert kv_cache.kv_held_tokens(2048, 4096) == kv_cache.kv_read_tokens(2048, 4096) == 2048
    assert kv_cache.kv_held_tokens(8192, math.inf) == 8192


BATCH, SHARDS = st.integers(1, 5000), st.integers(1, 256)


@given(BATCH, SHARDS)
def test_the_fullest_shard_decides_where_sequences_are_whole(batch: int, shards: int) -> None:
    fullest = max(len(range(shard, batch, shards)) for shard in range(shards))
    replication = kv_cache.kv_replication_whole(batch, shards)
    assert replication * batch == pytest.approx(fullest * shards, rel=1e-12)
    assert 1 <= replication < 1 + shards / batch


@given(BATCH, SHARDS)
def test_whole_rounds_have_no_excess(rounds: int, shards: int) -> None:
    assert kv_cache.kv_replication_whole(rounds * shards, shards) == pytest.approx(1.0, rel=1e-15)


@given(BATCH, SHARDS)
def test_copies_hold_it_all_and_fractions_nothing_more(batch: int, shards: int) -> None:
    assert kv_cache.kv_replication_copied(batch, shards) == shards
    assert kv_cache.kv_replication_ideal(batch) == 1
    assert (
        kv_cache.kv_replication_ideal(batch)
        <= kv_cache.kv_replication_whole(batch, shards)
        <= kv_cache.kv_replication_copied(batch, shards) * (1 + 1e-15)
    )


def test_replications_keep_the_shape_of_a_grid() -> None:
    batch = np.arange(1.0, 9.0)
    for found in (
        kv_cache.kv_replication_whole(batch, 4),
        kv_cache.kv_replication_ideal(batch),
        kv_cache.kv_replication_copied(batch, 4),
    ):
        assert np.shape(found) == (8,)
    assert (kv_cache.kv_replication_whole(batch, 4) * batch).tolist() == [4, 4, 4, 4, 8, 8, 8, 8]


def test_the_cache_is_counted_with_its_replication() -> None:
    assert kv_cache.kv_bytes(5, 1000.0, 1.6) == 8000
    assert kv_cache.kv_read_bytes(5, 10, 100.0, 1.6) == 8000
