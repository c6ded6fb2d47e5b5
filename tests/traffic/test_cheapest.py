"""`size` from words: the cheapest fleet against `simulate`, whether splitting pays, and what is known when stopped."""

import json
import signal
from typing import Any

import pytest

import slicewise
from helpers.plans import LOAD, MODEL, PLACE
from helpers.traffic import made_requests
from slicewise.errors import InputError
from slicewise.traffic.cheapest import Size
from slicewise.traffic.sizing import Tried

BUSY = {**LOAD, "rate": "30", "requests": "150"}
LIMITS = {"ttft": "p95:400ms", "tpot": "p99:40ms"}


def sized(**words: Any) -> Size:
    return slicewise.size(MODEL, **{**PLACE, **BUSY, **LIMITS, **words})


FOUND = sized()


def simulated_as(row: Tried, **words: Any) -> Any:
    """The same fleet by `simulate`."""
    where, kind, batch = row.shape.split(", ")
    assert where == "v5e:4x4 int8/int8"
    counts = {"prefill_servers": row.n_prefill, "decode_servers": row.n_servers} if row.n_prefill else {
        "replicas": row.n_servers, "policy": kind,
    }  # fmt: skip
    return slicewise.simulate(
        MODEL, **{**PLACE, **BUSY, **LIMITS, "batch": batch.split()[1], "no_range": True, **counts, **words}
    )


def test_each_fleet_that_was_tried_is_what_simulate_says() -> None:
    assert FOUND.sizing is not None
    assert len(FOUND.sizing.tried) > 5
    for row in FOUND.sizing.tried:
        again = simulated_as(row)
        assert again.metrics == row.metrics
        assert again.fits == row.kept
        assert again.usd_per_hour == row.usd_per_hour


def test_the_best_is_the_cheapest_that_keeps_the_limits() -> None:
    sizing = FOUND.sizing
    assert sizing is not None
    assert sizing.best is not None
    kept = [row for row in sizing.tried if row.kept]
    assert sizing.best.usd_per_hour == min(row.usd_per_hour for row in kept)
    assert FOUND.fits
    assert FOUND.reason is None
    assert sizing.best.n_servers > 1
    fewer = simulated_as(sizing.best, replicas=sizing.best.n_servers - 1)
    assert not fewer.fits


def test_the_closed_form_is_of_the_best_fleet() -> None:
    assert FOUND.sizing is not None
    assert FOUND.sizing.best is not None
    assert FOUND.steady == simulated_as(FOUND.sizing.best).steady


def test_splitting_pays_where_its_cheapest_costs_less() -> None:
    assert FOUND.sizing is not None
    shared, split = FOUND.sizing.best_shared, FOUND.sizing.best_split
    assert shared is not None
    assert split is not None
    assert FOUND.split_pays == (split.usd_per_hour < shared.usd_per_hour)
    assert FOUND.why.startswith("yes" if FOUND.split_pays else "no")


def test_splitting_pays_where_only_its_prefill_servers_are_fast_enough() -> None:
    # A prompt of 8,192 tokens takes more than a second on the shared servers' slice, and less on the other.
    found = sized(ttft="p95:1s", tpot=None, isl=8192, rate=0.2, requests=20, prefill_slice="v5e:4x8")
    assert found.sizing.best_shared is None
    assert found.split_pays is True
    assert found.why == "yes: no count of servers that do both phases meets the limits"
    assert found.sizing.best == found.sizing.best_split


def test_the_derivation_of_a_number_ends_in_it() -> None:
    found = sized(servers="shared")
    assert found.steady is not None
    assert found.steady.batch < 0.9 * found.designs[found.sizing.best.shape].policy.max_num_seqs
    assert found.explain("tpot_s").value == pytest.approx(found.steady.tpot_s, rel=1e-9)
    assert found.explain("ttft_s").value == pytest.approx(found.steady.ttft_s, rel=1e-9)
    split = sized(servers="split")
    assert split.steady is not None
    for name in ("tpot_s", "step_s"):
        assert split.explain(name).value == pytest.approx(split.steady.tpot_s, rel=1e-9)
    assert FOUND.explain().value == FOUND.steady.servers


def test_where_no_split_fleet_could_be_tried_it_is_not_known_whether_it_pays() -> None:
    found = sized(prefill_slice="v5e:1x1")
    assert not any(answer.is_split for answer in found.sizing.answers)
    assert found.fits
    assert found.split_pays is None
    (reason,) = {each.why.removeprefix("prefill and decode apart: ") for each in found.left_out}
    assert "v5e:1x1" in reason
    assert found.why == f"not known: no split fleet was tried, as {reason}"


def test_goodput_of_a_fleet_counts_end_to_end_and_no_gaps() -> None:
    found = sized(ttft=None, tpot=None, e2e="p50:1.5s", servers="shared", policy="prefill-first")
    for row in found.sizing.tried:
        again = simulated_as(row, ttft=None, tpot=None, e2e="p50:1.5s")
        finish_s = again.outcome.finish_s - again.load.arrival_s
        assert row.metrics.good == again.metrics.good == int((finish_s <= 1.5).sum())
    assert {0 < row.metrics.goodput_share < 1 for row in found.sizing.tried} >= {True}
    gaps = sized(ttft=None, tpot=None, itl="p50:1s", servers="shared", policy="prefill-first")
    assert {row.metrics.good for row in gaps.sizing.tried} == {None}


def test_one_kind_leaves_the_question_open() -> None:
    for kind in ("shared", "split"):
        found = sized(servers=kind)
        assert (found.split_pays, found.why) == (None, "only one kind of fleet was asked for")
        assert found.fits


def test_limits_that_none_meets_name_each_shape() -> None:
    found = sized(ttft="1ms")
    assert not found.fits
    assert found.sizing.best is None
    assert found.split_pays is None
    assert found.why == "no fleet of either kind meets the limits"
    for design in found.designs:
        assert design in found.reason
    json.dumps(found.to_dict(), allow_nan=False)


def test_no_server_at_all_says_why() -> None:
    found = sized(slice="v5e:1x1")
    assert (found.sizing, found.steady, found.fits) == (None, None, False)
    assert found.reason == found.left_out[0].why
    assert found.to_dict()["left_out"] == [{"slice": "v5e:1x1", "why": found.reason}]
    two = sized(slice=["v5e:1x1", "v5e:2x2"], weights="bf16")
    assert two.reason.startswith("v5e:1x1: ")
    assert "; v5e:2x2: " in two.reason


def test_seeds_make_sizes_repeatable() -> None:
    assert sized(seed=0).to_dict() == FOUND.to_dict()
    assert sized(seed=1).to_dict() != FOUND.to_dict()


@pytest.mark.slow
def test_two_processes_give_what_one_does() -> None:
    pytest.importorskip("joblib")
    assert sized(jobs=2).to_dict() == FOUND.to_dict()


def test_json_is_the_fields_beside_the_sizing() -> None:
    data = FOUND.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    own = set(Size.__dataclass_fields__) - {"designs", "load", "sizing"}
    assert set(data) == own | set(FOUND.sizing.to_dict())


def test_a_warm_up_is_left_out_of_each_fleet() -> None:
    found = sized(warm_up="2s")
    assert all(row.metrics.left_out > 0 for row in found.sizing.tried)


def test_a_burst_is_sized_without_a_closed_form() -> None:
    burst = made_requests([(0.0, 1000, 60)] * 40)
    words = dict.fromkeys(("rate", "requests", "isl", "osl"))
    found = sized(trace=burst, **words, ttft="p95:1s", tpot=None, servers="shared", policy="prefill-first")
    assert found.fits
    assert found.steady is None
    with pytest.raises(InputError, match="the load has no rate"):
        found.explain()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (dict.fromkeys(LIMITS), "there is no limit to size for: give --ttft"),
        ({"ttft": "p42:2s"}, "--ttft: 'p42' is no statistic"),
        ({"seed": 1.5}, "--seed: 1.5"),
        ({"rate": 0}, "--rate: 0"),
        ({"rate": None}, "there is no load"),
        ({"jobs": 0}, "--jobs: 0"),
        ({"backend": "fun"}, "--backend 'fun' is not offered"),
        ({"replicas": 3}, "--replicas: how many servers it takes is what size finds"),
        ({"decode_servers": 3}, "--decode-servers: how many servers it takes is what size finds"),
        ({"warm_up": "9h"}, "--warm-up: the last request arrives at"),
        ({"context": 5}, "--context"),
        ({"prefill_slice": "v9:1"}, "v9"),
    ],
)
def test_words_that_are_off_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        sized(**words)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


class Stopping:
    """Progress that is interrupted as by Ctrl-C after some fleets."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, row: Tried) -> None:
        del row
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_stopped_search_tells_what_is_known(after: int) -> None:
    found = sized(progress=Stopping(after))
    sizing = found.sizing
    assert sizing is not None
    assert not sizing.is_whole
    assert len(sizing.tried) == after
    kept = [row for row in sizing.tried if row.kept]
    assert found.fits == bool(kept)
    assert sizing.best is None or sizing.best in kept
    json.dumps(found.to_dict(), allow_nan=False)
    if sizing.best_shared is None or sizing.best_split is None:
        assert (found.split_pays, found.why) == (None, "not known, as the search was stopped")
    if not kept:
        assert "stopped before any fleet did" in found.reason
