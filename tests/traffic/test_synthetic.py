"""Made-up requests: their laws within confidence intervals, seeds, and what is refused."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.errors import InputError
from slicewise.traffic.requests import Requests
from slicewise.traffic.synthetic import (
    arrivals,
    drawn_from,
    fixed,
    lognormal,
    mean_rate,
    on_off,
    repeated,
    rescaled,
)  # fmt: skip

N = 20_000
FIVE_SIGMA = 5.0
TRACE = Requests(
    arrival_s=np.array([0.0, 1.0, 1.0, 6.0]),
    prompt_tokens=np.array([10, 20, 30, 40]),
    output_tokens=np.array([1, 2, 3, 4]),
    prefixes=((1,), (1,), (), (2,)),
    prefix_block_tokens=512,
    source="the trace t.csv",
)
EMPTY = Requests(arrival_s=np.zeros(0), prompt_tokens=np.zeros(0, np.int64), output_tokens=np.zeros(0, np.int64))


@given(rate=st.floats(1e-3, 1e4), burstiness=st.floats(0.25, 16), seed=st.integers(0, 2**32))
def test_gaps_have_the_mean_and_the_variation_asked_for(rate: float, burstiness: float, seed: int) -> None:
    found = arrivals(N, rate, burstiness=burstiness, seed=seed)
    gaps = np.diff(found, prepend=0.0) * rate
    assert (gaps >= 0).all()
    assert abs(gaps.mean() - 1) < FIVE_SIGMA * (1 / burstiness / N) ** 0.5
    # A Gamma distribution of shape k has the variance 1/k and the kurtosis 3 + 6/k.
    assert abs(gaps.var() * burstiness - 1) < FIVE_SIGMA * ((2 + 6 / burstiness) / N) ** 0.5 * 1.2


def test_burstiness_of_one_is_poisson() -> None:
    gaps = np.sort(np.diff(arrivals(N, 3.0, seed=1), prepend=0.0))
    distance = np.abs(1 - np.exp(-3 * gaps) - np.arange(1, N + 1) / N).max()
    assert distance < 1.95 / N**0.5  # Kolmogorov and Smirnov, at one in a thousand


@given(rate=st.floats(0.5, 100), on_s=st.floats(0.1, 10), off_s=st.floats(0, 10), seed=st.integers(0, 99))
def test_on_and_off(rate: float, on_s: float, off_s: float, seed: int) -> None:
    found = on_off(N, rate, on_s=on_s, off_s=off_s, seed=seed)
    assert (np.diff(found) >= 0).all()
    period_s = on_s + off_s
    assert (np.mod(found, period_s) <= on_s + 1e-6 * period_s).mean() > 0.999
    assert abs(found[-1] * rate - N) < FIVE_SIGMA * N**0.5 + rate * period_s


def test_off_for_no_time_is_poisson() -> None:
    assert on_off(50, 2.0, on_s=5, off_s=0, seed=3).tolist() == arrivals(50, 2.0, seed=3).tolist()


@given(mean=st.floats(1, 1e6), sigma=st.floats(0, 1.2), seed=st.integers(0, 2**32))
def test_lognormal_lengths_have_the_mean_asked_for(mean: float, sigma: float, seed: int) -> None:
    found = lognormal(N, mean, sigma, seed)
    assert found.dtype == np.int64
    assert found.min() >= 1
    deviation = (((mean - 1) ** 2 * np.expm1(sigma**2) + 0.25) / N) ** 0.5
    assert abs(found.mean() - mean) < FIVE_SIGMA * 1.5 * deviation


def test_lognormal_at_its_ends() -> None:
    assert lognormal(100, 1, 1.0, 0).tolist() == [1] * 100
    assert lognormal(100, 512, 0, 0).tolist() == [512] * 100
    assert lognormal(1000, 10**9, 5.0, 0).max() == 10**9
    logs = np.log(lognormal(N, 10_000, 0.7, 0) - 1.0)
    assert logs.std() == pytest.approx(0.7, rel=FIVE_SIGMA / (2 * N) ** 0.5)


def test_pairs_stay_together() -> None:
    prompts, outputs = drawn_from(TRACE, N, 0)
    assert (prompts == 10 * outputs).all()
    counts = np.bincount(outputs)[1:]
    assert np.abs(counts - N / 4).max() < FIVE_SIGMA * (N * 3 / 16) ** 0.5
    made = repeated(TRACE, N, 4.0, seed=0)
    assert (made.prompt_tokens == 10 * made.output_tokens).all()
    assert (made.prefixes, made.prefix_block_tokens, len(made)) == ((), 0, N)
    assert mean_rate(made) == pytest.approx(4.0, rel=FIVE_SIGMA / N**0.5)
    assert made.source == "20,000 requests drawn from the trace t.csv, at 4 a second"


@given(rate=st.floats(1e-6, 1e6))
def test_rescaled(rate: float) -> None:
    found = rescaled(TRACE, rate)
    assert mean_rate(TRACE) == 0.5
    assert mean_rate(found) == pytest.approx(rate)
    assert found.arrival_s / found.arrival_s[-1] == pytest.approx(TRACE.arrival_s / 6)
    assert (found.prefixes, found.prompt_tokens.tolist()) == (TRACE.prefixes, [10, 20, 30, 40])
    assert TRACE.arrival_s.tolist() == [0, 1, 1, 6]


MAKERS = {
    "arrivals": partial(arrivals, 100, 2.0, burstiness=0.5),
    "on_off": partial(on_off, 100, 2.0, on_s=1, off_s=2),
    "lognormal": partial(lognormal, 100, 512, 1.0),
    "drawn_from": lambda seed: drawn_from(TRACE, 100, seed)[0],
    "repeated": lambda seed: repeated(TRACE, 100, 2.0, seed=seed).arrival_s,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_seeds(make) -> None:
    assert make(seed=7).tolist() == make(seed=7).tolist() == make(seed=np.random.default_rng(7)).tolist()
    assert make(seed=7).tolist() != make(seed=8).tolist()
    for seed in (-1, 0.5, "1", True):
        with pytest.raises(InputError, match="seed"):
            make(seed=seed)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 1e-300, 10**400, "1", None, True])
def test_rates_and_times_that_are_none(value) -> None:
    for make in (
        lambda: arrivals(3, value, seed=0),
        lambda: arrivals(3, 1, burstiness=value, seed=0),
        lambda: on_off(3, value, on_s=1, off_s=1, seed=0),
        lambda: on_off(3, 1, on_s=value, off_s=1, seed=0),
        lambda: rescaled(TRACE, value),
        lambda: repeated(TRACE, 3, value, seed=0),
    ):
        with pytest.raises(InputError, match="is no sensible number above 0; give for example"):
            make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: on_off(3, 1, on_s=1, off_s=-1, seed=0),
        lambda: fixed(3, 0),
        lambda: fixed(3, 1.5),
        lambda: fixed(3, 10**9 + 1),
        lambda: lognormal(3, 0.5, 1, 0),
        lambda: lognormal(3, float("nan"), 1, 0),
        lambda: lognormal(3, 10, -1, 0),
        lambda: lognormal(3, 10, 6, 0),
        lambda: drawn_from(EMPTY, 3, 0),
        lambda: repeated(EMPTY, 3, 1, seed=0),
        lambda: rescaled(EMPTY, 1),
        lambda: mean_rate(Requests(arrival_s=np.zeros(2), prompt_tokens=np.ones(2), output_tokens=np.ones(2))),
        *(partial(fixed, n, 1) for n in (0, -1, 2.0, 10**9, True, "3", None)),
    ],
)
def test_what_cannot_be_made(make) -> None:
    with pytest.raises(InputError, match="; give"):
        make()
