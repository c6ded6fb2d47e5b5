"""Metrics against numbers that a hand computes, Little's law, and a benchmark that was published."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from slicewise.errors import InputError
from slicewise.traffic.metrics import Metrics, metrics, tpots_s
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import Outcome
from slicewise.traffic.summary import Summary, summary

CASE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "39-throughput-vs-tpot.yaml"
NAN = math.nan


def made(rows: list[tuple[float, int, int, float, float, float]], **columns: Any) -> tuple[Requests, Outcome]:
    """A run of rows: arrival, prompt and output tokens, start, first token, finish; nan where it was dropped."""
    arrival, prompt, output, start, first, finish = (np.array(column) for column in zip(*rows, strict=True))
    n = len(rows)
    kept = np.isfinite(finish)
    found = {"server": np.where(kept, 0, -1), "preemptions": np.zeros(n, int), "cached_tokens": np.zeros(n, int)}
    found |= {name: np.array(column) for name, column in columns.items()}
    requests = Requests(arrival_s=arrival, prompt_tokens=prompt, output_tokens=output)
    return requests, Outcome(start_s=start, first_token_s=first, finish_s=finish, **found)


def told(run: tuple[Requests, Outcome], **words: Any) -> Metrics:
    return metrics(*run, **{"n_chips": 4, "usd_per_hour": 36.0} | words)


# Four requests, one of them dropped, one of a single token.
SMALL = made(
    [
        (0.0, 100, 11, 0.0, 1.0, 3.0),
        (1.0, 200, 21, 2.0, 3.0, 5.0),
        (2.0, 999, 99, NAN, NAN, NAN),
        (6.0, 300, 1, 6.0, 6.5, 6.5),
    ],
    preemptions=[0, 3, 0, 0],
    cached_tokens=[0, 60, 0, 90],
)


def test_a_small_run_by_hand() -> None:
    found = told(SMALL)
    assert (found.arrived, found.finished, found.dropped, found.left_out) == (4, 3, 1, 0)
    assert (found.prompt_tokens, found.output_tokens) == (600, 33)
    assert found.ttft_s == summary(np.array([1.0, 2.0, 0.5]))
    assert found.queueing_s == summary(np.array([0.0, 1.0, 0.0]))
    assert found.tpot_s == summary(np.array([0.2, 0.1]))
    assert found.end_to_end_s == summary(np.array([3.0, 4.0, 0.5]))
    assert found.preemptions_per_request == 1.0
    assert found.cached_prompt_share == 0.25
    assert found.output_tokens_per_s_per_user == pytest.approx(1 / 0.15)


def test_rates_of_a_small_run_by_hand() -> None:
    found = told(SMALL)
    # From the first arrival to the last, at which nobody waits: two requests finish, with all their tokens.
    assert (found.window_s, found.duration_s, found.includes_drain) == (6.0, 6.5, False)
    assert found.requests_per_s == pytest.approx(2 / 6)
    assert found.output_tokens_per_s == pytest.approx(32 / 6)
    assert found.total_tokens_per_s == pytest.approx(332 / 6)
    assert found.output_tokens_per_s_per_chip == pytest.approx(32 / 24)
    assert found.total_tokens_per_s_per_chip == pytest.approx(332 / 24)
    assert found.run_requests_per_s == pytest.approx(3 / 6.5)
    assert found.run_output_tokens_per_s == pytest.approx(33 / 6.5)
    assert found.run_total_tokens_per_s == pytest.approx(633 / 6.5)
    assert found.mean_concurrency == pytest.approx(7 / 6)
    assert found.mean_concurrency_by_little == pytest.approx(2 / 6 * 2.5)
    assert found.run_mean_concurrency == pytest.approx(7.5 / 6.5)
    # 36 USD an hour is a cent a second.
    assert found.usd_per_million_output_tokens == pytest.approx(0.01 / (32 / 6) * 1e6)
    assert found.usd_per_million_tokens == pytest.approx(0.01 / (332 / 6) * 1e6)


def test_goodput_keeps_both_limits_and_counts_the_dropped() -> None:
    found = told(SMALL, ttft_s=1.0, tpot_s=0.2)
    # The second misses its TTFT, the third was dropped, the fourth has no gap between tokens that could be too long.
    assert (found.good, found.goodput_share) == (2, 0.5)
    assert found.goodput_requests_per_s == pytest.approx(1 / 6)
    assert found.run_goodput_requests_per_s == pytest.approx(2 / 6.5)
    assert told(SMALL, tpot_s=0.15).good == 2
    assert told(SMALL, ttft_s=2.0).good == 3
    assert told(SMALL, end_to_end_s=3.0).good == 2
    assert told(SMALL, end_to_end_s=3.5, tpot_s=0.15).good == 1
    assert told(SMALL, end_to_end_s=3.0).goodput_share == 0.5
    assert told(SMALL, ttft_s=0.1).goodput_requests_per_s == 0
    without = told(SMALL)
    assert without.good is without.goodput_share is without.goodput_requests_per_s is None


def test_what_arrives_in_the_warm_up_does_not_count_but_its_work_does() -> None:
    found = told(SMALL, warm_up_s=1.0)
    assert (found.arrived, found.finished, found.dropped, found.left_out) == (3, 2, 1, 1)
    assert found.ttft_s == summary(np.array([2.0, 0.5]))
    assert found.window_s == 5.0
    assert found.duration_s == 5.5
    # Of the first request ten tokens come between its first, at 1 s, and 3 s.
    assert found.output_tokens_per_s == pytest.approx((10 + 21) / 5)
    assert found.requests_per_s == pytest.approx(2 / 5)
    assert found.run_output_tokens_per_s == pytest.approx(22 / 5.5)
    assert found.mean_concurrency == pytest.approx((2 + 4) / 5)


def test_the_warm_up_ends_at_its_own_second() -> None:
    assert told(SMALL, warm_up_s=6.0).arrived == 1
    with pytest.raises(InputError, match=r"after a warm-up of 6.1 s: the last of 4 arrives at 6 s; shorten it"):
        told(SMALL, warm_up_s=6.1)
    nothing = np.zeros(0)
    none = np.zeros(0, int)
    requests = Requests(arrival_s=nothing, prompt_tokens=none, output_tokens=none)
    outcome = Outcome(
        server=none, start_s=nothing, first_token_s=nothing, finish_s=nothing, preemptions=none, cached_tokens=none
    )
    with pytest.raises(InputError, match="there are no requests"):
        told((requests, outcome))


def test_tokens_are_counted_as_far_as_they_were_made() -> None:
    # The last one arrives when a quarter of the second's gaps have passed.
    run = made([(0.0, 10, 5, 0.0, 1.0, 2.0), (0.0, 10, 41, 1.0, 2.0, 6.0), (3.0, 10, 5, 3.0, 4.0, 5.0)])
    found = told(run)
    # One of three finishes before: too few, so that the run is its own window.
    assert (found.includes_drain, found.window_s, found.output_tokens_per_s) == (True, 6.0, 51 / 6)
    more = made([(0.0, 10, 5, 0.0, 1.0, 2.0)] * 2 + [(0.0, 10, 41, 1.0, 2.0, 6.0), (3.0, 10, 5, 3.0, 4.0, 5.0)])
    found = told(more)
    assert (found.includes_drain, found.window_s) == (False, 3.0)
    assert found.output_tokens_per_s == pytest.approx((2 * 5 + 1 + 10) / 3)
    assert found.total_tokens_per_s == pytest.approx((2 * 5 + 1 + 10 + 30) / 3)


def saturated(n: int, slots: int, servers: int) -> tuple[Requests, Outcome]:
    """All come at once, in turn to servers with so many slots; each takes 2 s, and no slot is empty until the end."""
    start = np.arange(n) // (slots * servers) * 2.0
    return made([(0.0, 5, 10, float(s), s + 0.5, s + 2.0) for s in start], server=np.arange(n) % servers)


def test_the_drain_does_not_distort_a_saturated_run() -> None:
    # Ten full rounds of 8, and a straggler that is served alone.
    found = told(saturated(81, slots=8, servers=1))
    assert (found.window_s, found.duration_s, found.includes_drain) == (20.0, 22.0, False)
    assert found.requests_per_s == pytest.approx(4.0)
    assert found.output_tokens_per_s == pytest.approx(40.0)
    assert found.run_output_tokens_per_s == pytest.approx(810 / 22)


def test_the_drain_does_not_distort_a_saturated_fleet() -> None:
    # The straggler is one server's; the others have nothing to start after 18 s, and the window ends there.
    found = told(saturated(321, slots=8, servers=4))
    assert (found.window_s, found.duration_s, found.includes_drain) == (18.0, 22.0, False)
    assert found.requests_per_s == pytest.approx(16.0)
    assert found.output_tokens_per_s == pytest.approx(160.0)


def test_the_window_ends_when_the_first_server_has_nothing_to_start() -> None:
    run = made(
        [(0.0, 5, 2, float(t), t + 0.5, t + 1.0) for t in range(10)]
        + [(0.0, 5, 2, float(t), t + 0.5, t + 1.0) for t in range(6)],
        server=[0] * 10 + [1] * 6,
    )
    found = told(run)
    assert found.window_s == 5.0
    assert found.requests_per_s == pytest.approx(10 / 5)


def test_littles_law_holds_of_a_steady_run() -> None:
    rng = np.random.default_rng(7)
    n = 200_000
    arrival = np.cumsum(rng.exponential(0.1, n))
    waited, prefill, decode = rng.exponential(0.5, n), rng.uniform(0.1, 0.3, n), rng.gamma(4.0, 1.0, n)
    start = arrival + waited
    requests = Requests(arrival_s=arrival, prompt_tokens=np.full(n, 100), output_tokens=rng.integers(1, 300, n))
    outcome = Outcome(
        server=np.arange(n) % 3,
        start_s=start,
        first_token_s=start + prefill,
        finish_s=start + prefill + decode,
        preemptions=np.zeros(n, int),
        cached_tokens=np.zeros(n, int),
    )
    found = told((requests, outcome), warm_up_s=100.0)
    assert not found.includes_drain
    assert found.mean_concurrency == pytest.approx(10 * 4.7, rel=0.01)
    assert found.mean_concurrency_by_little == pytest.approx(found.mean_concurrency, rel=1e-3)
    assert found.run_mean_concurrency == pytest.approx(found.mean_concurrency, rel=1e-3)
    assert found.end_to_end_s is not None
    assert found.run_mean_concurrency == pytest.approx(found.run_requests_per_s * found.end_to_end_s.mean)
    assert found.run_output_tokens_per_s == pytest.approx(found.output_tokens_per_s, rel=1e-3)


def test_percentiles_are_those_of_numpy() -> None:
    values = np.random.default_rng(1).lognormal(size=997)
    found = summary(values)
    assert found == Summary(
        mean=float(np.mean(values)),
        p50=float(np.median(values)),
        p90=float(np.quantile(values, 0.9)),
        p95=float(np.quantile(values, 0.95)),
        p99=float(np.quantile(values, 0.99)),
        most=float(np.max(values)),
    )
    assert summary(np.array([NAN, 3.0])) == summary(np.array([3.0]))
    assert summary(np.array([NAN])) is None


def test_time_per_token_needs_two() -> None:
    assert tpots_s(*SMALL).tolist() == pytest.approx([0.2, 0.1, NAN, NAN], nan_ok=True)


def test_one_request_is_its_own_window() -> None:
    found = told(made([(5.0, 10, 11, 5.0, 6.0, 7.0)]))
    assert (found.includes_drain, found.window_s, found.duration_s) == (True, 2.0, 2.0)
    assert (found.requests_per_s, found.output_tokens_per_s, found.total_tokens_per_s) == (0.5, 5.5, 10.5)
    assert found.mean_concurrency == found.mean_concurrency_by_little == found.run_mean_concurrency == 1.0


def test_the_last_finish_is_inside_a_window_that_is_the_run() -> None:
    found = told(made([(0.1, 10, 11, 0.1, 0.2, 0.1 + 0.2 * (1 + 2**-50))] * 3))
    assert found.includes_drain
    assert found.requests_per_s == found.run_requests_per_s
    assert found.output_tokens_per_s == pytest.approx(found.run_output_tokens_per_s)


def test_where_all_are_dropped_rates_are_zero_and_times_unknown() -> None:
    found = told(made([(0.0, 10, 5, NAN, NAN, NAN), (2.0, 10, 5, NAN, NAN, NAN)]), ttft_s=1.0)
    assert (found.arrived, found.dropped, found.finished, found.good, found.goodput_share) == (2, 2, 0, 0, 0.0)
    assert found.ttft_s is found.tpot_s is found.output_tokens_per_s_per_user is None
    assert found.requests_per_s == found.duration_s == found.mean_concurrency == found.cached_prompt_share == 0.0
    assert found.usd_per_million_output_tokens is found.usd_per_million_tokens is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_without_a_price_nothing_is_priced() -> None:
    found = told(SMALL, usd_per_hour=None)
    assert found.usd_per_million_output_tokens is found.usd_per_million_tokens is None


def test_the_json_is_plain() -> None:
    data = told(SMALL, ttft_s=1.0).to_dict()
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again == data
    assert list(data) == list(Metrics.__dataclass_fields__)
    assert data["ttft_s"]["most"] == 2
    assert set(data["tpot_s"]) == {"mean", "p50", "p90", "p95", "p99", "most"}


def test_39_throughput_vs_tpot() -> None:
    if not CASE.is_file():
        pytest.skip("../shared/cases is not beside this checkout")
    case = yaml.safe_load(CASE.read_text(encoding="utf-8"))
    given, right = case["inputs"], {item["name"]: item for item in case["right_value"]}
    n = given["requests"]

    def parts(total: int) -> np.ndarray:
        return np.diff(np.arange(n + 1) * total // n)

    output = parts(given["output_tokens"])
    ttft, decode = np.full(n, given["mean_ttft_s"]), given["mean_tpot_s"] * (output - 1)
    arrival = np.linspace(0.0, given["duration_s"] - float(ttft[-1] + decode[-1]), n)
    requests = Requests(arrival_s=arrival, prompt_tokens=parts(given["input_tokens"]), output_tokens=output)
    outcome = Outcome(
        server=np.zeros(n, int),
        start_s=arrival,
        first_token_s=arrival + ttft,
        finish_s=arrival + ttft + decode,
        preemptions=np.zeros(n, int),
        cached_tokens=np.zeros(n, int),
    )
    found = told((requests, outcome))
    assert found.end_to_end_s is not None
    answers = {
        "request_rate": found.run_requests_per_s,
        "mean_osl": found.output_tokens / found.finished,
        "mean_e2e_s": found.end_to_end_s.mean,
        "mean_concurrency": found.run_mean_concurrency,
        "tok_s_user": found.output_tokens_per_s_per_user,
    }
    assert set(answers) == set(right)
    for name, answer in answers.items():
        allowed = float(right[name]["tolerance"].rstrip("%")) / 100
        assert answer == pytest.approx(right[name]["value"], rel=allowed), name
    assert found.run_output_tokens_per_s == pytest.approx(given["output_tok_s"], rel=1e-4)
    assert found.run_total_tokens_per_s == pytest.approx(given["total_tok_s"], rel=1e-4)
    # The same that the thread wondered at: the fleet's rate is that of a user times those who are served.
    assert found.run_output_tokens_per_s == pytest.approx(answers["tok_s_user"] * found.run_mean_concurrency, rel=0.02)
