"""Summaries against numpy on what is there."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slicewise.traffic.summary import summary


def test_nothing_has_no_summary() -> None:
    assert summary(np.array([])) is None
    assert summary(np.array([np.nan, np.inf])) is None


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.integers(0, 3))
def test_it_is_of_what_is_there(values: list[float], n_missing: int) -> None:
    found = summary(np.array([*values, *[np.nan] * n_missing]))
    assert found is not None
    assert found.most == max(values)
    # A percentile lies on the line between the two values around its place.
    ordered = sorted(values)
    for share, told in ((0.5, found.p50), (0.9, found.p90), (0.95, found.p95), (0.99, found.p99)):
        place = share * (len(ordered) - 1)
        below, above = ordered[int(place)], ordered[min(int(place) + 1, len(ordered) - 1)]
        np.testing.assert_allclose(told, below + (above - below) * (place - int(place)), rtol=1e-12)
    np.testing.assert_allclose(found.mean, sum(values) / len(values), rtol=1e-12)
