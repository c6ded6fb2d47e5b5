"""The estimate of a step: what it never falls below, what it waits for, and what its parts are."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.verify.estimate import Estimate, Part, parts_of, scopes_of, streamed_s
from slicewise.verify.reading import Operation, Reading
from slicewise.verify.rows import LAYER_SCOPES

SCOPES = st.sampled_from([*LAYER_SCOPES, "head", "embed", "other"])
AMOUNTS = st.floats(0.0, 1e12)
RATES = st.floats(1e6, 1e12)
SECONDS = st.floats(0.0, 1e3)
OPERATIONS = st.builds(
    Operation, scope=SCOPES, what=st.just("dot"), cycles=AMOUNTS, count=st.integers(1, 100), streamed_bytes=AMOUNTS
)
PARTS = st.builds(Part, name=st.just("layers"), core_s=SECONDS, streamed_s=SECONDS, fetch_s=SECONDS, ici_s=SECONDS)


@st.composite
def readings(draw: st.DrawFn) -> Reading:
    """Cycles of a scope are those of what streams in it, and more."""
    streamed = tuple(draw(st.lists(OPERATIONS, max_size=5)))
    cycles = draw(st.dictionaries(SCOPES, AMOUNTS, max_size=8))
    for each in streamed:
        cycles[each.scope] = cycles.get(each.scope, 0.0) + each.cycles * each.count
    return Reading(
        program="decode",
        form="written out",
        compiler="a compiler",
        compile_s=1.0,
        cycles=cycles,
        streamed=streamed,
        fetched_bytes=draw(st.dictionaries(SCOPES, AMOUNTS, max_size=8)),
    )


def close(value: float) -> float:
    """A bound that rounding may miss by a little."""
    return value * (1 - 1e-9) - 1e-9


@given(reading=readings(), clock=RATES, bandwidth=RATES, ici=SECONDS)
def test_a_step_takes_as_long_as_the_hbm_needs_for_what_streams_and_for_what_is_fetched(
    reading: Reading, clock: float, bandwidth: float, ici: float
) -> None:
    whole = sum(part.estimate_s for part in parts_of(reading, clock, bandwidth, ici))
    streamed = sum(each.streamed_bytes * each.count for each in reading.streamed)
    fetched = sum(reading.fetched_bytes.values())
    assert whole >= close((streamed + fetched) / bandwidth)
    assert whole >= close(ici)


@given(reading=readings(), clock=RATES, bandwidth=RATES, ici=SECONDS)
def test_hiding_halves_the_cores_time_at_most(reading: Reading, clock: float, bandwidth: float, ici: float) -> None:
    whole = sum(part.estimate_s for part in parts_of(reading, clock, bandwidth, ici))
    streamed = sum(each.cycles * each.count for each in reading.streamed)
    on_vmem = sum(reading.cycles.values()) - streamed
    assert whole >= close((on_vmem + streamed / 2) / clock) - 1e-12 * sum(reading.cycles.values()) / clock


@given(reading=readings(), clock=RATES, bandwidth=RATES, ici=SECONDS)
def test_every_cycle_byte_and_second_is_in_one_part(
    reading: Reading, clock: float, bandwidth: float, ici: float
) -> None:
    layers, rest = parts_of(reading, clock, bandwidth, ici)
    assert (layers.name, rest.name, layers.ici_s, rest.ici_s) == ("layers", "embedding and head", ici, 0.0)
    streamed = sum(each.cycles * each.count for each in reading.streamed) / clock
    total = sum(reading.cycles.values()) / clock
    assert layers.core_s + rest.core_s + streamed == pytest.approx(total, abs=1e-9 * (total + 1))
    assert layers.fetch_s + rest.fetch_s == pytest.approx(sum(reading.fetched_bytes.values()) / bandwidth)
    assert layers.streamed_s + rest.streamed_s == pytest.approx(
        sum(each.count * streamed_s(each, clock, bandwidth) for each in reading.streamed)
    )


@given(work=SECONDS, n_bytes=AMOUNTS, clock=RATES, bandwidth=RATES, faster=st.floats(1.0, 10.0))
def test_more_bandwidth_is_never_slower_where_the_cycles_tell_the_transfer_at_that_bandwidth(
    work: float, n_bytes: float, clock: float, bandwidth: float, faster: float
) -> None:
    def took(rate: float) -> float:
        cycles = (work + n_bytes / rate) * clock
        return streamed_s(
            Operation(scope="mlp", what="dot", cycles=cycles, count=1, streamed_bytes=n_bytes), clock, rate
        )

    assert took(bandwidth) == pytest.approx(max(work, n_bytes / bandwidth), abs=1e-6)
    assert took(bandwidth * faster) <= took(bandwidth) * (1 + 1e-9) + 1e-6


@given(part=PARTS, shares=st.tuples(*[st.floats(0.0, 1.0)] * 4))
def test_less_of_anything_is_never_slower(part: Part, shares: tuple[float, ...]) -> None:
    less = replace(
        part,
        core_s=part.core_s * shares[0],
        streamed_s=part.streamed_s * shares[1],
        fetch_s=part.fetch_s * shares[2],
        ici_s=part.ici_s * shares[3],
    )
    assert less.estimate_s <= part.estimate_s


@given(reading=readings(), clock=RATES, bandwidth=RATES, ici=SECONDS, faster=st.floats(1.0, 10.0))
def test_a_faster_clock_is_never_slower(
    reading: Reading, clock: float, bandwidth: float, ici: float, faster: float
) -> None:
    slow = sum(part.estimate_s for part in parts_of(reading, clock, bandwidth, ici))
    fast = sum(part.estimate_s for part in parts_of(reading, clock * faster, bandwidth, ici))
    cycles = sum(reading.cycles.values()) / clock
    assert close(fast) <= slow + 1e-9 * cycles


@pytest.mark.parametrize(
    ("core", "streamed", "fetch", "ici", "waits"),
    [
        (3.0, 1.0, 2.0, 0.0, "the core and the network"),
        (1.0, 1.0, 2.0, 1.5, "the core and the network"),
        (1.0, 1.0, 3.0, 1.0, "fetching from HBM"),
        (1.0, 1.0, 2.0, 1.0, "fetching from HBM"),
        (1.0, 9.0, 2.0, 0.5, "streaming from HBM, then fetching from HBM"),
        (1.0, 9.0, 0.5, 0.0, "streaming from HBM, then the core and the network"),
        (0.0, 1.0, 0.0, 0.0, "streaming from HBM, then fetching from HBM"),
    ],
)
def test_a_part_says_what_it_waits_for(core: float, streamed: float, fetch: float, ici: float, waits: str) -> None:
    part = Part(name="layers", core_s=core, streamed_s=streamed, fetch_s=fetch, ici_s=ici)
    assert part.binds == waits
    assert part.estimate_s == streamed + max(core + ici, fetch)


@pytest.mark.parametrize(("cycles", "expected"), [(0.0, 6.0), (100.0, 6.0), (120.0, 6.0), (200.0, 14.0)])
def test_what_streams_takes_the_transfer_or_the_work_that_is_not_the_transfer(cycles: float, expected: float) -> None:
    operation = Operation(scope="mlp", what="dot", cycles=cycles, count=3, streamed_bytes=60.0)
    assert streamed_s(operation, 10.0, 10.0) == expected


def test_scopes_come_longest_first(reading_of: Callable[..., Reading]) -> None:
    assert list(scopes_of(reading_of(), 100.0).items()) == [("mlp", 9.0), ("dot_product", 3.0), ("head", 1.0)]


def test_the_estimate_is_the_sum_of_its_parts_and_json_has_it(reading_of: Callable[..., Reading]) -> None:
    reading = reading_of()
    found = Estimate(
        parts=parts_of(reading, 100.0, 10.0, 2.0),
        scopes=scopes_of(reading, 100.0),
        roofline_s=20.0,
        overlapped_s=25.0,
        measured_s=None,
        measured_where="",
        largest=((reading.largest[0], 9.0),),
        clock_hz=100.0,
    )
    # At 100 Hz and 10 B/s: 1,200 cycles of the layers, 200 of them of what streams 60 B twice; 400 B are fetched.
    assert [(part.core_s, part.streamed_s, part.fetch_s) for part in found.parts] == [
        (10.0, 12.0, 40.0),
        (0.5, 9.0, 3.0),
    ]
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["estimate_s"] == sum(part["estimate_s"] for part in data["parts"]) == 12 + 40 + 9 + 3
    assert data["estimate_over_roofline"] == 64 / 20
    assert data["measured_over_estimate"] is None
    assert replace(found, measured_s=32.0).to_dict()["measured_over_estimate"] == 0.5
    assert data["largest"][0]["seconds"] == 9.0
