"""Plans over layouts of ranks: experts spread where that is cheaper, degrees as given, and one-line refusals."""

import json
from typing import Any

import pytest

import slicewise
from slicewise.cli.main import main
from slicewise.planner import feasible
from slicewise.planner.option import Option
from slicewise.planner.plan import Plan

MIXTURE = {"isl": 2048, "osl": 512}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def layouts_of(plan: Plan) -> set[str]:
    kept = {option.step.layout for option in plan.candidates}
    return kept | {item.layout for item in plan.rejected}


# -- experts ---------------------------------------------------------------------------------------------------------


def test_a_mixture_is_tried_with_its_experts_cut_and_spread() -> None:
    plan = slicewise.plan("qwen3-235b-a22b", slice="h200:8", **MIXTURE)
    assert layouts_of(plan) == {"", "tp 8 × ep 8", "tp 1 × dp 8 × ep 8"}
    dense = slicewise.plan("qwen3-32b", slice="h200:8", **MIXTURE)
    assert layouts_of(dense) == {""}


@pytest.mark.parametrize("objective", ["cost", "latency", "throughput"])
def test_the_layout_of_the_best_objective_is_taken(objective: str) -> None:
    plan = slicewise.plan("deepseek-v3", slice=["h200:8", "h200:16"], objective=objective, price=3.0, **MIXTURE)
    best = plan.recommended
    assert best is not None

    def score(option: Option) -> float:
        if objective == "throughput":
            return -(option.step.tokens_per_s_per_chip or 0)
        return option.tpot_s if objective == "latency" else option.request_usd or 0

    least = min(score(option) for option in plan.candidates)
    assert score(best) <= least + 0.01 * abs(least)
    tied = [option for option in plan.candidates if score(option) <= least + 0.01 * abs(least)]
    assert best.tpot_s <= min(option.tpot_s for option in tied)


def test_spreading_pays_for_a_large_batch_of_latents() -> None:
    # An even cut holds the latents of DeepSeek-V3 split by batch, but moves every token's activations to all chips.
    plan = slicewise.plan("deepseek-v3", slice="h200:16", price=3.0)
    assert plan.recommended is not None
    assert plan.recommended.step.layout == "tp 1 × dp 16 × ep 16"
    even = next(option for option in plan.candidates if option.step.layout == "")
    assert plan.recommended.request_usd is not None
    assert even.request_usd is not None
    assert plan.recommended.request_usd < even.request_usd


def test_what_experts_a_step_touches_is_said_and_where_they_are_spread_how_many_tokens_meet_them() -> None:
    words = {"slice": "h200:16", "batch": 64, "context": 4096}
    even = slicewise.step("deepseek-v3", **words)
    spread = slicewise.step("deepseek-v3", **words, dp=16, ep=16)
    for step in (even, spread):
        # 8 of 256 experts a token: 256 (1 - (1 - 1/32)^64) of a layer.
        assert step.experts_touched == pytest.approx(256 * (1 - (31 / 32) ** 64))
        assert step.tokens_per_expert == 2
    assert (even.expert_tokens_per_chip, even.fullest_expert_tokens_per_chip) == (None, None)
    assert spread.expert_tokens_per_chip == 64 * 8 / 16
    assert (spread.fullest_expert_tokens_per_chip or 0) > 32
    dense = slicewise.step("llama-3-8b", slice="h100:1", batch=1, context=1024)
    assert dense.experts_touched is dense.tokens_per_expert is None


def test_a_lone_sequence_reads_the_experts_of_one_token() -> None:
    step = slicewise.step("mixtral-8x7b", slice="h100:8", batch=1, context=1)
    read = (step.param_load_s or 0) * 8 * 3.35e12
    assert read == pytest.approx(2 * 12_879_925_248, rel=1e-3)
    full = slicewise.step("mixtral-8x7b", slice="h100:8", batch=512, context=1)
    assert (full.param_load_s or 0) * 8 * 3.35e12 == pytest.approx(2 * 46_702_792_704, rel=1e-3)


# -- degrees ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "layout"),
    [
        ({"tp": 8}, "tp 8"),
        ({"tp": "4"}, "tp 4 × dp 2"),
        ({"pp": 2}, "tp 4 × pp 2"),
        ({"dp": 2, "pp": 2}, "tp 2 × pp 2 × dp 2"),
        ({"dp": 8}, "tp 1 × dp 8"),
        ({"engine": "vllm"}, "tp 8"),
        ({"engine": "sglang", "dp": 4}, "tp 2 × dp 4"),
    ],
)
def test_degrees_that_are_given_are_kept_and_the_plainest_of_the_rest_is_shown(
    words: dict[str, Any], layout: str
) -> None:
    flags = {"slice": "h100:8", "batch": 8, "context": 1024, **words}
    assert slicewise.step("llama-3-8b", **flags).layout == layout
    assert slicewise.memory("llama-3-8b", **flags).ledger.layout == layout
    assert slicewise.prefill("llama-3-8b", slice="h100:8", isl=1024, **words).deployment.layout_name == layout


def test_a_plan_tries_every_legal_layout_with_the_given_degrees() -> None:
    plan = slicewise.plan("mixtral-8x7b", slice="h100:8", tp=4, **MIXTURE)
    assert layouts_of(plan) == {"tp 4 × dp 2", "tp 4 × dp 2 × ep 8", "tp 4 × pp 2", "tp 4 × pp 2 × ep 4"}
    assert all(option.step.layout.startswith("tp 4") for option in plan.candidates)


def test_slices_where_no_such_layout_is_legal_are_counted_with_the_reason() -> None:
    plan = slicewise.plan("llama-3-8b", chip="h100", tp=4, **MIXTURE)
    refused = {item.slice: item for item in plan.rejected if item.reason == feasible.LAYOUT}
    assert set(refused) == {"h100:1", "h100:2"}
    assert "--tp 4 on h100:2: tp 4 × pp 1 × dp 1 is 4 chips, not 2" in refused["h100:2"].detail
    assert plan.recommended is not None


def test_groups_serve_prompts_side_by_side() -> None:
    one, two = (slicewise.plan("llama-3-8b", slice="h100:8", tp=tp, dp=8 // tp, batch=64) for tp in (8, 4))
    assert one.recommended is not None
    assert two.recommended is not None
    assert one.recommended.ttft_s == one.recommended.prefill_s
    assert two.recommended.ttft_s == pytest.approx(2 * two.recommended.prefill_s)


# -- refusals --------------------------------------------------------------------------------------------------------

REFUSED = [
    (["plan", "llama-3-70b", "--slice", "h100:8", "--tp", "3"], "--tp 3 on h100:8: tp 3 × pp 1 × dp 1 is 3 chips"),
    (["step", "qwen2-7b", "--slice", "h100:8", "--tp", "8"], "28 query heads do not divide over tp 8"),
    (["memory", "mixtral-8x7b", "--slice", "h100:16", "--ep", "16"], "8 experts do not divide over ep 16"),
    (["limits", "llama-3-70b", "--slice", "h100:8", "--ep", "8"], "spreads experts, and llama-3-70b has none"),
    (["prefill", "deepseek-v3", "--slice", "h200:8", "--ep", "3"], "ep 3 does not divide the 8 ranks"),
    (["frontier", "llama-3-8b", "--slice", "h100:2", "--dp", "4"], "is 4 chips, not 2"),
]


@pytest.mark.parametrize(
    ("words", "said"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_an_illegal_layout_is_refused_in_one_sentence_that_lists_the_legal_ones(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err
    assert "; legal there: tp " in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "mixtral-8x7b", "--params", "47e9"], "mixtral-8x7b has experts: leave it out"),
        (["step", "llama-3-8b", "--tp", "8", "--params", "8e9"], "with ranks or an engine leave it out"),
        (["memory", "llama-3-8b", "--slice", "h100:8", "--engine", "vllm", "--params", "8e9"], "leave it out"),
        (["plan", "llama-3-8b", "--params", "500e6"], "500e6 is fewer than the 525,336,576 of the vocabulary"),
        (["plan", "llama-3-8b", "--tp", "0"], "--tp: 0 must be greater than 0"),
        (["plan", "llama-3-8b", "--dp", "1.5"], "--dp: 1.5 must be a whole number"),
        (["plan", "llama-3-8b", "--ep", "many"], "--ep: 'many' is not a quantity"),
        (["plan", "llama-3-8b", "--pp", "8k"], "--pp: '8k' may mean 1,000 or 1,024 times 8"),
        (["plan", "llama-3-8b", "--slice", "h100:8", "--engine", "vlm"], "unknown engine 'vlm': did you mean vllm"),
        (["memory", "llama-3-8b", "--slice", "h100:8", "--reserve", "2"], "--reserve: '2' has no unit"),
        (["memory", "llama-3-8b", "--slice", "h100:8", "--reserve", "-1GiB"], "--reserve: -1GiB must be at least 0"),
    ],
)
def test_words_of_layouts_that_are_off_are_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["memory", "deepseek-v3", "--slice", "h200:8", "--tp", "8"], 0),
        # 83 to 84 GB a chip do not fit 80: https://github.com/InternLM/lmdeploy/issues/2960
        (["memory", "deepseek-v3", "--slice", "h100:8", "--tp", "8"], 1),
        (["step", "deepseek-v3", "--slice", "h100:8", "--tp", "8"], 1),
        (["plan", "deepseek-v3", "--slice", "h100:8"], 1),
        (["memory", "llama-3-8b", "--slice", "h100:1", "--engine", "vllm", "--context", "4096"], 0),
        (["memory", "llama-3-8b", "--slice", "h100:1", "--reserve", "70GiB"], 1),
        (["memory", "deepseek-v3", "--slice", "h200:8", "--tp", "5"], 2),
    ],
)
def test_exit_codes(capsys: pytest.CaptureFixture[str], words: list[str], code: int) -> None:
    found, out, err = run(capsys, *words, "--json")
    assert found == code
    assert bool(out) == (code != 2)
    if code != 2:
        assert err == ""
        assert json.loads(out).get("fits", code == 0) == (code == 0)


# -- engines ---------------------------------------------------------------------------------------------------------


def test_an_engine_counts_what_it_keeps_unless_a_reserve_is_given() -> None:
    words = {"slice": "h100:8", "batch": 1, "context": 1024}
    bare, vllm = slicewise.step("llama-3-8b", **words, tp=8), slicewise.step("llama-3-8b", **words, engine="vllm")
    gib = 2**30
    assert bare.hbm_bytes - vllm.hbm_bytes == pytest.approx(8 * 4 * gib)
    given_ = slicewise.step("llama-3-8b", **words, engine="vllm", reserve="1GiB")
    assert bare.hbm_bytes - given_.hbm_bytes == pytest.approx(8 * gib)
    none = slicewise.step("llama-3-8b", **words, engine="vllm", reserve="0B")
    assert none.hbm_bytes == bare.hbm_bytes
    # A rotary table of 131,072 rows of 128 on every chip is vLLM's.
    assert none.weight_bytes - bare.weight_bytes == pytest.approx(8 * 131_072 * 128 * 2)


def test_a_plan_for_an_engine_is_of_ranks() -> None:
    plan = slicewise.plan("llama-3-70b", chip="h100", engine="vllm", **MIXTURE)
    assert plan.recommended is not None
    assert plan.recommended.step.layout
    assert "" not in layouts_of(plan)


@pytest.mark.parametrize("words", [{"tp": 8}, {"tp": 4, "pp": 2}, {"dp": 8, "ep": 8}, {"engine": "vllm", "dp": 2}])
def test_every_number_of_ranks_and_experts_is_explained(words: dict[str, Any]) -> None:
    step = slicewise.step("qwen3-30b-a3b", slice="h100:8", batch=64, context=4096, price=2.0, **words)
    for name, value in step.to_dict().items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            derivation = step.explain(name)
            assert derivation.value == value, name
            json.dumps(derivation.to_dict(), allow_nan=False)


@pytest.mark.parametrize("model", ["deepseek-v3", "nemotron-h-56b", "gemma-3-27b"])
@pytest.mark.parametrize("words", [{}, {"tp": 4, "pp": 2}])
def test_every_number_of_a_prefill_is_explained(model: str, words: dict[str, Any]) -> None:
    found = slicewise.prefill(model, slice="h200:8", isl=4096, price=2.0, **words)
    for name, value in found.to_dict().items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert found.explain(name).value == value, name
