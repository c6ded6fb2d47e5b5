"""What the fullest chips hold: layers that are alike either way, parts that sum up, and the stage that fills first."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.catalog.slices import load_slice
from slicewise.planner.conventions import Conventions
from slicewise.planner.deployment import Deployment
from slicewise.planner.engines import TPU_INFERENCE, VLLM, Engine
from slicewise.planner.holding import (
    is_plain,
    layered_inputs,
    layered_words,
    stored_weights,
    weight_bytes_per_param,
)
from slicewise.planner.step import LEDGER, RATES, TIMES
from slicewise.spec.precision import BYTES_PER_ELEMENT, Precision
from slicewise.spec.ranks import VOCAB_MULTIPLE, Ranks, cache_copies, rank_weights, stages
from slicewise.spec.tensors import caches
from slicewise.spec.workload import Workload
from slicewise.units import GIB

BF16 = Precision()
GRANTED = 80e9
SAME = (*LEDGER, *TIMES, *RATES, "prefill_flops", "prefill_s", "handoff_bytes", "max_context_tokens", "shared_s")


def deployed(model: str, slice_: str, ranks: Ranks | None = None, **changes: Any) -> Deployment:
    found = Deployment(
        model=load_model(model),
        slice=load_slice(slice_),
        precision=BF16,
        workload=Workload(prompt_tokens=8192, output_tokens=512, context_tokens=8448, capacity_context_tokens=8704),
        conventions=Conventions(),
        mfu=0.4,
        price=None,
        ranks=ranks,
    )
    return found.with_(**changes)


def as_layered(deployment: Deployment) -> Deployment:
    """The same, by the formulas for layers of several kinds."""
    forced = deployment.with_()
    forced.__dict__["is_layered"] = True
    return forced


# -- layers that are alike -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["llama-3-70b", "mistral-7b-v0.1", "qwen3-8b", "chapter-7-exercise", "phi-2"])
def test_layers_of_one_kind_are_plain(model: str) -> None:
    assert is_plain(load_model(model))


@pytest.mark.parametrize(
    "model",
    ["gemma-2-9b", "mixtral-8x7b", "deepseek-v3", "nemotron-h-56b", "qwen3.6-27b", "qwen3-vl-8b", "nemotron-super-49b"],
)
def test_windows_latents_states_experts_and_towers_are_not(model: str) -> None:
    assert not is_plain(load_model(model))


@given(deployment=..., batch=st.integers(1, 10_000))
def test_layers_that_are_alike_give_the_same_numbers_either_way(deployment: Deployment, batch: int) -> None:
    assume(is_plain(deployment.model))
    plain = deployment.with_(ranks=None, engine=None)
    assert not plain.is_layered
    layered = as_layered(plain)
    assert layered.graph is not plain.graph
    for name, value in plain.evaluate(SAME, batch=batch).items():
        assert float(layered.value(name, batch=batch)) == pytest.approx(float(value), rel=1e-12), name


def test_ranks_over_all_chips_equal_an_even_cut_up_to_norms_and_the_vocabularys_padding() -> None:
    even, ranked = deployed("llama-3-70b", "h100:8"), deployed("llama-3-70b", "h100:8", Ranks(tp=8))
    # Norms are whole on every chip: 161 vectors of 8,192; 128,256 rows of the vocabulary are a multiple of 64.
    copied = 7 * 161 * 8192 * 2
    assert ranked.value("weight_bytes") - even.value("weight_bytes") == pytest.approx(copied, abs=1)
    same = [name for name in SAME if "weight" not in name and name not in ("total_bytes", "free_bytes")]
    bound_to_weights = {"total_bytes_per_chip", "max_batch", "param_load_s", "shared_s", "max_context_tokens"}
    for name in set(same) - bound_to_weights:
        found, expected = (float(d.value(name, batch=64)) for d in (ranked, even))
        assert found == pytest.approx(expected, rel=1e-4), name
    assert ranked.value("param_load_s") == pytest.approx(even.value("param_load_s"), rel=1e-3)


# -- parts and wholes ------------------------------------------------------------------------------------------------


@given(...)
def test_an_even_cut_holds_each_weight_and_each_cache_once(deployment: Deployment) -> None:
    even = deployment.with_(ranks=None, engine=None)
    held = even.holding
    assert held.held == ()
    assert held.caches == caches(even.model)
    expected = sum(weight.n_bytes for weight in held.stored)
    if even.params is None:
        assert even.value("weight_bytes") == pytest.approx(expected)


@given(...)
def test_the_fullest_ranks_hold_the_model_at_least_once(deployment: Deployment) -> None:
    assume(deployment.ranks is not None)
    ranks = deployment.ranks
    assert ranks is not None
    once = sum(weight.n_bytes for weight in deployment.holding.stored)
    by_stage = [
        sum(weight.n_bytes for weight in rank_weights(deployment.holding.stored, deployment.model, ranks, stage))
        for stage in range(ranks.pp)
    ]
    assert sum(by_stage) * ranks.stage_chips >= once * (1 - 1e-9)
    # A rank holds no more than the model, but for the padding of the vocabulary twice.
    padding = 2 * VOCAB_MULTIPLE * deployment.model.d_model * 4
    assert max(by_stage) <= once + padding
    for cache, kept in zip(deployment.holding.caches, caches(deployment.model), strict=True):
        assert cache.copies <= ranks.tp * ranks.pp * 64
        # What belongs to no head is scored on every tensor rank, and is else what the model keeps.
        again = 1 if kept.head_dim or kept.state_bytes else ranks.tp
        assert cache.decode_flops_per_token == again * kept.decode_flops_per_token
        own = {name: getattr(kept, name) for name in ("copies", "decode_flops_per_token", "prefill_flops_per_token")}
        assert replace(cache, **own) == kept


@given(...)
def test_experts_of_all_groups_are_those_that_are_stored(deployment: Deployment) -> None:
    assume(deployment.model.n_experts > 0)
    even = deployment.with_(ranks=None, engine=None)
    routed = sum(weight.n_bytes for weight in even.holding.stored if weight.tensor.n_active)
    assert even.value("expert_bytes") == pytest.approx(routed)
    assert all(group.n_active <= group.n_experts for group in even.inputs["expert_groups"])


@given(deployment=..., batch=st.integers(1, 10_000))
def test_a_step_of_experts_reads_between_the_active_and_all_parameters(deployment: Deployment, batch: int) -> None:
    assume(deployment.model.n_experts > 0)
    values = deployment.evaluate(
        ["weight_bytes", "param_read_bytes", "expert_bytes", "idle_bytes", "routed_tokens"], batch=batch
    )
    held, read = float(values["weight_bytes"]), float(values["param_read_bytes"])
    assert read <= held * (1 + 1e-12)
    if values["routed_tokens"] >= 1:
        share = min(ff.n_active / ff.n_experts for ff in deployment.model.feed_forwards if ff.n_experts)
        least = held - values["idle_bytes"] - values["expert_bytes"] * (1 - share)
        assert read >= least * (1 - 1e-9)


# -- counts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "slice_", "ranks", "gathers", "exchanges", "sent"),
    [
        # Two around attention and two around the MLP of 80 layers; queries to batch shards and back.
        ("llama-3-70b", "v5e:4x4", None, 320, 160, 0),
        ("llama-3-70b", "v5e:4x4", Ranks(tp=8, dp=2), 320, 0, 0),
        # 61 layers of attention, 3 dense MLPs, and 58 mixtures that are cut like MLPs, or that tokens are sent to.
        ("deepseek-v3", "h100:16", Ranks(tp=16), 4 * 61, 0, 0),
        # The shared expert beside them is cut over the tensor ranks, and gathers all the same.
        ("deepseek-v3", "h100:16", Ranks(tp=16, ep=16), 2 * (61 + 3) + 2 * 58, 0, 2 * 58),
        ("deepseek-v3", "h100:16", Ranks(dp=16, ep=16), 2 * (61 + 3), 0, 2 * 58),
        # Experts are cut over groups with tokens of their own: all of these are gathered, which is counted apart.
        ("deepseek-v3", "h100:16", Ranks(dp=16), 2 * (61 + 3), 0, 0),
        # Recurrences have no queries to exchange, and a layer is a mixer or an MLP.
        ("nemotron-h-56b", "h100:16", None, 2 * 118, 2 * 10, 0),
    ],
)
def test_collectives_are_counted_layer_by_layer(
    model: str, slice_: str, ranks: Ranks | None, gathers: int, exchanges: int, sent: int
) -> None:
    found = as_layered(deployed(model, slice_, ranks)).inputs
    assert [found[name] for name in ("n_all_gathers", "n_all_to_alls", "n_expert_all_to_alls")] == [
        gathers, exchanges, sent,
    ]  # fmt: skip


def test_queries_are_those_of_the_layers_that_attend_on_average() -> None:
    # Nemotron-H has queries in 10 of its 118 layers, Gemma 4 wider ones in its full layers.
    assert deployed("nemotron-h-56b", "h100:8").inputs["query_elements"] == 64 * 128
    assert deployed("gemma-4-31b", "h100:8").inputs["query_elements"] == (50 * 32 * 256 + 10 * 32 * 512) / 60


@given(...)
def test_every_number_put_together_here_has_its_words(deployment: Deployment) -> None:
    found = layered_inputs(
        deployment.model, deployment.precision, deployment.ranks, deployment.slice.n_chips, deployment.holding
    )
    lists = {"expert_groups", "kv_segments"}
    assert layered_words(deployment.model, deployment.ranks).keys() <= found.keys()
    assert {name for name in found.keys() - lists if not deployment.origins.get(name, ("",))[0]} == set()


# -- bytes of a weight -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", BYTES_PER_ELEMENT)
def test_weights_of_one_dtype_weigh_it(dtype: str) -> None:
    stored = stored_weights(load_model("deepseek-v3"), Precision(weights=dtype))
    assert weight_bytes_per_param(stored) == pytest.approx(BYTES_PER_ELEMENT[dtype])


def test_weights_as_stored_weigh_what_a_token_uses_of_them_on_average() -> None:
    # 8-bit but for the bf16 head and router: 1 byte, 4 of scale for 128 x 128, and 2 for some of a token's 37e9.
    stored = stored_weights(load_model("deepseek-v3"), Precision(weights="fp8", as_stored=True))
    assert 1 + 4 / 128**2 < weight_bytes_per_param(stored) < 1.1


def test_files_that_were_read_win_over_the_count() -> None:
    model = load_model("qwen3-32b-fp8")
    counted = sum(weight.n_bytes for weight in stored_weights(model, Precision(weights="fp8", as_stored=True)))
    read = replace(model, checkpoint_bytes=counted * 1.02)
    precision = Precision(weights="fp8", as_stored=True)
    assert sum(weight.n_bytes for weight in stored_weights(read, precision)) == pytest.approx(counted * 1.02)
    assert stored_weights(read, Precision(weights="bf16")) == stored_weights(model, Precision(weights="bf16"))


# -- the stage that fills first --------------------------------------------------------------------------------------


def by_stages(deployment: Deployment, batch: int, tokens: float) -> list[float]:
    """Bytes that a chip of each stage must hold, put together from what it has."""
    ranks, width = deployment.ranks, BYTES_PER_ELEMENT[deployment.precision.kv]
    assert ranks is not None
    whole = deployment.conventions.split == "whole"
    mine = math.ceil(batch / ranks.dp) if whole else batch / ranks.dp
    activations = float(deployment.value("activation_bytes", batch=batch)) / deployment.slice.n_chips
    found = []
    for stage, layers in enumerate(stages(deployment.model.n_layers, ranks.pp)):
        weights = rank_weights(deployment.holding.stored, deployment.model, ranks, stage)
        sequence = sum(
            len(set(layers) & set(cache.layers))
            * cache_copies(cache, ranks.tp)
            / ranks.tp
            * (
                (cache.elements_per_token * width + cache.other_bytes_per_token) * min(tokens, cache.window)
                + cache.state_bytes
            )
            for cache in caches(deployment.model)
        )
        found.append(sum(weight.n_bytes for weight in weights) + mine * sequence + activations)
    return found


@given(...)
def test_the_largest_batch_fits_every_stage_and_one_more_does_not(deployment: Deployment) -> None:
    assume(deployment.ranks is not None)
    bare = deployment.with_(engine=None)
    granted = float(bare.value("hbm_bytes")) / bare.slice.n_chips
    longest = bare.workload.capacity_context_tokens
    most = int(bare.value("max_batch"))
    slack = 1 + 1e-9
    if most:
        assert max(by_stages(bare, most, longest)) <= granted * slack
    assert max(by_stages(bare, most + 1, longest)) * slack >= granted


def test_a_stage_without_experts_says_that_it_has_none() -> None:
    # The first of 32 stages of DeepSeek-V3 has dense layers alone; its list of experts is no blank.
    deployment = deployed("deepseek-v3", "h100:32", Ranks(tp=1, pp=32))
    assert deployment.at_stage(0)["expert_groups"] == ()
    first = deployment.with_()
    first.__dict__["holding"] = deployment.holdings[0]
    assert first.origins["expert_groups"][0] == "none"


@given(...)
def test_a_sequence_takes_on_a_stage_what_the_formula_says(deployment: Deployment) -> None:
    assume(deployment.is_layered)
    width, longest = BYTES_PER_ELEMENT[deployment.precision.kv], deployment.workload.capacity_context_tokens
    for part in deployment.holdings:
        found = deployment.value("kv_bytes_per_sequence", **deployment.at_stage(part.stage))
        assert part.sequence_bytes(width, longest) == pytest.approx(float(found))


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        (None, {"pipeline_stages": 1, "batch_groups": 1, "prompts_in_flight": 1, "expert_ways": 1}),
        (Ranks(tp=16), {"pipeline_stages": 1, "batch_groups": 1, "prompts_in_flight": 1, "expert_ways": 1}),
        (Ranks(tp=4, pp=2, dp=2), {"pipeline_stages": 2, "batch_groups": 4, "prompts_in_flight": 4, "expert_ways": 1}),
        (Ranks(dp=16, ep=16), {"pipeline_stages": 1, "batch_groups": 16, "prompts_in_flight": 16, "expert_ways": 16}),
    ],
)
def test_degrees_are_handed_to_the_formulas(ranks: Ranks | None, expected: dict[str, int]) -> None:
    found = deployed("deepseek-v3", "h200:16", ranks).inputs
    assert {name: found[name] for name in expected} == expected
    sizes = {"n_experts": 256, "n_active": 8, "expert_d_ff": 2048}
    assert {name: found[name] for name in sizes} == sizes


def test_a_dense_model_has_one_expert_that_every_token_is_sent_to() -> None:
    found = as_layered(deployed("llama-3-8b", "h100:1")).inputs
    assert (found["n_experts"], found["n_active"], found["expert_d_ff"], found["expert_groups"]) == (1, 1, 0, ())


def test_experts_in_4_bit_floats_are_as_wide_as_their_kernel_where_the_chip_has_none() -> None:
    # gpt-oss-120b: 65.97 GiB on H100 in vLLM's log, whose kernel pads 2,880 to 3,072.
    precision = Precision(weights="fp4", as_stored=True)
    hopper, blackwell, bare = (
        deployed("gpt-oss-120b", slice_, Ranks(), precision=precision, engine=engine).holding.held_bytes
        for slice_, engine in (("h100:1", Engine(name=VLLM)), ("b200:1", Engine(name=VLLM)), ("h100:1", None))
    )
    assert hopper / GIB == pytest.approx(65.97, rel=0.01)
    assert blackwell == bare < hopper * 0.95


def test_rows_of_few_heads_are_padded_on_a_tpu() -> None:
    # One KV head a chip in fp8 takes the rows of bf16, two do not.
    for ranks, padding in ((8, 2.0), (4, 1.0)):
        slice_ = f"v6e-{ranks}"
        plain = deployed("llama-3-70b", slice_, Ranks(tp=ranks), precision=Precision(kv="fp8"))
        tpu = plain.with_(engine=Engine(name=TPU_INFERENCE))
        assert float(tpu.value("kv_copies")) == padding * float(plain.value("kv_copies"))
