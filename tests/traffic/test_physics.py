"""What must hold of any queue and any server, whatever the engine: formulas at no load and at full load, and laws."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import slicewise
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask
from slicewise.planner.slices import default_deployment
from slicewise.traffic.engine import simulate
from slicewise.traffic.fleets import Fleet, PrefillPool, outcome_of
from slicewise.traffic.metrics import metrics
from slicewise.traffic.planned import server_of, times_of
from slicewise.traffic.read import read_trace
from slicewise.traffic.requests import Requests
from slicewise.traffic.server import CHUNKED, POLICIES, PREFILL_FIRST, STATIC, Outcome, Policy, Server
from slicewise.traffic.synthetic import arrivals, lognormal
from slicewise.traffic.times import Times

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
PROMPT, OUTPUT = 8192, 512
INT8 = {"slice": "v5e:4x4", "weights": "int8", "kv": "int8", "isl": PROMPT, "osl": OUTPUT}
BF16 = INT8 | {"weights": "bf16", "kv": "bf16"}


def planned(view: str, **flags: Any) -> Deployment:
    return default_deployment(ask("llama-3-70b", {**INT8, "view": view, **flags}))


def alike(n: int, arrival_s: NDArray[np.float64] | float = 0.0, prompt: int = PROMPT, output: int = OUTPUT) -> Requests:
    return Requests(
        arrival_s=np.zeros(n) + arrival_s, prompt_tokens=np.full(n, prompt), output_tokens=np.full(n, output)
    )


def steady_rate(outcome: Outcome) -> float:
    """Requests that finish a second, from the first third to the last, without filling and drain."""
    finish_s = np.sort(outcome.finish_s[np.isfinite(outcome.finish_s)])
    first, last = len(finish_s) // 3, 2 * len(finish_s) // 3
    return float((last - first) / (finish_s[last] - finish_s[first]))


# --- no load --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["roofline", "overlapped", "serial", "expected"])
@pytest.mark.parametrize("kind", POLICIES)
def test_without_load_the_formula_holds(kind: str, view: str) -> None:
    deployment = planned(view)
    requests = alike(3, np.array([0.0, 1000.0, 2000.0]))
    policy = Policy(kind=kind, max_num_seqs=8, max_num_batched_tokens=PROMPT)
    outcome = simulate(requests, server_of(deployment, policy, requests))
    # The prompt gives the first token; the other G - 1 are steps of one sequence that holds T, T + 1, ... tokens.
    prefill_s = float(deployment.value("prefill_s", prompt_tokens=PROMPT))
    steps_s = deployment.value("step_s", batch=1, context_tokens=PROMPT + np.arange(OUTPUT - 1.0))
    np.testing.assert_allclose(outcome.first_token_s - requests.arrival_s, prefill_s, rtol=1e-9)
    tpot_s = (outcome.finish_s - outcome.first_token_s) / (OUTPUT - 1)
    np.testing.assert_allclose(tpot_s, steps_s.mean(), rtol=1e-9)
    # Which is the planner's own TPOT, at the mean context.
    assert tpot_s[0] == pytest.approx(float(deployment.value("step_s", batch=1)), rel=1e-4)


def test_without_load_chunks_take_what_the_whole_prompt_takes() -> None:
    deployment, requests = planned("expected"), alike(1)
    policy = Policy(kind=CHUNKED, max_num_seqs=8, max_num_batched_tokens=512)
    server = server_of(deployment, policy, requests)
    outcome = simulate(requests, server)
    chunks = PROMPT // 512
    # Each iteration waits for the weights anew, as far as its own work does not take longer.
    rest_s = max(float(deployment.value("prefill_s", prompt_tokens=512)) - server.times.chunk_s(0, 512), 0.0)
    expected_s = server.times.chunk_s(0, PROMPT) + chunks * rest_s
    assert outcome.first_token_s[0] == pytest.approx(expected_s, rel=1e-9)


def test_a_split_fleet_without_load_gives_the_planners_split_times() -> None:
    found = slicewise.disaggregate("llama-3-70b", **INT8, view="overlapped", batch=1)
    decode = found.decode.deployment
    requests = alike(1)
    server = server_of(decode, Policy(max_num_seqs=1), requests)
    assert found.handoff_s is not None
    pool = PrefillPool(
        n_servers=1,
        prefills_s=times_of(found.prefill.deployment, 1, PROMPT + OUTPUT).prefills_s,
        handoff_s_per_token=found.handoff_s / PROMPT,
        n_chips=16,
        usd_per_hour=None,
    )
    outcome = outcome_of(requests, Fleet(server=server, n_servers=1, prefill=pool))
    assert outcome.first_token_s[0] == pytest.approx(found.ttft_split_s, rel=1e-9)
    assert (outcome.finish_s - outcome.first_token_s)[0] / (OUTPUT - 1) == pytest.approx(found.tpot_s, rel=1e-4)


# --- full load ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["roofline", "overlapped", "serial", "expected"])
@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("slice_", ["v5e:4x4", "h100:8"])
def test_prompts_are_never_computed_above_the_peak(slice_: str, kind: str, view: str) -> None:
    """Short prompts share the loading of the weights, but not their FLOPs."""
    deployment = planned(view, slice=slice_)
    requests = alike(600, prompt=64, output=2)
    server = server_of(deployment, Policy(kind=kind, max_num_seqs=128), requests)
    outcome = simulate(requests, server)
    seconds = float(outcome.finish_s.max())
    flops_per_s = 600 * float(deployment.value("prefill_flops", prompt_tokens=64)) / seconds
    peak = 16 * 1.97e14 if slice_ == "v5e:4x4" else 8 * 9.9e14
    share = 1.0 if view == "expected" else 0.4
    assert flops_per_s <= share * peak


@pytest.mark.parametrize("view", ["roofline", "overlapped", "serial", "expected"])
@pytest.mark.parametrize("kind", [PREFILL_FIRST, STATIC])
@pytest.mark.parametrize("flags", [INT8, BF16], ids=["int8", "bf16"])
def test_a_saturated_server_gives_the_planners_steady_state(flags: dict[str, str], kind: str, view: str) -> None:
    """Where both phases share the chips, `disaggregate` says how long a token takes: `tpot_shared_s`.

    It is B / G of the time that a request takes of a replica, prefill_s + G step_s / B at the mean context, so that
    B / (G tpot_shared_s) requests finish a second. In the simulation the prompt gives the first of G tokens.
    """
    found = slicewise.disaggregate("llama-3-70b", **flags, view=view)
    assert found.tpot_shared_s is not None
    assert found.batch >= 32
    steady = found.batch / (OUTPUT * found.tpot_shared_s)
    assert steady == pytest.approx(float(found.decode.deployment.value("requests_per_s_shared", batch=found.batch)))
    requests = alike(found.batch * 12)
    server = server_of(found.decode.deployment, Policy(kind=kind, max_num_seqs=found.batch), requests)
    assert server.n_blocks * 16 >= found.batch * (PROMPT + OUTPUT - 1)
    outcome = simulate(requests, server)
    assert not outcome.preemptions.any()
    # Whole rounds of the batch, as all of it ends together.
    ends_s = np.unique(outcome.finish_s)
    rate = found.batch * (len(ends_s) - 1) / (ends_s[-1] - ends_s[0])
    assert len(ends_s) == 12
    assert rate == pytest.approx(steady, rel=0.01)


def test_a_saturated_server_gives_it_too_where_requests_do_not_end_together() -> None:
    """Outputs of 256 to 768, of the same mean: contexts differ, and each prompt stops the others' steps."""
    found = slicewise.disaggregate("llama-3-70b", **INT8, view="overlapped", batch=56)
    assert found.tpot_shared_s is not None
    outputs = np.random.default_rng(3).integers(OUTPUT // 2, 3 * OUTPUT // 2 + 1, 2000)
    requests = Requests(arrival_s=np.zeros(2000), prompt_tokens=np.full(2000, PROMPT), output_tokens=outputs)
    server = server_of(found.decode.deployment, Policy(max_num_seqs=56), requests)
    outcome = simulate(requests, server)
    assert steady_rate(outcome) == pytest.approx(56 / (OUTPUT * found.tpot_shared_s), rel=0.015)


# --- prefill and decode servers -------------------------------------------------------------------------------------

BOOK = BF16 | {"params": "70e9", "book": True}
BATCH, STEP_S, RATIO = 40, 19.11e-3, 3.72
"""The most sequences of 8,704 tokens that fit, their step at the mean context of 8,448, and the planner's ratio."""


def split_book(n_prefill: int, n_decode: int) -> Fleet:
    decode = planned("roofline", **BOOK)
    requests = alike(1)
    pool = PrefillPool(
        n_servers=n_prefill,
        prefills_s=times_of(decode, 1, PROMPT + OUTPUT).prefills_s,
        handoff_s_per_token=float(decode.value("handoff_s")) / PROMPT,
        n_chips=16,
        usd_per_hour=None,
    )
    server = server_of(decode, Policy(max_num_seqs=BATCH, block_tokens=1), requests)
    return Fleet(server=server, n_servers=n_decode, prefill=pool)


def test_the_ratio_is_the_planners_at_the_mean_context() -> None:
    decode = planned("roofline", **BOOK)
    mean_context = PROMPT + OUTPUT / 2
    step_s = float(decode.value("step_s", batch=BATCH, context_tokens=mean_context))
    assert step_s == pytest.approx(STEP_S, rel=1e-3)
    ratio = decode.value("prefill_servers_per_decode_server", batch=BATCH, context_tokens=mean_context)
    assert float(ratio) == pytest.approx(RATIO, rel=1e-3)
    room = int(decode.value("max_batch", capacity_context_tokens=PROMPT + OUTPUT))
    assert room == BATCH
    server = split_book(1, 1).server
    assert server.n_blocks // (PROMPT + OUTPUT) == BATCH


ROUNDS = 30
"""Of the decode servers' batches: these come and go together, so that it takes many for a rate."""


def saturated_split(n_prefill: int, n_decode: int) -> tuple[float, float]:
    """Requests a second of a split fleet that all requests wait for, and how long a decode server keeps them waiting.

    Between the first token and the last there is nothing but steps, unless a request waits for a slot.
    """
    requests = alike(n_decode * BATCH * ROUNDS)
    outcome = outcome_of(requests, split_book(n_prefill, n_decode))
    assert not outcome.preemptions.any()
    decode_s = np.sort(outcome.finish_s - outcome.first_token_s)
    return steady_rate(outcome), float(decode_s[-len(decode_s) // 4])


@pytest.mark.parametrize("n_decode", [10, 25])
def test_both_sides_saturate_at_the_planners_ratio(n_decode: int) -> None:
    """With fewer prefill servers for a decode server than 3.72 these limit the rate, with more the decode servers."""
    decode = planned("roofline", **BOOK)
    prompts_per_s = 1 / float(decode.value("prefill_s"))
    below, above = (round(n_decode * RATIO * share) for share in (0.9, 1.15))
    prefill_bound, short_s = saturated_split(below, n_decode)
    decode_bound, long_s = saturated_split(above, n_decode)
    # Below, prefill servers never rest, and no one waits for a slot; above, requests queue before decode servers.
    assert prefill_bound == pytest.approx(below * prompts_per_s, rel=0.01)
    assert short_s < 1.02 * OUTPUT * STEP_S
    assert long_s > 1.2 * OUTPUT * STEP_S
    assert decode_bound == pytest.approx(n_decode * BATCH / (OUTPUT * STEP_S), rel=0.01)
    # Where both are busy: as many prefill servers as give what decode servers take.
    crossing = decode_bound / (prefill_bound / below) / n_decode
    assert crossing == pytest.approx(RATIO, rel=0.03)
    # And around it the rate is that of the scarcer side.
    for share in (0.97, 1.03):
        servers = round(n_decode * RATIO * share)
        rate, _ = saturated_split(servers, n_decode)
        assert rate == pytest.approx(min(servers * prompts_per_s, decode_bound), rel=0.02)


# --- laws -----------------------------------------------------------------------------------------------------------


def loaded(kind: str, seed: int = 0, rate: float = 3.0, n: int = 4000) -> tuple[Requests, Server]:
    """Requests and a server for them with little room: some are preempted, and some never fit."""
    rng = np.random.default_rng(seed)
    requests = Requests(
        arrival_s=arrivals(n, rate, burstiness=0.5, seed=rng),
        prompt_tokens=lognormal(n, 800, 1.0, rng),
        output_tokens=lognormal(n, 200, 0.8, rng),
    )
    knots = np.array([0.0, 1000.0, 50_000.0])
    steps_s = (0.004 + 0.0001 * np.arange(65.0))[:, None] + 1e-8 * np.arange(65.0)[:, None] * knots
    times = Times(knots=knots, steps_s=steps_s, prefills_s=0.005 + 5e-5 * np.arange(50_001))
    return requests, Server(times=times, n_blocks=700, policy=Policy(kind=kind, max_num_seqs=64))


def concurrency(requests: Requests, outcome: Outcome) -> float:
    """Requests in the system on average, from counting who came and went, event by event."""
    done = np.isfinite(outcome.finish_s)
    times_s = np.concatenate([requests.arrival_s[done], outcome.finish_s[done]])
    change = np.repeat([1, -1], done.sum())
    order = np.argsort(times_s, kind="stable")
    inside, gaps_s = np.cumsum(change[order])[:-1], np.diff(times_s[order])
    assert inside.min() >= 0
    return float((inside * gaps_s).sum() / gaps_s.sum())


@pytest.mark.parametrize("n_servers", [1, 3])
@pytest.mark.parametrize("kind", POLICIES)
def test_littles_law(kind: str, n_servers: int) -> None:
    requests, server = loaded(kind)
    outcome = simulate(requests, server, n_servers, "least-loaded")
    done = np.isfinite(outcome.finish_s)
    run_s = outcome.finish_s[done].max() - requests.arrival_s[done][0]
    rate, in_system_s = done.sum() / run_s, (outcome.finish_s - requests.arrival_s)[done].mean()
    assert concurrency(requests, outcome) == pytest.approx(rate * in_system_s, rel=1e-9)
    found = metrics(requests, outcome, n_chips=1, usd_per_hour=None)
    assert found.run_mean_concurrency == pytest.approx(concurrency(requests, outcome), rel=2e-3)  # of the dropped first
    assert found.end_to_end_s is not None
    assert found.end_to_end_s.mean == pytest.approx(in_system_s)


@pytest.mark.parametrize("kind", POLICIES)
def test_tokens_are_conserved(kind: str) -> None:
    requests, server = loaded(kind)
    outcome = simulate(requests, server)
    done, dropped = np.isfinite(outcome.finish_s), outcome.server < 0
    assert done.sum() + dropped.sum() == len(requests)
    assert not (done & dropped).any()
    assert dropped.any()
    assert outcome.preemptions.any() == (kind != STATIC)
    # Each token but the first of a request ends a gap.
    assert tokens_of(outcome) == requests.output_tokens[done].sum()
    found = metrics(requests, outcome, n_chips=1, usd_per_hour=None)
    assert (found.arrived, found.finished, found.dropped) == (len(requests), done.sum(), dropped.sum())
    assert found.output_tokens == requests.output_tokens[done].sum()


def tokens_of(outcome: Outcome) -> int:
    """Tokens that were made: the first of each request, and those after a gap."""
    return int(np.isfinite(outcome.first_token_s).sum() + (outcome.gaps[:, 3] * outcome.gaps[:, 4]).sum())


@pytest.mark.parametrize("kind", POLICIES)
def test_tokens_are_conserved_in_a_run_that_is_stopped(kind: str) -> None:
    def stop(done: int, of: int) -> None:
        if done > of / 2:
            raise KeyboardInterrupt

    requests, server = loaded(kind, rate=10.0)
    outcome = simulate(requests, server, progress=stop)
    assert not outcome.is_whole
    known = requests.first(len(outcome))
    assert len(requests) / 2 < len(known) < len(requests)
    done, dropped = np.isfinite(outcome.finish_s), outcome.server < 0
    in_flight = ~done & ~dropped
    assert in_flight.sum() > 3
    assert done.sum() + dropped.sum() + in_flight.sum() == len(known)
    found = metrics(known, outcome, n_chips=1, usd_per_hour=None)
    assert found.arrived - found.finished - found.dropped == in_flight.sum()
    # Those in flight have some of their tokens, and not the last.
    begun = in_flight & np.isfinite(outcome.first_token_s)
    of_them = tokens_of(outcome) - known.output_tokens[done].sum()
    assert begun.sum() <= of_them < known.output_tokens[begun].sum()


# --- more servers ---------------------------------------------------------------------------------------------------


def p99s(requests: Requests, server: Server, n_servers: int) -> NDArray[np.float64]:
    """Of the time to the first token, and to the last."""
    outcome = simulate(requests, server, n_servers, "least-loaded")
    found = metrics(requests, outcome, n_chips=1, usd_per_hour=None)
    assert found.ttft_s is not None
    assert found.end_to_end_s is not None
    return np.array([found.ttft_s.p99, found.end_to_end_s.p99])


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(
    ("name", "n_requests", "replicas"),
    [
        ("azure_llm_2023_conv.csv", 4000, [1, 2, 3, 5, 8]),
        ("azure_llm_2023_code.csv", 4500, [1, 2, 3, 4, 6, 8, 10, 12]),
        ("mooncake_conversation.jsonl", 2000, [2, 4, 6, 8, 12, 16, 24]),
    ],
)
def test_more_replicas_never_raise_the_p99_of_a_published_trace(
    name: str, n_requests: int, replicas: list[int], kind: str
) -> None:
    """Of TTFT and end to end. TPOT may rise where a fleet is overloaded: one that waits does not decode."""
    if not TRACES.is_dir():
        pytest.skip("../shared/data/traces is not there")
    requests = read_trace(TRACES / name).first(n_requests)
    server = server_of(planned("expected"), Policy(kind=kind), requests)
    found = np.array([p99s(requests, server, n) for n in replicas])
    assert (np.diff(found, axis=0) <= 0).all(), found
    assert (found[0] > 1.5 * found[-1]).all()  # else there was nothing to gain


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", POLICIES)
def test_more_replicas_never_raise_the_p99_of_made_traces(kind: str, seed: int) -> None:
    """At a load that keeps eight busy: where hardly anyone waits, the p99 hangs on which long prompts meet."""
    requests, server = loaded(kind, seed, rate=20.0)
    found = np.array([p99s(requests, server, n) for n in (1, 2, 3, 4, 6, 8)])
    assert (np.diff(found, axis=0) <= 0).all(), found
