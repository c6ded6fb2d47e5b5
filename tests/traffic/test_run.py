"""`simulate`: at zero load it is the planner's answer; what it refuses, repeats, counts, and tells when stopped."""

import json
import math
import signal
from typing import Any

import numpy as np
import pytest

import slicewise
from helpers.plans import BOOK, LOAD, MODEL, PLACE, VIEWS, simulated
from helpers.traffic import made_requests
from slicewise.errors import InputError, UnknownNameError
from slicewise.traffic.fleets import outcome_of
from slicewise.traffic.limits import goodput_limits, parse_limit
from slicewise.traffic.metrics import metrics
from slicewise.traffic.simulation import Asked, Simulation, run, told

APART = {"prefill_servers": 1, "decode_servers": 1}
RANGED = {**PLACE, **LOAD, "requests": "40"}


@pytest.mark.parametrize("view", [*VIEWS, "book"])
@pytest.mark.parametrize("policy", ["prefill-first", "chunked", "static"])
def test_where_nobody_waits_it_is_the_planners_answer(view: str, policy: str) -> None:
    words: dict[str, Any] = BOOK if view == "book" else {"view": view}
    prompt, output = 3000, 100
    found = simulated(rate=1e-3, requests=5, isl=prompt, osl=output, policy=policy, **words)
    run_ = found.metrics
    assert run_ is not None
    planned = slicewise.prefill(MODEL, **PLACE, isl=prompt, **words)
    # `prefill` answers in bounds unless it is asked for what is expected.
    prefill_s = planned.prefill_expected_s if view == "expected" else planned.prefill_s
    assert run_.ttft_s.mean == pytest.approx(prefill_s, rel=1e-9)
    assert run_.ttft_s.most == pytest.approx(run_.ttft_s.p50, rel=1e-9)
    assert run_.queueing_s.most == 0
    # Close and not equal: the mean of steps over the contexts that a request runs through, from P + 1 to P + G - 1
    # tokens, is the step at their mean only where its time is a line in the context.
    mean = prompt + output / 2
    step = slicewise.step(MODEL, **PLACE, batch=1, context=mean, **words)
    step_s = step.step_expected_s if view == "expected" else step.step_s
    assert run_.tpot_s.mean == pytest.approx(step_s, rel=1e-3)
    assert run_.end_to_end_s.mean == pytest.approx(prefill_s + (output - 1) * step_s, rel=1e-3)


@pytest.mark.parametrize("view", VIEWS)
def test_where_nobody_waits_a_split_fleet_is_disaggregate(view: str) -> None:
    found = simulated(rate=1e-3, requests=5, isl=3000, osl=100, view=view, **APART)
    planned = slicewise.disaggregate(MODEL, **PLACE, isl=3000, osl=100, view=view, batch=1)
    assert found.metrics is not None
    assert found.metrics.ttft_s.mean == pytest.approx(planned.ttft_split_s, rel=1e-9)
    assert found.metrics.tpot_s.mean == pytest.approx(planned.tpot_s, rel=1e-3)


def test_an_empty_server_is_the_closed_form() -> None:
    found = simulated(rate=1e-3, requests=5)
    assert found.metrics is not None
    assert found.steady is not None
    assert found.metrics.ttft_s.mean == pytest.approx(found.steady.ttft_s)
    assert found.metrics.tpot_s.mean == pytest.approx(found.steady.tpot_s, rel=0.01)


def test_seeds_make_runs_repeatable() -> None:
    words = {"burstiness": 0.5, "sigma": 1, "requests": 80}
    one, same, other = (simulated(seed=seed, **words) for seed in (3, "3", 4))
    assert one.to_dict() == same.to_dict()
    assert one.metrics != other.metrics


def test_the_answer_holds_what_was_asked_for() -> None:
    found = simulated(
        replicas=3, policy="chunked", batch=16, max_num_batched_tokens=512, block_size=32, route="round-robin"
    )
    assert (found.n_servers, found.total_chips, found.usd_per_hour) == (3, 48, pytest.approx(1.2 * 48))
    assert (found.policy, found.max_num_seqs, found.max_num_batched_tokens) == ("chunked", 16, 512)
    assert (found.block_tokens, found.route, found.view, found.split) == (32, "round-robin", "expected", False)
    found = simulated(prefill_servers=2, decode_servers=3, prefill_slice="v5e:4x8")
    assert (found.n_servers, found.n_prefill_servers, found.prefill_slice) == (3, 2, "v5e:4x8")
    assert (found.total_chips, found.policy, found.max_num_batched_tokens) == (3 * 16 + 2 * 32, "decode", None)


def test_metrics_are_of_the_outcome() -> None:
    found = simulated(ttft="p95:1s", tpot="mean:20ms", warm_up="5s")
    assert found.outcome is not None
    assert found.metrics == metrics(
        found.load, found.outcome, n_chips=16, usd_per_hour=found.usd_per_hour, ttft_s=1.0, tpot_s=0.02, warm_up_s=5.0
    )
    assert found.metrics.left_out == int((found.load.arrival_s < 5).sum()) > 0


def test_tokens_are_conserved() -> None:
    found = simulated(sigma=1.5, requests=200)
    assert found.metrics is not None
    run_ = found.metrics
    assert run_.arrived == run_.finished + run_.dropped == 200
    kept = np.isfinite(found.outcome.finish_s)
    assert run_.output_tokens == found.load.output_tokens[kept].sum()


def test_a_trace_of_requests_is_taken() -> None:
    trace = made_requests([(0.0, 1000, 60), (0.1, 2000, 30), (7.0, 500, 90)])
    found = simulated(trace=trace, rate=None, isl=None, osl=None, requests=None)
    assert found.requests.n_requests == 3
    assert found.load is trace
    found = slicewise.size(MODEL, **PLACE, trace=trace, ttft="p99:2s")
    assert found.fits


def test_what_does_not_fit_says_the_line_that_breaks() -> None:
    found = simulated(slice="v5e:1x1")
    planned = slicewise.step(MODEL, **{**PLACE, "slice": "v5e:1x1"}, batch=1)
    assert not found.fits
    assert found.reason == planned.reason
    assert (found.metrics, found.shares, found.steady, found.figures, found.kv_blocks) == (None,) * 5
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_prefill_slice_that_does_not_fit_is_said() -> None:
    found = simulated(**APART, prefill_slice="v5e:1x1")
    assert not found.fits
    assert "v5e:1x1" in str(found.reason)


def test_missed_limits_are_no_fit_with_the_reason() -> None:
    found = simulated(ttft="p95:1ms", tpot="10s")
    assert not found.fits
    assert found.reason.startswith("TTFT p95 is ")
    assert found.verdict.reasons == (found.reason,)
    assert found.metrics.good == 0
    assert simulated(ttft="p95:100s", tpot="10s").fits


def test_what_is_longer_than_the_cache_is_dropped_and_counted() -> None:
    trace = made_requests([(0.0, 1000, 60), (0.5, 10**9, 5), (1.0, 500, 90)])
    for servers in ({}, APART):
        found = simulated(trace=trace, rate=None, isl=None, osl=None, requests=None, ttft="100s", **servers)
        assert (found.metrics.arrived, found.metrics.finished, found.metrics.dropped) == (3, 2, 1)
        assert found.reason == "1 of 3 requests are dropped, as they fit no server"
        assert not found.fits


def test_nothing_that_fits_is_no_latency() -> None:
    found = simulated(isl=10**8, requests=3, ttft="1s")
    assert found.metrics is None
    assert not found.fits
    assert "100,000,060 tokens" in str(found.reason)
    json.dumps(found.to_dict(), allow_nan=False)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rate": 0}, "--rate: 0 must be greater than 0"),
    ({"rate": [1, 2]}, "--rate"),
    ({"seed": -1}, "--seed: -1"),
    ({"seed": ""}, "--seed: ''"),
    ({"replicas": 10**9}, "--replicas: 1,000,000,000 is more than the 10,000"),
    ({"replicas": 0}, "--replicas: 0"),
    ({"servers": "split"}, "--servers: kinds of fleets are tried by size"),
    ({"prefill_servers": 1}, "one is given; give both"),
    ({"decode_servers": 1}, "one is given; give both"),
    ({**APART, "replicas": 1}, "--replicas are servers that do both"),
    ({**APART, "policy": "chunked"}, "--policy: servers of one phase"),
    ({"prefill_slice": "v5e:4x8"}, "--prefill-slice: no prefill server stands there"),
    ({**APART, "prefill_slice": "v9:1"}, "v9"),
    ({"warm_up": "-1s"}, "--warm-up: -1s is below 0"),
    ({"warm_up": "3"}, "--warm-up: '3' has no unit"),
    ({"warm_up": "9h"}, "--warm-up: the last request arrives at"),
    ({"context": 5}, "--context: requests have lengths of their own"),
    ({"objective": "cost"}, "--objective: nothing is chosen here"),
    ({"pp": 2}, "--pp: traffic is simulated on servers of one group"),
    ({"pp": 1, "dp": 2}, "--dp: traffic is simulated on servers of one group"),
    ({"tp": 4, "slice": "v5e:4x4"}, "give --tp 16"),
    ({"jobs": 0}, "--jobs: 0 must be greater than 0"),
    ({"backend": "fun"}, "--backend 'fun' is not offered; choose local, dask, ray"),
    ({"backend": ""}, "--backend '' is not offered"),
    ({"no_range": "yes"}, "--no-range: 'yes' is neither true nor false"),
    ({"ttft": "p42:2s"}, "--ttft: 'p42' is no statistic"),
    ({"tpot": "2"}, "--tpot: '2' has no unit"),
    ({"itl": "p95:"}, "--itl: '' is not a quantity"),
    ({"e2e": 3}, "--e2e: '3' has no unit"),
    ({"network": "0GB/s"}, "--network"),
    ({"slice": ["v5e:4x4", "v5e:4x8"]}, "give one"),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=lambda value: str(value)[:40])
def test_words_that_are_off_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        simulated(**words)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [1, None])
def test_a_word_that_is_no_flag_is_refused(value: object) -> None:
    with pytest.raises(UnknownNameError, match="unknown word 'replica': did you mean replicas"):
        simulated(replica=value)
    with pytest.raises(UnknownNameError, match="unknown word 'weigths': did you mean weights"):
        slicewise.size(MODEL, **PLACE, **LOAD, ttft="1s", weigths=value)


LOADS: list[Any] = [
    pytest.param({}, id="shared"),
    pytest.param({"rate": 30}, id="busy"),
    pytest.param(APART, id="split"),
    pytest.param({"policy": "chunked", "sigma": 1}, id="chunked"),
    pytest.param({"slice": "h100:4", "weights": "fp8", "kv": "bf16"}, id="gpus"),
]


@pytest.mark.parametrize("words", LOADS)
def test_figures_are_runs_of_their_own(words: dict[str, Any]) -> None:
    found = slicewise.simulate(MODEL, **{**RANGED, **words})
    figures = found.figures
    assert figures is not None
    assert found.metrics is not None
    assert {"ttft_s_p99", "tpot_s_p50", "end_to_end_s_mean", "output_tokens_per_s"} <= figures.keys()
    for name, each in figures.items():
        assert each.low <= each.high, name
        if "_s_" in name and name.endswith(("mean", "p50", "p99")):
            assert each.bound <= each.expected, name
    # The run itself is of what is expected, where no view was asked for.
    assert figures["ttft_s_p99"].expected == found.metrics.ttft_s.p99
    assert figures["requests_per_s"].expected == found.metrics.requests_per_s


def test_figures_of_an_empty_server_are_the_planners() -> None:
    words = {**RANGED, "rate": 1e-3, "requests": 3}
    figures, planned = slicewise.simulate(MODEL, **words).figures, slicewise.prefill(MODEL, **PLACE, isl=1000)
    assert figures is not None
    assert planned.figures is not None
    for name in ("bound", "expected", "low", "high"):
        ttft_s = getattr(figures["ttft_s_mean"], name)
        assert ttft_s == pytest.approx(getattr(planned.figures["prefill_s"], name), rel=1e-9)
    step = slicewise.step(MODEL, **PLACE, isl=1000, osl=60, batch=1)
    assert step.figures is not None
    for name in ("bound", "expected", "low", "high"):
        tpot_s = getattr(figures["tpot_s_mean"], name)
        assert tpot_s == pytest.approx(getattr(step.figures["step_s"], name), rel=1e-3)


def test_a_range_is_left_out_where_it_was_not_asked_for() -> None:
    assert slicewise.simulate(MODEL, **RANGED, no_range=True).figures is None
    assert slicewise.simulate(MODEL, **RANGED, **BOOK).figures is None
    assert "figures" in simulated().to_dict()


def finite(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("words", [*LOADS, {"requests": 1}, {"osl": 1}, {"ttft": "1s", "e2e": "mean:2s"}])
def test_json_is_the_fields_and_finite(words: dict[str, Any]) -> None:
    found = simulated(**words)
    data = found.to_dict()
    assert finite(data)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert set(data) == set(Simulation.__dataclass_fields__) - {"design", "load", "outcome"}
    assert data["metrics"]["requests_per_s"] == found.metrics.requests_per_s


class Stopping:
    """Progress that is interrupted as by Ctrl-C once a share of the work is done."""

    def __init__(self, share: float) -> None:
        self.share, self.calls = share, 0

    def __call__(self, done: int, of: int) -> None:
        self.calls += 1
        if done >= self.share * of:
            self.share = math.inf
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("servers", [{}, {"replicas": 3}, {"policy": "chunked"}, {"policy": "static"}, APART])
def test_a_stopped_run_tells_what_is_known(servers: dict[str, Any]) -> None:
    whole = simulated(**servers)
    found = simulated(**servers, progress=Stopping(0.5))
    assert not found.is_whole
    assert not found.outcome.is_whole
    assert 0 < found.metrics.finished < whole.metrics.finished == 60
    # What is finished by then is finished as in the whole run.
    done = np.flatnonzero(np.isfinite(found.outcome.finish_s))
    np.testing.assert_allclose(found.outcome.finish_s[done], whole.outcome.finish_s[done])
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("servers", [{}, APART])
def test_a_stopped_run_is_not_judged(servers: dict[str, Any]) -> None:
    assert simulated(**servers, ttft="100s").fits
    found = simulated(**servers, ttft="100s", progress=Stopping(0.5))
    assert (found.fits, found.verdict, found.gap) == (False, None, ())
    assert found.reason == "stopped before the end, so that the limits cannot be judged"
    assert simulated(**servers, progress=Stopping(0.5)).fits


def test_a_stopped_split_run_tells_those_that_had_arrived() -> None:
    whole = simulated(**APART)
    found = simulated(**APART, progress=Stopping(0.5))
    assert found.outcome is not None
    assert len(found.outcome) == found.metrics.arrived < 45
    n, last_s = len(found.outcome), np.nanmax(found.outcome.first_token_s)
    assert found.load.arrival_s[n - 1] <= last_s < found.load.arrival_s[n]
    np.testing.assert_array_equal(np.isfinite(found.outcome.first_token_s), whole.outcome.first_token_s[:n] <= last_s)
    assert np.nanmax(found.outcome.start_s) <= last_s
    for name in ("start_s", "first_token_s", "finish_s"):
        known = getattr(found.outcome, name)
        there = np.isfinite(known)
        np.testing.assert_allclose(known[there], getattr(whole.outcome, name)[:n][there])


def test_goodput_counts_each_limit_of_a_request() -> None:
    found = simulated(rate=20, ttft="mean:3s", tpot="110ms", e2e="p50:6s", itl="1ms")
    assert found.outcome is not None
    times = found.outcome
    end_s, first_s = times.finish_s - found.load.arrival_s, times.first_token_s - found.load.arrival_s
    tpot_s = (times.finish_s - times.first_token_s) / (found.load.output_tokens - 1)
    good = (first_s <= 3) & (tpot_s <= 0.11) & (end_s <= 6)
    assert 0 < found.metrics.good == good.sum() < ((first_s <= 3) & (tpot_s <= 0.11)).sum()
    assert simulated(itl="1s").metrics.good is None
    # Of several on one metric, that which every request has to keep: the loosest.
    limits = tuple(parse_limit(text, "--ttft") for text in ("p99:3s", "p50:1s"))
    assert goodput_limits(limits) == {"ttft_s": 3.0, "tpot_s": None, "end_to_end_s": None}


def test_a_run_that_is_stopped_in_its_range_is_known_whole() -> None:
    found = slicewise.simulate(MODEL, **RANGED, progress=Stopping(0.5))
    assert not found.is_whole
    assert found.figures is None
    assert found.metrics == simulated(**RANGED).metrics
    assert slicewise.simulate(MODEL, **RANGED).is_whole


def test_stopped_before_a_request_counts_nothing_is_known() -> None:
    with pytest.raises(KeyboardInterrupt):
        simulated(progress=Stopping(0.0), warm_up="20s")


def test_progress_goes_up_to_all_of_all_runs() -> None:
    seen: list[tuple[int, int]] = []
    slicewise.simulate(MODEL, **RANGED, progress=lambda done, of: seen.append((done, of)))
    assert seen == sorted(seen)
    assert seen[-1] == (5 * 40, 5 * 40)


def test_a_run_is_the_fleets_outcome() -> None:
    found = simulated(replicas=2, rate=20)
    asked = Asked(limits=(parse_limit("1s", "--ttft"),), ranged=False)
    ran = run(found.design, found.load, 2, 0, asked)
    assert ran.is_whole
    again = outcome_of(found.load, ran.fleet)
    np.testing.assert_array_equal(again.finish_s, found.outcome.finish_s)
    assert told(found.load, again, ran.fleet, asked).goodput_share is not None
