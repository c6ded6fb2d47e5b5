"""Results as JSON-ready data."""

import math
from dataclasses import dataclass

import numpy as np

from slicewise.planner.record import record


@dataclass(frozen=True)
class Result:
    count: float
    ratio: object
    words: tuple[str, ...]
    hidden: object = None


def test_numbers_are_plain_and_tuples_lists() -> None:
    result = Result(count=8.0, ratio=np.float64(0.5), words=("a", "b"), hidden=object())
    assert record(result, without=("hidden",)) == {"count": 8, "ratio": 0.5, "words": ["a", "b"]}
    assert record(Result(count=math.inf, ratio=None, words=()))["count"] is None
