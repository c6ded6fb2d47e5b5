"""Queues that have a formula: M/D/1 and M/M/1 waits, and each wait from the one before."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.traffic import made_requests
from slicewise.traffic.engine import simulate
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import CHUNKED, POLICIES, PREFILL_FIRST, Policy, Server
from slicewise.traffic.synthetic import arrivals
from slicewise.traffic.times import Times

SEEDS, EACH, LEFT_OUT = 25, 8000, 800
"""Independent runs, requests of each, and those at its begin that find the queue too short."""
T_99 = 2.797
"""Student's t of 24 degrees of freedom that holds 99 of 100."""


def interval(runs: list[float]) -> tuple[float, float]:
    """Mean, and half the width of its interval at 99 %, from independent runs."""
    assert len(runs) == SEEDS
    return float(np.mean(runs)), T_99 * float(np.std(runs, ddof=1)) / math.sqrt(SEEDS)


def waits(rate: float, server: Server, lengths: Callable[[np.random.Generator], tuple[Any, Any]]) -> NDArray[Any]:
    """Mean wait, from arrival until the server takes a request, and share that waits. Shape (2, seeds)."""
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, 2026])
        prompts, outputs = (np.broadcast_to(each, EACH).astype(np.int64) for each in lengths(rng))
        requests = Requests(arrival_s=arrivals(EACH, rate, seed=rng), prompt_tokens=prompts, output_tokens=outputs)
        outcome = simulate(requests, server)
        assert (outcome.server == 0).all()
        services_s = server.times.prefills_s[prompts] + (outputs - 1) * server.times.steps_s[1, 0]
        wait_s = outcome.start_s - requests.arrival_s
        np.testing.assert_allclose(wait_s, one_by_one(requests.arrival_s, services_s), rtol=0, atol=1e-6)
        found.append((wait_s[LEFT_OUT:].mean(), (wait_s[LEFT_OUT:] > 0).mean()))
    return np.array(found).T


def one_by_one(arrival_s: NDArray[np.float64], services_s: NDArray[np.float64]) -> list[float]:
    """Waits for one server that serves in turn: what the one before has left, less the gap between the two. [s]"""
    waits_s = [0.0]
    for service_s, gap_s in zip(services_s[:-1].tolist(), np.diff(arrival_s).tolist(), strict=True):
        waits_s.append(max(0.0, waits_s[-1] + service_s - gap_s))
    return waits_s


WIDTHS = {0.5: 0.06, 0.8: 0.1}
"""The most that half an interval of the mean wait may be, over the wait: a hundredth more load makes 2 to 6 %."""


def check_queue(found: NDArray[Any], wait_s: float, rho: float) -> None:
    """The formulas lie in the intervals, and these are narrow."""
    for values, right, width in ((found[0], wait_s, WIDTHS[rho]), (found[1], rho, 0.02)):
        mean, half = interval(values.tolist())
        assert abs(mean - right) <= half, (mean, half, right)
        assert half < width * right, (half, right)


def server_with(prefills_s: NDArray[np.float64], step_s: float, kind: str, seqs: int) -> Server:
    times = Times(knots=np.array([0.0, 1e6]), steps_s=np.full((seqs + 1, 2), step_s), prefills_s=prefills_s)
    return Server(times=times, n_blocks=10**6, policy=Policy(kind=kind, max_num_seqs=seqs))


@pytest.mark.parametrize("rho", [0.5, 0.8])
@pytest.mark.parametrize("kind", POLICIES)
def test_fixed_prompts_of_one_token_are_an_m_d_1_queue(kind: str, rho: float) -> None:
    """Prefill alone, one prompt at a time; waits are rho s / (2 (1 - rho)), half of those of M/M/1."""
    service_s = 0.25
    server = server_with(np.full(1001, service_s), 1.0, kind, 1)
    found = waits(rho / service_s, server, lambda _: (1000, 1))
    check_queue(found, rho * service_s / (2 * (1 - rho)), rho)


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_prompts_of_exponential_length_are_an_m_m_1_queue(rho: float) -> None:
    """Prefill is a line over the tokens; waits are rho s / (1 - rho)."""
    mean_tokens, token_s = 2000, 1e-4
    service_s = mean_tokens * token_s
    server = server_with(token_s * np.arange(60_001), 1.0, PREFILL_FIRST, 8)
    found = waits(rho / service_s, server, lambda rng: (rng.geometric(1 / mean_tokens, EACH), 1))
    check_queue(found, rho * service_s / (1 - rho), rho)


@pytest.mark.parametrize(("kind", "rho"), [(PREFILL_FIRST, 0.5), (PREFILL_FIRST, 0.8), (CHUNKED, 0.5)])
def test_outputs_of_geometric_length_in_one_slot_are_an_m_m_1_queue(kind: str, rho: float) -> None:
    """The prompt takes as long as a step, so that G tokens take G steps, of which many are one sum."""
    mean_tokens, step_s = 400, 1e-3
    service_s = mean_tokens * step_s
    server = server_with(np.full(20_001, step_s), step_s, kind, 1)
    found = waits(rho / service_s, server, lambda rng: (1, rng.geometric(1 / mean_tokens, EACH)))
    check_queue(found, rho * service_s / (1 - rho), rho)


def test_an_idle_fleet_makes_nobody_wait() -> None:
    requests = made_requests([(10.0 * at, 100, 3) for at in range(50)])
    outcome = simulate(requests, server_with(np.full(200, 0.5), 0.1, PREFILL_FIRST, 4), 2)
    np.testing.assert_array_equal(outcome.start_s, requests.arrival_s)
