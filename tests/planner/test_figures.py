"""Three figures of a number: each follows from the times by the same formulas, and the book has bounds only."""

import json
import math

import pytest

import slicewise
from slicewise.errors import InputError
from slicewise.planner.figures import expected_terms, times_of
from slicewise.planner.question import ask

H100 = {"slice": "h100:8", "weights": "fp8", "kv": "fp8"}


def test_every_number_of_a_step_is_told_three_times():
    found = slicewise.step("llama-3-70b", **H100, batch=32)
    assert found.figures is not None
    step = found.figures["step_s"]
    assert (step.bound, step.expected, step.low, step.high) == (
        found.step_overlapped_s,
        found.step_expected_s,
        found.step_low_s,
        found.step_high_s,
    )
    rate = found.figures["tokens_per_s"]
    assert rate.expected == pytest.approx(32 / step.expected)
    assert (rate.low, rate.high) == pytest.approx((32 / step.high, 32 / step.low))
    price = found.figures["usd_per_million_output_tokens"]
    assert price.expected == pytest.approx(found.usd_per_hour / 3600 / rate.expected * 1e6)
    assert price.bound <= price.low <= price.expected <= price.high


def test_of_rates_the_bound_is_the_most():
    for each in (slicewise.step("llama-3-70b", **H100).figures, slicewise.prefill("llama-3-70b", **H100).figures):
        for name, figures in each.items():
            if "per_s" in name:
                assert figures.low <= figures.expected <= figures.high <= figures.bound * (1 + 1e-12), name


def test_a_plan_is_chosen_by_what_is_expected():
    found = slicewise.plan("llama-3-70b", chip="h100")
    assert found.recommended.step.view == "expected"
    assert found.recommended.step.step_s == found.recommended.step.step_expected_s
    assert found.recommended.ttft_s == found.recommended.figures["ttft_s"].expected
    bounds = slicewise.plan("llama-3-70b", chip="h100", view="overlapped")
    assert bounds.recommended.step.step_s == bounds.recommended.step.step_overlapped_s


def test_limits_are_kept_by_what_is_expected():
    found = slicewise.plan("llama-3-70b", chip="h100", tpot="30ms").recommended
    assert found.step.step_expected_s <= 0.03
    assert found.step.step_overlapped_s < 0.03


def test_a_step_and_a_plan_expect_the_same():
    best = slicewise.plan("llama-3-70b", **H100).recommended.step
    step = slicewise.step("llama-3-70b", **H100, batch=best.batch)
    assert (step.view, step.step_expected_s) == ("overlapped", best.step_expected_s)


def test_the_book_has_bounds_only():
    step = slicewise.step("llama-3-70b", slice="v5e:4x4", book=True)
    assert (step.figures, step.step_expected_s, step.expected_terms, step.expected_engine) == (None,) * 4
    assert slicewise.prefill("llama-3-70b", slice="v5e:4x4", book=True).figures is None
    plan = slicewise.plan("llama-3-70b", book=True)
    assert (plan.recommended.step.view, plan.recommended.figures) == ("overlapped", None)
    assert slicewise.disaggregate("llama-3-70b", slice="v5e:4x4", book=True).figures is None
    frontier = slicewise.frontier("llama-3-70b", slice="v5e:4x4", book=True)
    assert "step_expected_s" not in frontier.columns
    assert frontier.figures is None is frontier.to_dict()["figures"]
    with pytest.raises(slicewise.InputError, match="--book shows bounds only"):
        slicewise.step("llama-3-70b", book=True, view="expected")


def test_what_does_not_fit_is_expected_to_take_no_time():
    found = slicewise.step("llama-3-70b", slice="h100:1")
    assert (found.fits, found.figures, found.step_expected_s) == (False, None, None)


def test_the_ratio_of_servers_has_each_phase_at_its_own_end():
    found = slicewise.disaggregate("llama-3-70b", **H100)
    ratio = found.figures["prefill_servers_per_decode_server"]
    step, prefill = found.figures["step_s"], found.figures["prefill_s"]
    of = found.batch / found.output_tokens
    assert ratio.expected == pytest.approx(of * prefill.expected / step.expected)
    assert (ratio.low, ratio.high) == pytest.approx((of * prefill.low / step.high, of * prefill.high / step.low))


def test_the_terms_of_an_expected_time():
    deployment = ask("llama-3-70b", H100).deployment()
    for name, end in (("step_expected_s", "step_s"), ("prefill_expected_s", "prefill_s")):
        terms = expected_terms(deployment, 16, name)
        assert sum(terms.values()) == pytest.approx(times_of(deployment, 16)["expected"][end])


def test_json_has_plain_numbers():
    found = slicewise.plan("llama-3-70b", chip=["h100", "l40s"], price=1, weights="fp8")
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert '"figures": {"step_s": {"bound": ' in text


def test_stages_are_told_by_the_slowest():
    found = slicewise.step("llama-3-70b", slice="h100:8", tp=4, pp=2, batch=16)
    assert found.figures["step_s"].expected == found.step_expected_s > found.step_overlapped_s


ENDS = ("bound", "expected", "low", "high")
DERIVED = {
    "compiled": ("llama-3-70b", {"slice": "v5e:4x4", "weights": "int8"}),
    "fitted": ("llama-3-70b", {"slice": "h100:8"}),
    "pipeline": ("llama-3-70b", {"slice": "h100:8", "tp": 2, "pp": 4}),
    "uneven pipeline": ("deepseek-v3", {"slice": "h200:16", "tp": 8, "pp": 2}),
    "roofline": ("llama-3-8b", {"slice": "v5e:2x2", "view": "roofline"}),
}


@pytest.mark.parametrize("asked", DERIVED)
def test_every_figure_is_derived(asked: str) -> None:
    model, words = DERIVED[asked]
    plan = slicewise.plan(model, **words)
    option, prefill = plan.recommended, slicewise.prefill(model, **words)
    assert option is not None
    told = [(option.step, option.step.figures), (option.step, option.figures), (prefill, prefill.figures)]
    for result, found in told:
        for name, each in found.items():
            for end in ENDS:
                assert result.explain(f"{name}:{end}").value == pytest.approx(getattr(each, end), rel=1e-12)


@pytest.mark.parametrize("asked", DERIVED)
def test_every_figure_of_a_frontier_is_that_of_a_step_and_derived(asked: str) -> None:
    model, words = DERIVED[asked]
    found = slicewise.frontier(model, **words)
    assert found.figures is not None
    assert set(found.figures) == {
        "step_s",
        "tokens_per_s_per_chip",
        *(["usd_per_million_output_tokens"] if found.deployment.price else []),
    }
    for row in (0, len(found.columns["batch"]) // 2, -1):
        step = slicewise.step(model, **words, batch=found.columns["batch"][row])
        for name, ends in found.figures.items():
            told = {end: column[row] for end, column in ends.items()}
            assert told == pytest.approx(step.figures[name].to_dict(), rel=1e-12), (name, row)
    for name, ends in found.figures.items():
        for end in ENDS:
            assert found.explain(f"{name}:{end}").value == pytest.approx(ends[end][-1], rel=1e-12), (name, end)


def test_every_figure_of_compared_plans_is_derived() -> None:
    found = slicewise.compare(["v5e:4x4", "h100:8", "v6e-16", "v5e:2x2"], model="llama-3-70b")
    best = {row.name: row.plan.recommended for row in found.rows if row.plan.recommended}
    assert list(best) == ["v5e:4x4", "h100:8", "v6e-16"]
    told = {name: {**option.step.figures, **option.figures} for name, option in best.items()}
    for number in told["h100:8"]:
        for end in ENDS:
            derived = {part.name: part.value for part in found.explain(f"{number}:{end}").parts}
            figures = {name: getattr(each[number], end) for name, each in told.items() if number in each}
            assert derived == pytest.approx(figures, rel=1e-12), (number, end)
    # Without a price there are no dollars to derive.
    assert [part.name for part in found.explain("request_usd:low").parts] == ["v5e:4x4", "h100:8"]
    assert [part.name for part in found.explain("step_s:low").parts] == ["v5e:4x4", "h100:8", "v6e-16"]


def test_what_no_compared_plan_has_is_refused() -> None:
    with pytest.raises(InputError, match="no plan has it"):
        slicewise.compare(["v5e:2x2"], model="llama-3-70b").explain("step_s:low")
    with pytest.raises(InputError, match="no plan has it"):
        slicewise.compare(["v6e-16"], model="llama-3-70b").explain("request_usd")
    with pytest.raises(InputError, match="unknown number 'speed'"):
        slicewise.compare(["v5e:4x4"], model="llama-3-70b").explain("speed")


@pytest.mark.parametrize("words", [H100, {"slice": "v5e:4x4", "prefill_slice": "h100:8"}])
def test_the_first_token_of_split_servers_waits_for_the_hand_off(words: dict[str, str]) -> None:
    """At the rate of the slower end, which may be the one that takes it in."""
    found = slicewise.disaggregate("llama-3-70b", **words)
    for end in ENDS:
        prefill, split = (getattr(found.figures[name], end) for name in ("prefill_s", "ttft_split_s"))
        assert split == pytest.approx(prefill + found.handoff_s)
    assert found.figures["ttft_split_s"].expected == found.ttft_split_s
    assert found.figures["tpot_shared_s"].expected == found.tpot_shared_s


def test_where_the_hand_off_is_not_known_it_has_no_figures() -> None:
    found = slicewise.disaggregate("llama-3-8b", slice="l40s:8")
    assert found.ttft_split_s is None
    assert "ttft_split_s" not in found.figures
    assert "tpot_shared_s" in found.figures


@pytest.mark.parametrize("elsewhere", [{}, {"prefill_slice": "v5p:2x2x1"}, {"slice": "h100:8", "tp": 2, "pp": 4}])
def test_every_figure_of_servers_is_derived(elsewhere: dict[str, str]) -> None:
    found = slicewise.disaggregate("llama-3-70b", **{"slice": "v5e:4x4", "weights": "int8", **elsewhere})
    assert {"ttft_split_s", "tpot_shared_s"} < set(found.figures)
    for name, each in found.figures.items():
        for end in ENDS:
            assert found.explain(f"{name}:{end}").value == pytest.approx(getattr(each, end), rel=1e-12)


def test_an_end_rests_on_the_times_at_that_end() -> None:
    found = slicewise.step("llama-3-70b", slice="v5e:4x4", weights="int8").explain("tokens_per_s:low")
    (step,) = (part for part in found.parts if part.name == "step_s")
    assert [part.name for part in step.parts] == ["step_high_s"]
    assert step.value == step.parts[0].value


def test_the_books_conventions_have_no_range() -> None:
    with pytest.raises(InputError, match="bounds only"):
        slicewise.step("llama-3-70b", slice="v5e:4x4", book=True).explain("step_s:low")


def test_terms_of_a_step_are_derived_as_they_count() -> None:
    for slice_ in ("v5e:4x4", "h100:8"):
        found = slicewise.step("llama-3-70b", slice=slice_, batch=16)
        terms = {name: found.explain(f"term:{name}").value for name in found.expected_terms}
        assert terms == pytest.approx(found.expected_terms)
        rest = found.explain("term:up_to_bound").value
        assert sum(terms.values()) + rest == pytest.approx(found.step_expected_s)


def test_a_pipelines_times_are_derived_stage_by_stage() -> None:
    """A quantity that rests on both phases takes each of its own slowest stage."""
    found = slicewise.plan("deepseek-v3", slice="h200:16", tp=8, pp=2).recommended
    assert found is not None
    for name in ("ttft_s", "tpot_shared_s", "requests_per_s_shared"):
        assert found.step.explain(name).value == pytest.approx(getattr(found, name), rel=1e-12)
    split = slicewise.disaggregate("deepseek-v3", slice="h200:16", tp=8, pp=2)
    ratio = split.explain()
    assert ratio.value == split.prefill_servers_per_decode_server
    assert ratio.value == pytest.approx(split.decode_requests_per_s / split.prefill_requests_per_s, rel=1e-9)


def test_a_pipelines_servers_keep_up_with_the_rate() -> None:
    """What is counted rests on both phases, each at the pace of its own slowest stage."""
    found = slicewise.plan("deepseek-v3", slice="h200:16", tp=8, pp=2, rate=174)
    option, fleet = found.recommended, found.fleet
    assert option is not None
    assert fleet is not None
    assert fleet.replicas == math.ceil(174 / option.requests_per_s_shared)
    assert found.explain("replicas").value == fleet.replicas
