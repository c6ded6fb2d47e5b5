"""What a load is like, told from small loads by hand."""

import json

import numpy as np
import pytest

from helpers.traffic import made_requests
from slicewise.traffic.profile import profile_of
from slicewise.traffic.synthetic import arrivals


def test_numbers_of_a_small_load() -> None:
    found = profile_of(made_requests([(10.0, 100, 4), (11.0, 300, 8), (14.0, 200, 6)]))
    assert (found.n_requests, found.span_s, found.requests_per_s) == (3, 4.0, 0.5)
    assert found.busiest_minute_ratio is None
    assert (found.prompt_tokens.mean, found.prompt_tokens.p50, found.prompt_tokens.most) == (200, 200, 300)
    assert found.output_tokens.mean == 6


def test_one_time_has_no_rate() -> None:
    for rows in ([(5.0, 100, 4)], [(5.0, 100, 4), (5.0, 100, 4)]):
        found = profile_of(made_requests(rows))
        assert (found.span_s, found.requests_per_s, found.busiest_minute_ratio) == (0.0, None, None)
        json.dumps(found.to_dict(), allow_nan=False)


def test_the_busiest_minute_is_over_a_mean_one() -> None:
    # 30 requests in the first minute and 10 in each of the next three, the last at their very end.
    times = [*np.linspace(0, 59, 30), *np.linspace(60, 119, 10), *np.linspace(120, 179, 10), *np.linspace(180, 240, 10)]
    found = profile_of(made_requests([(time + 7, 10, 5) for time in times]))
    assert found.busiest_minute_ratio == pytest.approx(30 / (60 / 4))


@pytest.mark.parametrize(("span_s", "is_told"), [(119.9, False), (120.0, True)])
def test_less_than_two_minutes_have_no_busiest(span_s: float, is_told: bool) -> None:
    found = profile_of(made_requests([(0.0, 10, 5), (span_s, 10, 5)]))
    assert (found.busiest_minute_ratio is not None) == is_told


def test_an_even_load_has_a_ratio_near_one() -> None:
    rows = [(time, 10, 5) for time in arrivals(60_000, 100.0, burstiness=100, seed=0).tolist()]
    assert profile_of(made_requests(rows)).busiest_minute_ratio == pytest.approx(1, abs=0.01)


def test_json_has_plain_numbers() -> None:
    found = profile_of(made_requests([(0.0, 100, 4), (1.0, 300, 8)])).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert set(found["prompt_tokens"]) == {"mean", "p50", "p90", "p95", "p99", "most"}
