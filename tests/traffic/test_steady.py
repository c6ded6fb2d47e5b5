"""The closed form: Little's law, the planner's own capacities, and a saturated run that reaches them."""

from typing import Any

import numpy as np
import pytest

import slicewise
from helpers.plans import BOOK, MODEL, PLACE, VIEWS, deployment, simulated
from helpers.traffic import made_requests
from slicewise.planner.deployment import Deployment
from slicewise.traffic.requests import Requests
from slicewise.traffic.steady import _LEAST, _POINTS, Steady, at_means, steady

SPLITS = [pytest.param(False, id="shared"), pytest.param(True, id="split")]


def load(rate: float, prompt: int = 1000, output: int = 60, n: int = 11) -> Requests:
    return made_requests([(at / rate, prompt, output) for at in range(n)])


def formula(server: Deployment, requests: Requests, n: int = 1, most: int = 256, n_prefill: int = 0) -> Steady:
    means = at_means(server, requests)
    prefill = means if n_prefill else None
    found = steady(means, n_servers=n, most_sequences=most, prefill=prefill, n_prefill=n_prefill)
    assert found is not None
    return found


def test_means_are_of_the_lengths_and_their_rate() -> None:
    means = at_means(deployment(), made_requests([(0.0, 100, 11), (1.0, 201, 20), (4.0, 300, 30)]))
    assert (means.workload.prompt_tokens, means.workload.output_tokens) == (200, 20)
    assert means.workload.context_tokens == pytest.approx(601 / 3 + 61 / 6)
    assert means.workload.capacity_context_tokens == pytest.approx(601 / 3 + 61 / 3)
    assert means.requests_per_s == 0.5


def test_what_comes_at_once_has_no_rate_and_no_closed_form() -> None:
    for rows in ([(0.0, 100, 10)], [(3.0, 100, 10), (3.0, 100, 10)]):
        means = at_means(deployment(), made_requests(rows))
        assert means.requests_per_s is None
        assert steady(means, n_servers=1, most_sequences=8) is None


def test_a_server_that_holds_no_sequence_has_no_closed_form() -> None:
    means = at_means(deployment(), load(1.0, prompt=10**7))
    assert means.value("max_batch") < 1
    assert steady(means, n_servers=1, most_sequences=8) is None


@pytest.mark.parametrize("view", [*VIEWS, "book"])
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("share", [0.01, 0.2, 0.6, 0.95])
def test_the_batch_is_what_little_says_of_its_own_tpot(view: str, split: bool, share: float) -> None:
    server = deployment(**(BOOK if view == "book" else {"view": view}))
    n, n_prefill = 3, 1000 if split else 0
    full = formula(server, load(1.0), n, n_prefill=n_prefill)
    rate = share * full.capacity_requests_per_s
    found = formula(server, load(rate), n, n_prefill=n_prefill)
    assert found.load == pytest.approx(share)
    assert found.requests_per_s == pytest.approx(rate)
    # Batches are looked up in a table: the law holds to a step of it.
    step = (256 / _LEAST) ** (1 / (_POINTS - 1))
    by_law = rate / n * 60 * found.tpot_s
    assert by_law <= found.batch <= by_law * step * (1 + 1e-9)


@pytest.mark.parametrize("view", VIEWS)
def test_capacities_are_the_planners(view: str) -> None:
    words = {**PLACE, "isl": 1000, "osl": 60, "view": view, "batch": 64}
    planned = slicewise.disaggregate(MODEL, **words)
    server = deployment(view=view)
    apart = formula(server, load(1e-3), 2, 64, n_prefill=1000)
    assert apart.capacity_requests_per_s == pytest.approx(2 * planned.decode_requests_per_s)
    behind = formula(server, load(1e-3), 1000, 64, n_prefill=2)
    assert behind.capacity_requests_per_s == pytest.approx(2 * planned.prefill_requests_per_s)
    # What does both takes its turns: a request's prefill, and its share of the steps.
    together = formula(server, load(1e-3), 1, 64)
    assert 1 / together.capacity_requests_per_s == pytest.approx(
        1 / planned.prefill_requests_per_s + 1 / planned.decode_requests_per_s
    )


@pytest.mark.parametrize("split", SPLITS)
def test_more_than_capacity_is_a_load_above_one(split: bool) -> None:
    server, n_prefill = deployment(), 1000 if split else 0
    least = formula(server, load(1.0), n_prefill=n_prefill)
    found = formula(server, load(3 * least.capacity_requests_per_s), n_prefill=n_prefill)
    assert found.load == pytest.approx(3)
    assert found.batch == 256
    assert found.requests_per_s == least.capacity_requests_per_s
    assert found.output_tokens_per_s == pytest.approx(60 * least.capacity_requests_per_s)
    assert found.servers == 3 or found.servers == 4  # noqa: PLR1714 - 3 but for rounding


def test_few_prefill_servers_let_few_requests_through() -> None:
    server = deployment()
    ample, scarce = (formula(server, load(2.0), n_prefill=n) for n in (1000, 1))
    rate = 2 * scarce.capacity_requests_per_s
    found = formula(server, load(rate), n_prefill=1)
    assert found.prefill_load == pytest.approx(2)
    assert found.requests_per_s == pytest.approx(rate / 2)
    assert ample.prefill_load is not None
    assert ample.prefill_load < 1
    # Decode servers see what prefill lets through.
    assert found.batch == formula(server, load(rate / 2), n_prefill=1000).batch


def test_servers_are_those_that_keep_up() -> None:
    server = deployment()
    one = formula(server, load(1.0)).capacity_requests_per_s
    for rate in (0.5 * one, 2.5 * one, 7.01 * one):
        found = formula(server, load(rate))
        assert formula(server, load(rate), found.servers).load <= 1
        assert found.servers == 1 or formula(server, load(rate), found.servers - 1).load > 1


@pytest.mark.parametrize(
    ("model", "place"),
    [("qwen3-next-80b-a3b", {"slice": "h100:4", "weights": None, "kv": None}), ("gemma-3-27b", {"slice": "v5e:4x4"})],
)
def test_states_and_windows_have_one_too(model: str, place: dict[str, Any]) -> None:
    found = formula(deployment(model, **place), load(1.0, 4000, 400))
    assert found.batch == pytest.approx(400 * found.tpot_s, rel=0.01)


@pytest.mark.parametrize(("view", "within"), [("overlapped", 0.01), ("expected", 0.02), ("book", 0.01)])
def test_a_saturated_run_reaches_it(view: str, within: float) -> None:
    words = BOOK if view == "book" else {"view": view}
    found = simulated(rate=500, requests=2000, isl=500, osl=200, batch=32, **words)
    assert found.steady is not None
    assert found.metrics is not None
    assert found.steady.load > 1
    assert not found.metrics.includes_drain
    assert found.metrics.requests_per_s == pytest.approx(found.steady.requests_per_s, rel=within)
    assert found.metrics.output_tokens_per_s == pytest.approx(found.steady.output_tokens_per_s, rel=within)


@pytest.mark.parametrize("view", ["overlapped", "expected"])
def test_a_saturated_split_fleet_reaches_it(view: str) -> None:
    words = {"prefill_servers": 6, "decode_servers": 1, "isl": 500, "osl": 200, "batch": 32, "view": view}
    found = simulated(rate=500, requests=2000, **words)
    assert found.steady is not None
    assert found.metrics is not None
    assert found.metrics.requests_per_s == pytest.approx(found.steady.requests_per_s, rel=0.02)


def test_little_holds_of_a_run_too() -> None:
    found = simulated(rate=3, requests=2000, view="overlapped")
    assert found.steady is not None
    assert found.metrics is not None
    assert 0 < found.steady.load < 1
    # Poisson arrivals: 2,000 of them are 2.2 % near their rate, and concurrency follows it.
    assert found.metrics.mean_concurrency == pytest.approx(
        found.steady.requests_per_s * found.metrics.end_to_end_s.mean, rel=0.05
    )
    np.testing.assert_allclose(
        found.metrics.run_mean_concurrency, found.metrics.run_requests_per_s * found.metrics.end_to_end_s.mean
    )
