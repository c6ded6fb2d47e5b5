"""The choice: the 1 % rule and the Pareto front, against brute force."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import slicewise
from slicewise.catalog.load import find_chip
from slicewise.catalog.slices import standard_slices
from slicewise.planner.choose import choose, pareto
from slicewise.planner.feasible import FITS, Verdict
from slicewise.planner.search import Searched

SLICES = standard_slices(find_chip("v5e"))[:4]
BASE = slicewise.step("llama-3-8b", slice="v5e:2x4").deployment
NEARLY_EQUAL = (1.0, 1.004, 1.0099, 1.0102, 1.02)
SCORE = st.sampled_from([*NEARLY_EQUAL, *(-score for score in NEARLY_EQUAL)])
STEP = st.sampled_from([0.001, 0.002, 0.003])


def searched(n: int, points: list[tuple[float, float]]) -> Searched:
    """A candidate on the n-th slice whose batches have these scores and steps."""
    score, step_s = np.array(points, dtype=float).reshape(-1, 2).T
    verdict = FITS if points else Verdict(reason="none", detail="none")
    batches = np.arange(1.0, len(points) + 1)
    return Searched(
        deployment=BASE.with_(slice=SLICES[n]), batches=batches, step_s=step_s, score=score, verdict=verdict
    )


CANDIDATES = st.lists(
    st.builds(searched, st.integers(0, len(SLICES) - 1), st.lists(st.tuples(SCORE, STEP), max_size=6)), max_size=5
)


@settings(max_examples=300)
@given(CANDIDATES)
@example([searched(1, [(100.0, 0.003)]), searched(2, [(100.5, 0.001)])])
@example([searched(2, [(100.0, 0.003), (100.9, 0.001)]), searched(1, [(100.5, 0.001)])])
@example([searched(2, [(-100.0, 0.003), (-99.1, 0.001)]), searched(1, [(-98.9, 0.001)])])
def test_of_plans_within_one_percent_the_lowest_step_then_the_fewest_chips(found: list[Searched]) -> None:
    points = [
        (float(step_s), s.deployment.slice.n_chips, float(score))
        for s in found
        for step_s, score in zip(s.step_s, s.score, strict=True)
    ]
    picked = choose(found)
    if not points:
        assert picked is None
        return
    best = min(score for _, _, score in points)
    good = [point for point in points if point[2] <= best + 0.01 * abs(best)]
    assert picked is not None
    searched_, index = picked
    assert float(searched_.score[index]) <= best + 0.01 * abs(best)
    taken = (float(searched_.step_s[index]), searched_.deployment.slice.n_chips)
    assert taken == min((step_s, n_chips) for step_s, n_chips, _ in good)


def test_the_best_of_a_candidate_is_its_smallest_batch_of_the_least_score() -> None:
    assert searched(0, [(3.0, 0.1), (1.0, 0.1), (1.0, 0.2)]).best == 1


POINTS = st.lists(
    st.tuples(st.integers(0, 5).map(float) | st.floats(0, 10), st.integers(0, 5).map(float) | st.floats(0, 10)),
    max_size=40,
)


@given(POINTS)
def test_the_front_holds_what_no_other_dominates_and_nothing_else(points: list[tuple[float, float]]) -> None:
    latency, throughput = np.array(points, dtype=float).reshape(-1, 2).T
    kept = pareto(latency, throughput)
    for i, (time, rate) in enumerate(points):
        dominated = any(t <= time and r >= rate and (t, r) != (time, rate) for t, r in points)
        first = points.index((time, rate)) == i
        assert kept[i] == (not dominated and first)


@pytest.mark.parametrize("n", [0, 1])
def test_a_front_of_few(n: int) -> None:
    assert pareto(np.ones(n), np.ones(n)).tolist() == [True] * n
