"""Segments of a growing cache: against the bytes of each cache, token by token."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.spec.arrays import Cache
from slicewise.spec.held import ExpertGroup, Segment, most_bytes, segments

WINDOWS = st.just(math.inf) | st.integers(1, 3000)
KEPT = st.lists(
    st.builds(
        Cache,
        name=st.just("made up"),
        elements_per_token=st.sampled_from([0, 64, 1000]),
        other_bytes_per_token=st.sampled_from([0.0, 132.0]),
        state_bytes=st.sampled_from([0.0, 5e5]),
        window=WINDOWS,
        copies=st.sampled_from([0.0, 1.0, 2.5]),
        layers=st.integers(1, 9).map(lambda n: tuple(range(n))),
    ),
    min_size=1,
    max_size=4,
).map(tuple)


def needed(kept: tuple[Cache, ...], tokens: float, width: float) -> float:
    """Bytes of a sequence, cache by cache."""
    return sum(
        cache.n_layers
        * cache.copies
        * (
            (cache.elements_per_token * width + cache.other_bytes_per_token) * min(tokens, cache.window)
            + cache.state_bytes
        )
        for cache in kept
    )


@given(KEPT, st.integers(0, 4000), st.sampled_from([2.0, 1.0, 0.5]))
def test_the_lowest_line_is_what_a_sequence_needs(kept: tuple[Cache, ...], tokens: int, width: float) -> None:
    lines = [part.fixed_bytes + part.bytes_per_token * tokens for part in segments(kept, width)]
    assert min([*lines, most_bytes(kept, width)]) == pytest.approx(needed(kept, tokens, width))


@given(KEPT, st.sampled_from([2.0, 1.0]))
def test_segments_are_steepest_first_and_all_rise(kept: tuple[Cache, ...], width: float) -> None:
    rates = [part.bytes_per_token for part in segments(kept, width)]
    fixed = [part.fixed_bytes for part in segments(kept, width)]
    assert rates == sorted(rates, reverse=True)
    assert fixed == sorted(fixed)
    assert all(rate > 0 for rate in rates)


@given(KEPT, st.sampled_from([2.0, 1.0]))
def test_the_most_is_reached_where_every_window_is_full_and_only_there(kept: tuple[Cache, ...], width: float) -> None:
    grows = [cache for cache in kept if (cache.elements_per_token or cache.other_bytes_per_token) and cache.copies]
    most = most_bytes(kept, width)
    if any(cache.window == math.inf for cache in grows):
        assert most == math.inf
    else:
        full = max((cache.window for cache in grows), default=0)
        assert most == pytest.approx(needed(kept, full, width)) == pytest.approx(needed(kept, 1e9, width))


def test_what_never_grows_has_no_segments() -> None:
    state = Cache(name="state", state_bytes=1000.0, layers=(0, 1))
    assert segments((state,), 2.0) == ()
    assert most_bytes((state,), 2.0) == 2000


def test_windows_of_gemma_4() -> None:
    # 819,200 B a token for 1,024 tokens, and 81,920 B a token: github.com/alvarobartt/hf-mem/issues/61
    slides = Cache(name="k and v", elements_per_token=2 * 16 * 256, window=1024, layers=tuple(range(50)))
    full = Cache(name="k and v", elements_per_token=2 * 4 * 512, layers=tuple(range(10)))
    assert segments((slides, full), 2.0) == (
        Segment(fixed_bytes=0.0, bytes_per_token=901_120),
        Segment(fixed_bytes=819_200 * 1024, bytes_per_token=81_920),
    )


def test_they_read_as_what_they_are() -> None:
    assert str(Segment(fixed_bytes=838_860_800, bytes_per_token=81_920)) == "838,860,800 B + 81,920 B a token"
    group = ExpertGroup(n_layers=58, n_experts=256, n_active=8, n_bytes=1e9)
    assert str(group) == "58 layers of 256 experts, 8 active: 1,000,000,000 B"
