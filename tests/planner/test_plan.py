"""The plan: it meets its limits, is within 1 % of the best, and every candidate is accounted for."""

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import slicewise
from slicewise.errors import InputError
from slicewise.planner import feasible
from slicewise.planner.option import Option
from slicewise.planner.plan import Plan, headline
from slicewise.planner.question import OBJECTIVES
from slicewise.spec.model import reshaped

FLAGS: dict[str, st.SearchStrategy[Any]] = {
    "chip": st.sampled_from([["v5e"], ["v5p"], ["v6e"], ["h100"], ["l40s"], ["v5e", "h100"], ["v6e", "a100"]]),
    "weights": st.sampled_from([["bf16"], ["int8"], ["int8", "int4"]]),
    "kv": st.sampled_from([["bf16"], ["int8"]]),
    "isl": st.integers(1, 2**16),
    "osl": st.integers(1, 2**12),
    "context": st.integers(1, 2**17),
    "batch": st.integers(1, 500),
    "tpot": st.floats(0.001, 0.2),
    "ttft": st.floats(0.01, 20.0),
    "objective": st.sampled_from(OBJECTIVES),
    "rate": st.floats(0.1, 1000.0),
    "price": st.sampled_from([1.5, "v6e=2.7"]),
    "view": st.sampled_from(["roofline", "overlapped", "serial"]),
    "ici": st.sampled_from(["auto", "ring", "none"]),
    "split": st.sampled_from(["whole", "ideal"]),
    "kv_split": st.sampled_from(["batch", "copy"]),
    "book": st.booleans(),
    "params": st.just("70e9"),
}
QUESTIONS = st.fixed_dictionaries({}, optional=FLAGS)
MODELS = st.sampled_from(["llama-3-8b", "llama-2-13b", "llama-3-70b", "llama-3-405b"])


def objective_of(option: Option, plan: Plan) -> float:
    """What a plan is chosen by, the less the better, from the published numbers of an option."""
    step, asked = option.step, plan.question
    if asked.objective == "latency":
        return option.tpot_s
    if asked.objective == "throughput":
        return -float(step.tokens_per_s_per_chip or 0)
    request_s = step.deployment.workload.output_tokens * option.tpot_s / step.batch
    if not asked.workload.context_is_set:
        request_s += option.ttft_s
    price = step.deployment.price
    return request_s * step.n_chips * (price.usd_per_chip_hour if price else 1.0)


def options_of(plan: Plan) -> list[Option]:
    named = (plan.recommended, plan.smallest, plan.fastest, plan.highest_throughput, plan.runner_up)
    return [option for option in (*named, *plan.candidates) if option]


@settings(max_examples=150)
@given(MODELS, QUESTIONS)
def test_plans_keep_their_word(model: str, flags: dict[str, Any]) -> None:
    assume("v6e" in flags.get("chip", ["v5e"]) or flags.get("price") != "v6e=2.7")
    plan = slicewise.plan(model, **flags)
    asked = plan.question
    json.dumps(plan.to_dict(), allow_nan=False)

    # Every candidate is there once, taken or refused.
    assert len(plan.candidates) + len(plan.rejected) == len(asked.slices) * len(asked.precisions)
    assert sum(plan.to_dict()["rejected"].values()) == len(plan.rejected)
    assert all(item.reason and item.detail and "\n" not in item.detail for item in plan.rejected)
    assert plan.fits == (plan.recommended is not None) == bool(plan.candidates)

    # Whatever is named fits, meets the limits and has whole rounds of its shards.
    for option in [*options_of(plan), *(w.option for w in plan.what_ifs if w.option)]:
        step = option.step
        assert step.fits
        assert option.tpot_s == step.step_s
        assert asked.limits.tpot_s is None or option.tpot_s <= asked.limits.tpot_s
        assert asked.limits.ttft_s is None or option.ttft_s <= asked.limits.ttft_s
        counted = asked.conventions
        if asked.batch is not None:
            assert step.batch == asked.batch
        elif (counted.split, counted.kv_split) == ("whole", "batch") and step.batch % step.kv_batch_shards:
            # Less than a round of the shards, and only where a whole round does not do.
            shards = step.kv_batch_shards
            assert step.batch < shards
            round_s = step.deployment.value("step_s", batch=shards)
            slow = asked.limits.tpot_s and round_s > asked.limits.tpot_s
            lone = option is plan.fastest and step.batch == 1 and option.tpot_s < round_s
            assert slow or lone or step.max_batch < shards

    if plan.recommended is None:
        return
    scores = [objective_of(option, plan) for option in plan.candidates]
    assert scores == pytest.approx(sorted(scores), rel=1e-12)
    assert objective_of(plan.recommended, plan) <= scores[0] + abs(scores[0]) * 0.01 * (1 + 1e-9)
    assert plan.smallest
    assert plan.smallest.step.n_chips == min(option.step.n_chips for option in plan.candidates)
    if plan.smallest.step.n_chips == plan.recommended.step.n_chips:
        assert plan.smallest.step == plan.recommended.step
    assert plan.fastest
    assert plan.fastest.tpot_s <= min(option.tpot_s for option in options_of(plan))
    assert plan.highest_throughput
    rates = [option.step.tokens_per_s_per_chip or 0 for option in options_of(plan)]
    assert (plan.highest_throughput.step.tokens_per_s_per_chip or 0) >= max(rates) * (1 - 1e-12)
    assert (plan.fleet is not None) == (asked.rate is not None)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_within_one_percent_the_lowest_step_is_taken(objective: str) -> None:
    plan = slicewise.plan("llama-3-70b", weights="int8", kv="int8", tpot="30ms", objective=objective)
    best, taken = plan.candidates[0], plan.recommended
    assert taken
    assert taken.tpot_s <= best.tpot_s
    assert objective_of(taken, plan) <= objective_of(best, plan) + 0.01 * abs(objective_of(best, plan))


@pytest.mark.parametrize(
    ("flags", "goal"),
    [
        ({}, "the cheapest request"),
        ({"context": 8192}, "the cheapest decode"),
        ({"objective": "latency"}, "the lowest step"),
        ({"objective": "throughput"}, "the most tokens per chip"),
    ],
)
def test_a_plan_says_what_it_was_chosen_for(flags: dict[str, Any], goal: str) -> None:
    plan = slicewise.plan("llama-3-8b", **flags)
    assert plan.recommended
    assert plan.recommended.why.startswith(f"{goal}; of plans within 1 % of it the lowest step")


def test_the_runner_up_is_the_best_of_another_slice_or_precision() -> None:
    plan = slicewise.plan("llama-3-70b", weights=["int8", "int4"])
    assert plan.runner_up
    assert plan.recommended
    place = [(o.step.slice, o.step.weight_dtype) for o in (plan.recommended, plan.runner_up)]
    assert place[0] != place[1]


def test_the_least_param_load_is_that_of_the_widest_slice() -> None:
    plan = slicewise.plan("llama-3-70b", weights=["bf16", "int8"])
    # How to Scale Your Model, ch. 8, exercise 3: parameters alone on a full pod of v5e.
    assert plan.least_param_load.slice.name == "v5e:16x16"
    assert plan.least_param_load_s == pytest.approx(70_553_706_496 / (256 * 8.2e11))


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"chip": "v5e", "tpot": "1us"}, feasible.PARAM_LOAD),
        ({"chip": "v5e", "ttft": "1us"}, feasible.TTFT),
        ({"slice": "v5e:2x2"}, feasible.WEIGHTS),
        ({"slice": "v5e:4x4", "context": 2**20}, feasible.SEQUENCE),
        ({"slice": "v5e:4x4", "batch": 10_000}, feasible.BATCH),
    ],
)
def test_refused_candidates_are_counted_by_reason(flags: dict[str, Any], reason: str) -> None:
    plan = slicewise.plan("llama-3-70b", **flags)
    assert not plan.fits
    assert plan.to_dict()["rejected"][reason] >= 1
    assert plan.to_dict()["recommended"] is None
    with pytest.raises(InputError, match="nothing fits"):
        plan.explain()


def test_chips_without_a_price_are_not_ranked_by_cost_beside_chips_with_one() -> None:
    plan = slicewise.plan("llama-3-8b", chip=["v5e", "v6e"])
    assert {option.step.slice.split(":")[0] for option in plan.candidates} == {"v5e"}
    assert plan.to_dict()["rejected"][feasible.PRICE] == 8
    both = slicewise.plan("llama-3-8b", chip=["v5e", "v6e"], price="v6e=2.7")
    assert {option.step.slice.split(":")[0] for option in both.candidates} == {"v5e", "v6e"}
    alone = slicewise.plan("llama-3-8b", chip="v6e")
    assert alone.fits
    assert alone.recommended
    assert alone.recommended.request_usd is None


@pytest.mark.parametrize("chip", ["v5e", ["v5e", "v5p"]])
def test_a_dtype_that_no_chip_has_is_refused_outright(chip: str | list[str]) -> None:
    with pytest.raises(InputError, match=r"--compute fp4: v5. has no peak rate for it"):
        slicewise.plan("llama-3-8b", chip=chip, compute="fp4")


def test_chips_that_have_not_the_dtype_are_refused_beside_one_that_has() -> None:
    plan = slicewise.plan("llama-3-8b", chip=["v5e", "b200"], compute="fp4", objective="latency")
    assert plan.fits
    assert plan.to_dict()["rejected"] == {feasible.COMPUTE: 8}


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({"objective": "latency"}, "step_s"),
        ({"objective": "throughput"}, "tokens_per_s_per_chip"),
        ({}, "request_usd"),
        ({"context": 8192}, "usd_per_million_output_tokens"),
        ({"chip": "v6e"}, "tokens_per_s_per_chip"),
    ],
)
def test_the_headline_is_what_the_plan_is_chosen_by(flags: dict[str, Any], name: str) -> None:
    plan = slicewise.plan("llama-3-8b", **flags)
    assert plan.recommended
    assert headline(plan.recommended, plan.question.objective) == name
    assert plan.explain().name in (name, "step_s")
    found = getattr(plan.recommended, name, None) or getattr(plan.recommended.step, name, None)
    assert plan.explain().value == pytest.approx(found)


def test_numbers_of_the_fleet_can_be_explained() -> None:
    plan = slicewise.plan("llama-3-8b", rate=100)
    assert plan.fleet
    assert plan.explain("replicas").value == plan.fleet.replicas


@pytest.mark.parametrize("name", ["replicas", "prefill_servers"])
def test_numbers_of_a_fleet_that_was_not_asked_for_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(InputError) as refused:
        slicewise.plan("llama-3-8b").explain(name)
    assert "\n" not in str(refused.value)


def test_the_json_has_the_agreed_keys() -> None:
    found = slicewise.plan("llama-3-8b", tpot="20ms").to_dict()
    assert {"workload", "recommended", "candidates", "rejected"} <= set(found)
    assert {"ttft_s", "tpot_s", "why", "step_s", "batch"} <= set(found["recommended"])
    assert found["workload"]["tpot_s"] == 0.02


def test_a_lone_sequence_is_the_fastest_where_a_round_is_slower() -> None:
    # One KV head: a round of the batch shards is 256 sequences, whose network time a lone one does not have.
    model = reshaped(slicewise.load_model("llama-3-405b"), n_kv_heads=1)
    words = {"slice": "v5e:16x16", "weights": "int8", "view": "serial"}
    found = slicewise.plan(model, **words).fastest
    assert found is not None
    assert found.step.batch == 1
    assert found.tpot_s == slicewise.step(model, **words, batch=1).step_s
    asked = slicewise.plan(model, **words, batch=256).fastest
    assert asked is not None
    assert asked.step.batch == 256
