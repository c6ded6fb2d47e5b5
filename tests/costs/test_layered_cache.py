"""Caches of layers that keep different things: published bytes, and lengths against brute force."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.costs import kv_cache, layered_cache, prefill
from slicewise.spec.arrays import Cache
from slicewise.spec.held import most_bytes, segments
from slicewise.spec.tensors import caches
from slicewise.units import GB, GIB

BF16, FP8 = 2.0, 1.0
SIZES = st.builds(
    Cache,
    name=st.just("made up"),
    elements_per_token=st.sampled_from([0, 64, 1024, 8192]),
    other_bytes_per_token=st.sampled_from([0.0, 0.0, 132.0]),
    state_bytes=st.sampled_from([0.0, 0.0, 1e6]),
    window=st.just(math.inf) | st.integers(1, 5000),
    read_tokens=st.just(math.inf) | st.integers(1, 5000),
    decode_flops_per_token=st.integers(0, 10**6).map(float),
    state_flops=st.sampled_from([0.0, 1e6]),
    copies=st.sampled_from([0.0, 1.0, 2.0, 8.0]),
    layers=st.integers(1, 60).map(lambda n: tuple(range(n))),
)
KEPT = st.lists(SIZES, min_size=1, max_size=4).map(tuple)
TOKENS, WIDTH = st.integers(1, 10**5), st.sampled_from([BF16, FP8, 0.5])


def kept(name: str) -> tuple[Cache, ...]:
    return caches(load_model(name))


def per_token(name: str, width: float = BF16) -> float:
    found = kept(name)
    elements, other = kv_cache.kv_elements_per_token(found), layered_cache.kv_other_bytes_per_token(found)
    return float(layered_cache.kv_bytes_per_token(elements, width, other))


def per_sequence(found: tuple[Cache, ...], tokens: float, width: float = BF16) -> float:
    return float(layered_cache.kv_bytes_per_sequence(found, tokens, width))


# -- worked numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "width", "n_bytes"),
    [
        # One latent of 576 a layer: https://github.com/vllm-project/vllm/pull/14824, and pools over tokens in its logs.
        pytest.param("deepseek-v3", BF16, 70_272, id="latent"),
        # Beside it an index key of 128 bytes and a scale of 4: logs give 78,321 to 78,337, and 43,189 with fp8.
        pytest.param("deepseek-v3.2", BF16, 78_324, id="latent-and-index-keys"),
        pytest.param("deepseek-v3.2", FP8, 43_188, id="index-keys-stay-as-they-are"),
        # 50 layers of 16 heads of 256 and 10 of 4 of 512: https://github.com/alvarobartt/hf-mem/issues/61
        pytest.param("gemma-4-31b", BF16, 819_200 + 81_920, id="windows"),
        # 16 of 64 layers: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1862
        pytest.param("qwen3.6-27b", BF16, 16_384 * 2**20 // 262_144, id="states"),
    ],
)
def test_bytes_of_a_token_while_no_window_is_full(model: str, width: float, n_bytes: int) -> None:
    assert per_token(model, width) == n_bytes


def test_a_sequence_of_gemma_4_grows_by_its_full_layers_once_the_window_is_full() -> None:
    found = kept("gemma-4-31b")
    # 3.523 GB at 32,768 tokens, where every layer in full would take 32.21: https://github.com/alvarobartt/hf-mem/issues/61
    assert per_sequence(found, 32_768) == 819_200 * 1024 + 81_920 * 32_768
    assert per_sequence(found, 32_768) / GB == pytest.approx(3.523, rel=1e-3)
    growth = [float(layered_cache.kv_growth_bytes_per_token(found, tokens, BF16)) for tokens in (1, 1023, 1024, 32_768)]
    assert growth == [901_120, 901_120, 81_920, 81_920]


def test_a_state_is_kept_whatever_the_length() -> None:
    found = kept("qwen3.6-27b")
    state = layered_cache.kv_state_bytes(found)
    # 262,144 tokens take 16,384 MiB of keys and values beside it.
    assert per_sequence(found, 262_144) - state == 16 * GIB
    assert per_sequence(found, 1) == state + 65_536
    # A step reads the state, and writes it back.
    assert layered_cache.kv_read_bytes_per_sequence(found, 262_144, BF16) == 16 * GIB + 2 * state
    # 598.5 MiB for 4 sequences, in a log that keeps convolutions in float32: 48 layers of 48 heads of 128 x 128.
    assert state == pytest.approx(48 * 48 * 128 * 128 * 4, rel=0.05)
    assert 4 * state / 2**20 == pytest.approx(598.5, rel=0.05)


def test_sparse_attention_reads_what_its_indexer_chose_and_every_index_key() -> None:
    found = kept("deepseek-v3.2")
    read = layered_cache.kv_read_bytes_per_sequence(found, np.array([1000.0, 32_768.0]), BF16)
    assert read.tolist() == [1000 * 78_324, 61 * (2048 * 1152 + 32_768 * 132)]
    assert per_sequence(found, 32_768) == 32_768 * 78_324


def test_attention_of_a_latent_in_a_step_is_over_the_latent() -> None:
    # Each of 128 heads scores 512 + 64 and sums 512 of each token.
    found = kept("deepseek-v3")
    assert layered_cache.attention_flops(3, found, 1000) == 3 * 61 * 2 * 128 * (576 + 512) * 1000
    # In prefill keys of 128 + 64 and values of 128 are made of it; every other token is attended to.
    assert layered_cache.prefill_attention_flops(found, 1000) == 61 * 2 * 128 * (192 + 128) * 1000**2 / 2


def test_latents_are_handed_over_once_whatever_the_ranks_hold() -> None:
    held = (Cache(name="latent", elements_per_token=576, copies=8.0, layers=tuple(range(61))),)
    assert layered_cache.handoff_bytes(held, 8192, BF16) == 8192 * 70_272
    assert per_sequence(held, 8192) == 8 * 8192 * 70_272
    one = layered_cache.kv_one_copy_bytes(held, 8192, BF16)
    assert layered_cache.kv_copies(per_sequence(held, 8192), one) == 8


def test_a_state_is_handed_over_counted_and_computed_whatever_the_length() -> None:
    # 32 heads of 64 x 128 in float32, and 6 FLOPs an element of it for each token.
    state = Cache(name="state", state_bytes=4 * 262_144, state_flops=6 * 262_144, copies=2.0, layers=(0, 1))
    one = layered_cache.kv_one_copy_bytes((state,), 8192, BF16)
    assert one == layered_cache.handoff_bytes((state,), 8192, BF16) == 2 * 4 * 262_144
    assert layered_cache.kv_copies(per_sequence((state,), 8192), one) == 2
    assert layered_cache.attention_flops(5, (state,), 8192) == 5 * 2 * 6 * 262_144
    assert layered_cache.prefill_attention_flops((state,), 8192) == 8192 * 2 * 6 * 262_144


def test_a_room_for_full_windows_and_no_more_leaves_the_context_unlimited() -> None:
    slides = (Cache(name="k and v", elements_per_token=1024, window=1000, layers=(0,)),)
    parts, most = segments(slides, BF16), most_bytes(slides, BF16)
    rooms = np.array([most - 0.5, most - 1.0, most - 2048])
    assert layered_cache.max_context_tokens(rooms, 0.0, 1, 1.0, parts, most).tolist() == [math.inf, 999, 999]


def test_a_layer_that_reads_an_earlier_ones_cache_holds_nothing_of_it() -> None:
    own = Cache(name="k and v", elements_per_token=1024, layers=(0,))
    again = Cache(name="k and v", reread_elements_per_token=1024, layers=(1,))
    assert per_sequence((own, again), 100) == per_sequence((own,), 100) == 100 * 2048
    assert layered_cache.kv_read_bytes_per_sequence((own, again), 100, BF16) == 2 * 100 * 2048


# -- what must hold of any layers ------------------------------------------------------------------------------------


@given(found=KEPT, tokens=TOKENS, width=WIDTH)
def test_parts_sum_to_the_whole(found: tuple[Cache, ...], tokens: int, width: float) -> None:
    whole = per_sequence(found, tokens, width)
    assert whole == pytest.approx(sum(per_sequence((cache,), tokens, width) for cache in found))
    states = layered_cache.kv_state_bytes(found)
    grown = sum(
        per_sequence((cache,), tokens, width) - layered_cache.kv_state_bytes((cache,)) for cache in found
    )  # what is kept for each token
    assert whole == pytest.approx(states + grown)


@given(found=KEPT, tokens=TOKENS, width=WIDTH)
def test_one_more_token_adds_what_the_growth_says(found: tuple[Cache, ...], tokens: int, width: float) -> None:
    single = tuple(replace(cache, copies=1.0) for cache in found)
    more = per_sequence(single, tokens + 1, width) - per_sequence(single, tokens, width)
    assert more == pytest.approx(float(layered_cache.kv_growth_bytes_per_token(single, tokens, width)), abs=1e-3)


@given(found=KEPT, tokens=TOKENS, more=TOKENS, width=WIDTH)
def test_more_tokens_never_hold_read_or_compute_less(
    found: tuple[Cache, ...], tokens: int, more: int, width: float
) -> None:
    for formula in (
        layered_cache.kv_bytes_per_sequence,
        layered_cache.kv_one_copy_bytes,
        layered_cache.kv_read_bytes_per_sequence,
        layered_cache.handoff_bytes,
    ):
        assert formula(found, tokens, width) <= formula(found, tokens + more, width)
    assert layered_cache.attention_flops(1, found, tokens) <= layered_cache.attention_flops(1, found, tokens + more)
    fewer, longer = (layered_cache.prefill_attention_flops(found, n) for n in (tokens, tokens + more))
    assert fewer <= longer * (1 + 1e-12)


@given(found=KEPT, tokens=TOKENS, width=WIDTH)
def test_a_step_never_reads_more_than_is_held_where_no_layer_reads_anothers(
    found: tuple[Cache, ...], tokens: int, width: float
) -> None:
    read = layered_cache.kv_read_bytes_per_sequence(found, tokens, width)
    written = sum(cache.n_layers * cache.state_bytes * cache.copies for cache in found)
    assert read <= (per_sequence(found, tokens, width) + written) * (1 + 1e-12)


@given(found=KEPT, tokens=st.lists(TOKENS, min_size=1, max_size=5), width=WIDTH)
def test_a_grid_equals_its_points(found: tuple[Cache, ...], tokens: list[int], width: float) -> None:
    grid = np.array(tokens, dtype=float)
    for formula in (
        layered_cache.kv_growth_bytes_per_token,
        layered_cache.kv_bytes_per_sequence,
        layered_cache.kv_one_copy_bytes,
        layered_cache.kv_read_bytes_per_sequence,
    ):
        points = [float(formula(found, n, width)) for n in tokens]
        assert (np.asarray(formula(found, grid, width)) + 0.0 * grid).tolist() == points


@given(found=KEPT, width=WIDTH, batch=st.integers(1, 300), replication=st.sampled_from([1.0, 1.5, 4.0]), data=st.data())
def test_the_longest_context_fits_and_one_more_token_does_not(
    found: tuple[Cache, ...], width: float, batch: int, replication: float, data: st.DataObject
) -> None:
    fits = data.draw(st.integers(0, 20_000))
    edge = batch * replication * per_sequence(found, fits, width)
    budget = max(0.0, edge + data.draw(st.sampled_from([0.0, 1.0, 1000.0, -1.0])))
    parts, most = segments(found, width), most_bytes(found, width)
    longest = float(layered_cache.max_context_tokens(budget, 0.0, batch, replication, parts, most))

    def needed(tokens: float) -> float:
        return batch * replication * per_sequence(found, tokens, width)

    if longest == math.inf:
        assert needed(1e12) <= budget + 0.5
    else:
        assert longest == 0 or needed(longest) <= budget + 0.5
        assert needed(longest + 1) > budget + 0.5
        assert longest == int(longest) >= 0


@given(found=KEPT, width=WIDTH)
def test_the_longest_context_of_a_grid_equals_its_points(found: tuple[Cache, ...], width: float) -> None:
    parts, most = segments(found, width), most_bytes(found, width)
    budgets = np.array([-1e9, 0.0, 1e6, 1e9, 1e12])
    grid = layered_cache.max_context_tokens(budgets, 0.0, 8, 1.0, parts, most)
    points = [float(layered_cache.max_context_tokens(float(b), 0.0, 8, 1.0, parts, most)) for b in budgets]
    assert np.asarray(grid).tolist() == points


@given(tokens=st.integers(1, 3000), reach=st.integers(1, 5000) | st.just(math.inf))
def test_tokens_attended_to_are_those_of_plain_layers(tokens: int, reach: float) -> None:
    plain = prefill.prefill_attended_tokens(tokens, prefill.prefill_window_tokens(tokens, reach))
    assert layered_cache.attended_tokens(tokens, reach) == plain
    exact = np.minimum(np.arange(1, tokens + 1), reach).sum()
    assert exact - layered_cache.attended_tokens(tokens, reach) == pytest.approx(min(tokens, reach) / 2)


@given(elements=st.sampled_from([64, 1024]), n_layers=st.integers(1, 60), tokens=TOKENS, width=WIDTH)
def test_layers_that_are_alike_take_what_the_plain_formulas_say(
    elements: int, n_layers: int, tokens: int, width: float
) -> None:
    window = 4096.0
    same = (Cache(name="k and v", elements_per_token=elements, window=window, layers=tuple(range(n_layers))),)
    each = kv_cache.kv_bytes_per_token(kv_cache.kv_elements_per_token(same), width)
    held = kv_cache.kv_held_tokens(tokens, window)
    assert per_sequence(same, tokens, width) == kv_cache.kv_bytes_per_sequence(held, each)


def test_queries_are_exchanged_by_groups_of_batch_shards() -> None:
    # b_a B N H / Y, as of plain layers: 70B, B = 64, 8 head shards.
    assert layered_cache.all_to_all_bytes(64, 64 * 128, 8, 2.0) == 2 * 64 * 8192 / 8


def test_reads_count_the_fullest_chips_share() -> None:
    assert layered_cache.kv_read_bytes(5, 1000.0, 1.6) == 8000


@given(found=KEPT)
def test_recurrences_and_windows_alone_have_a_last_byte(found: tuple[Cache, ...]) -> None:
    assume(all(cache.window < math.inf for cache in found if cache.elements_per_token or cache.other_bytes_per_token))
    most = most_bytes(found, BF16)
    assert math.isfinite(most)
    assert per_sequence(found, 1e9) == pytest.approx(most)
