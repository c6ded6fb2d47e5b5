"""The fit: it gives back what it was made from, and what it never saw is told from the rest."""

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from helpers.synthetic import KNOWN, measured, synthetic
from slicewise.calibrate.fit import START, Fit, bounds_s, fit, measured_s, told_by_rows
from slicewise.calibrate.held_out import ENOUGH, error_of, family_ranges, groups_of, left_out, ranges, told
from slicewise.calibrate.terms import TERMS, UnusableError, point_of
from slicewise.errors import InputError
from slicewise.planner.step import step


def test_a_synthetic_file_gives_its_efficiencies_back():
    points = synthetic()
    found = fit(points, ["h100"] * len(points), shared=(), hold=1e-6).groups["h100"]
    told_by_rows = [term for term in TERMS if term != "prefill8"]
    assert {term: found[term] for term in told_by_rows} == pytest.approx(
        {term: KNOWN[term] for term in told_by_rows}, rel=0.01
    )


def test_noise_moves_expected_times_less_than_itself():
    points = synthetic(noise=0.05)
    found = fit(points, ["h100"] * len(points), shared=())
    exact = Fit(groups={"h100": KNOWN}).expected_s(points, ["h100"] * len(points))
    assert np.median(np.abs(found.expected_s(points, ["h100"] * len(points)) / exact - 1)) < 0.02


def test_what_the_rows_do_not_tell_stays_where_it_started():
    points = [point for point in synthetic() if point.phase == "decode" and point.n_chips == 1]
    found = fit(points, ["h100"] * len(points), shared=()).groups["h100"]
    for term in ("network", "sync", "prefill16", "prefill8", "prefill_tokens"):
        assert found[term] == pytest.approx(START[term], rel=1e-3)


def test_a_row_that_is_far_off_does_not_bend_the_rest():
    points = synthetic()
    bent = [replace(points[0], measurement=replace(points[0].measurement, seconds=measured_s(points)[0] * 10))]
    found = fit([*bent, *points[1:]], ["h100"] * len(points), shared=())
    rest = found.expected_s(points[1:], ["h100"] * (len(points) - 1)) / measured_s(points[1:])
    assert np.median(np.abs(rest - 1)) < 0.02


def test_a_shared_coefficient_is_one_for_all_groups():
    points = [*synthetic("h100"), *synthetic("a100")]
    groups = [point.chip for point in points]
    found = fit(points, groups)
    assert found.groups["h100"]["kv"] == found.groups["a100"]["kv"]
    assert set(found.groups) == {"h100", "a100"}


def test_expected_is_never_below_the_bound():
    points = synthetic()
    none = Fit(groups={"h100": dict.fromkeys(TERMS, 0.0)})
    assert np.array_equal(none.expected_s(points, ["h100"] * len(points)), bounds_s(points))


def test_the_terms_are_those_of_the_planner():
    point = point_of(measured())
    plan = step("llama-3-8b", slice="h100:1", batch=8, isl=1024, osl=256)
    terms = dict(zip(TERMS, point.terms.tolist(), strict=True))
    assert terms["weights"] == pytest.approx(plan.param_load_s)
    assert terms["kv"] == pytest.approx(plan.kv_load_s)
    assert terms["flops"] == pytest.approx(plan.matmul_s + plan.attention_flops_s)
    assert (terms["network"], terms["layers"], terms["sync"]) == (0, 32, 0)
    assert point.bound_s == pytest.approx(plan.step_overlapped_s)


def test_end_to_end_is_a_prefill_and_the_steps_after_its_token():
    whole = point_of(measured(phase="end_to_end"))
    parts = point_of(measured(phase="prefill")).terms + 255 * point_of(measured()).terms
    assert whole.terms == pytest.approx(parts)


def test_a_file_of_another_size_is_read_for_as_long():
    plain, half = point_of(measured()), point_of(measured(weight_bytes=8_030_261_248.0))
    assert half.terms[0] == pytest.approx(plain.terms[0] / 2)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"batch": 100_000}, "more sequences than fit"),
        ({"slice": "h100:8", "layout": {"tp": 4, "pp": 2}}, "pipeline stages"),
        ({"slice": "h100:8", "layout": {"tp": 4, "dp": 2}}, "data parallelism"),
    ],
)
def test_what_tells_nothing_is_refused_in_words(words, why):
    with pytest.raises(UnusableError, match=why):
        point_of(measured(**words))


def test_what_is_not_understood_is_another_matter():
    with pytest.raises(InputError, match="no-such-model") as caught:
        point_of(measured(model="no-such-model"))
    assert not isinstance(caught.value, UnusableError)


def test_a_left_out_model_is_told_from_the_others():
    points = synthetic()
    groups, models = ["h100"] * len(points), [point.model for point in points]
    expected_s = left_out(points, groups, models, partial(fit, shared=()))
    # What was left out is of the same making, so that the rest tells it.
    assert np.median(np.abs(expected_s / measured_s(points) - 1)) < 0.02


def test_what_the_rows_tell_of_a_figure():
    points = synthetic()
    found = fit(points, ["h100"] * len(points), shared=(), hold=0.5).groups["h100"]
    share = told_by_rows(points, found, 0.5)
    assert share["prefill8"] == 0
    assert all(0 <= each <= 1 for each in share.values())
    assert min(share["weights"], share["kv"], share["prefill16"]) > 0.99
    # In prefill a token's FLOPs and its passes grow alike: the rows hardly tell one from the other.
    assert share["prefill_tokens"] < 0.8
    alone = told_by_rows([point for point in points if point.n_chips == 1], found, 0.5)
    assert alone["network"] == alone["sync"] == 0


def test_a_familys_own_rows_tell_its_range_and_few_models_are_widened():
    points = [*synthetic("h100", noise=0.02), *synthetic("a100", noise=0.2)]
    families = [point.chip for point in points]
    exact = Fit(groups=dict.fromkeys(("h100", "a100"), KNOWN)).expected_s(points, families)
    found, together = family_ranges(points, exact, families), ranges(points, exact)
    for key in ("decode 2+", "prefill 2+"):
        assert found["h100"][key].high < together[key].high < found["a100"][key].high
    # On one chip two models ran: as far as on all chips, and no nearer than its own rows.
    one = [i for i, point in enumerate(points) if point.chip == "h100" and "decode 1" in groups_of(point)]
    assert len({points[i].model for i in one}) == 2
    assert found["h100"]["decode 1"].high == together["decode 1"].high
    assert found["h100"]["decode 1"].n_rows == len(one)
    assert found["h100"]["decode 1"].range_rows == together["decode 1"].n_rows


def test_large_batches_of_few_models_reach_as_far_as_on_one_chip():
    points = [point for point in synthetic() if point.phase == "decode"]
    wild = {"llama-3-8b": 1.5, "llama-2-13b": 1.5}
    seconds = measured_s(points)
    off = np.array([wild.get(p.model, 1.01) if p.n_chips == 1 else 1.01 for p in points])
    many = [p for p in points for _ in range(4)]
    expected_s = np.repeat(seconds / off, 4)
    found = family_ranges(many, expected_s, ["hopper"] * len(many))["hopper"]
    models = {p.model for p in many if "decode 2+ large" in groups_of(p)}
    assert len(models) == 3
    few = [i for i, p in enumerate(many) if p.model != "llama-2-13b" or p.n_chips == 1]
    widened = family_ranges([many[i] for i in few], expected_s[few], ["hopper"] * len(few))["hopper"]
    assert found["decode 2+ large"].high == pytest.approx(1.01)
    assert widened["decode 2+ large"].high == pytest.approx(1.5)
    assert widened["decode 2+"].high == pytest.approx(1.01)


def test_with_one_model_nothing_can_be_told():
    points = [point for point in synthetic() if point.model == "llama-3-8b"]
    assert np.isnan(left_out(points, ["h100"] * len(points), [point.model for point in points])).all()


def test_ranges_hold_eight_of_ten():
    ratio = np.exp(0.1 * np.random.default_rng(3).standard_normal(4000))
    error = error_of(ratio, 1)
    assert np.mean((ratio >= error.low) & (ratio <= error.high)) == pytest.approx(0.8, abs=0.01)
    assert error.low == pytest.approx(1 / error.high)


def test_few_rows_widen_their_range():
    assert error_of(np.array([0.9, 1.0, 1.2]), 1).high == pytest.approx(1.2)


def test_a_source_of_many_rows_weighs_no_more_than_one_of_few():
    ratio = np.array([1.01] * 90 + [1.5] * 10)
    assert error_of(ratio, 2).high == pytest.approx(1.01)
    assert error_of(ratio, 2, np.array([1 / 90] * 90 + [1 / 10] * 10)).high == pytest.approx(1.5)


def test_told_covers_noise():
    points = synthetic(noise=0.05)
    groups, models = ["h100"] * len(points), [point.model for point in points]
    found = told(points, groups, models, partial(fit, shared=()))
    assert 0.6 < np.mean(found.is_covered) <= 1
    rows = Counter(name for point in points for name in groups_of(point))
    assert set(ranges(points, found.expected_s)) == {name for name, count in rows.items() if count >= ENOUGH}


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ({}, ("decode 1",)),
        ({"batch": 64, "model": "llama-3.2-1b"}, ("decode 1 large",)),
        ({"slice": "h100:2"}, ("decode 2+",)),
        ({"phase": "prefill", "batch": 64, "model": "llama-3.2-1b"}, ("prefill 1",)),
        ({"phase": "end_to_end", "slice": "h100:2"}, ("decode 2+", "prefill 2+")),
    ],
)
def test_a_row_tells_the_ranges_of_its_phases(words, groups):
    assert groups_of(point_of(measured(**words))) == groups
