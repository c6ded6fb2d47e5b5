"""What each rank holds: against start-up logs of engines, and by what must hold of any division."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.errors import InputError
from slicewise.spec.arrays import Cache, Tensor
from slicewise.spec.feed_forward import dense, experts
from slicewise.spec.latent import latent_attention
from slicewise.spec.model import Layer, Model, dense_model
from slicewise.spec.quantisation import Quantisation, Scheme
from slicewise.spec.ranks import (
    Ranks,
    cache_copies,
    kv_bytes_per_token_per_chip,
    padded_vocab,
    rank_weights,
    rope_table_bytes,
    share,
    stages,
    weight_bytes_per_chip,
)
from slicewise.spec.recurrences import recurrence
from slicewise.spec.stored import as_checkpoint, uniform
from slicewise.spec.tensors import caches, weight_tensors
from slicewise.units import GB, GIB


def gqa(name: str, n_layers: int, d_model: int, d_ff: int, n_heads: int, n_kv_heads: int, **rest: object) -> Model:
    sizes = {"n_layers": n_layers, "d_model": d_model, "d_ff": d_ff, "n_heads": n_heads, "n_kv_heads": n_kv_heads}
    return dense_model(name=name, head_dim=128, **{"vocab_size": 128_256, **sizes, **rest})  # type: ignore[arg-type]


LLAMA_3_8B = gqa("llama-3-8b", 32, 4096, 14_336, 32, 8, rope_table=(8192, 128))
LLAMA_31_8B = replace(LLAMA_3_8B, rope_table=(131_072, 128))
LLAMA_31_70B = gqa("llama-3.1-70b", 80, 8192, 28_672, 64, 8, rope_table=(131_072, 128))
LLAMA_31_405B = gqa("llama-3.1-405b", 126, 16_384, 53_248, 128, 8, rope_table=(131_072, 128))
MISTRAL_7B = gqa("mistral-7b-v0.3", 32, 4096, 14_336, 32, 8, vocab_size=32_768, rope_table=(32_768, 128))
QK_NORMS = (("q_norm", 128, "norm"), ("k_norm", 128, "norm"))
QWEN3_8B = gqa("qwen3-8b", 36, 4096, 12_288, 32, 8, vocab_size=151_936, rope_table=(40_960, 128), more=QK_NORMS)
TINY = gqa("tiny", 4, 256, 512, 8, 4, vocab_size=1000, qkv_bias=True, out_bias=True, mlp_bias=True)

CHANNELS = Quantisation(
    method="compressed-tensors", rules=(("", Scheme(dtype="int8", block=(0, 1))),), ignored=("^lm_head",)
)
FP8_BLOCKS = Quantisation(
    method="fp8", rules=(("", Scheme(dtype="fp8", block=(128, 128))),), ignored=("^lm_head", r"mlp\.gate$")
)
# The 405B keeps attention and the first and last layer in bf16.
FBGEMM = replace(
    CHANNELS, rules=(("", Scheme(dtype="fp8", block=(0, 1))),), ignored=("^lm_head", "self_attn", r"^layers\.(0|125)\.")
)


def mla(n_heads: int = 128, q_lora_rank: int = 1536, **rest: int) -> object:
    sizes = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "value_dim": 128, "d_model": 7168}
    return latent_attention(n_heads=n_heads, q_lora_rank=q_lora_rank, **{**sizes, **rest})


def deepseek_v3() -> Model:
    mixer, norms = mla(), LLAMA_3_8B.layers[0].norms
    norms = tuple(replace(norm, dims=(("d_model", 7168),)) for norm in norms)
    routed = experts(
        d_model=7168, d_ff=2048, n_experts=256, n_active=8, shared_d_ff=2048, more=(("correction", 256, "bias"),)
    )
    first = Layer(mixer=mixer, feed_forward=dense(d_model=7168, d_ff=18_432), norms=norms)
    rest = Layer(mixer=mixer, feed_forward=routed, norms=norms)
    return Model(
        name="deepseek-v3",
        d_model=7168,
        vocab_size=129_280,
        layers=(first,) * 3 + (rest,) * 58,
        outside=(replace(norms[0], name="final_norm"),),
        quantisation=FP8_BLOCKS,
        rope_table=(163_840, 64),
    )


# -- start-up logs of engines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "tp", "gib", "rel"),
    [
        # Logs of vLLM, "Loading model weights took" and "Model loading took", to the digits that they print.
        pytest.param(LLAMA_3_8B, 1, 14.9595, 1e-5, id="llama-3-8b"),
        pytest.param(LLAMA_31_8B, 1, 14.9888, 1e-5, id="llama-3.1-8b"),
        pytest.param(MISTRAL_7B, 1, 13.5084, 1e-5, id="mistral-7b-v0.3"),
        pytest.param(LLAMA_31_70B, 4, 32.89, 1e-4, id="llama-3.1-70b-tp4"),
        pytest.param(replace(LLAMA_31_70B, quantisation=CHANNELS), 1, 67.7229, 1e-5, id="70b-w8a8"),
        pytest.param(replace(LLAMA_31_70B, quantisation=CHANNELS), 4, 16.96, 1e-4, id="70b-fp8-dynamic-tp4"),
        pytest.param(replace(LLAMA_31_405B, quantisation=FBGEMM), 8, 56.7677, 1e-4, id="405b-fp8-tp8"),
    ],
)
def test_weights_of_a_rank_are_what_vllm_logs(model: Model, tp: int, gib: float, rel: float) -> None:
    (held,) = weight_bytes_per_chip(as_checkpoint(model), model, Ranks(tp=tp))
    assert (held + rope_table_bytes(model)) / GIB == pytest.approx(gib, rel=rel)


def test_a_rotary_table_is_positions_by_width_in_16_bits() -> None:
    assert rope_table_bytes(LLAMA_3_8B) == 8192 * 128 * 2
    assert rope_table_bytes(TINY) == 0


def test_weights_of_a_tpu_chip_are_what_tpu_inference_logs_without_a_rotary_table() -> None:
    (held,) = weight_bytes_per_chip(uniform(LLAMA_31_8B, "bf16"), LLAMA_31_8B, Ranks(tp=4))
    assert round(held / GIB, 2) == 3.74  # v6e-4
    assert held / GIB == pytest.approx(3.7397, rel=1e-4)


@pytest.mark.parametrize(
    ("model", "pp", "gib"),
    [pytest.param(LLAMA_31_8B, 4, 4.26, id="llama-3.1-8b"), pytest.param(QWEN3_8B, 3, 5.48, id="qwen3-8b")],
)
def test_the_first_and_last_stage_bind(model: Model, pp: int, gib: float) -> None:
    held = weight_bytes_per_chip(uniform(model, "bf16"), model, Ranks(pp=pp))
    assert round((max(held) + rope_table_bytes(model)) / GIB, 2) == gib  # as vLLM 0.19 logs it
    assert min(held[0], held[-1]) > max(held[1:-1])


def test_all_experts_of_deepseek_v3_are_resident_at_tp8() -> None:
    model = deepseek_v3()
    assert sum(tensor.size for tensor in weight_tensors(model)) == 671_026_419_200
    (held,) = weight_bytes_per_chip(as_checkpoint(model), model, Ranks(tp=8))
    assert held / GB == pytest.approx(83.9, rel=0.02)
    assert 80 < held / GB < 96
    assert held > sum(array.n_bytes for array in as_checkpoint(model)) / 8  # the latent's down-projections are copied


@pytest.mark.parametrize(
    ("model", "tp", "expected"),
    [
        # Bytes of pool over tokens, as start-up logs of vLLM give them.
        pytest.param(LLAMA_31_70B, 4, 81_920, id="llama-70b-tp4"),
        pytest.param(LLAMA_31_405B, 8, 64_512, id="llama-405b-tp8"),
        pytest.param(LLAMA_31_405B, 64, 64_512, id="llama-405b-tp64"),
        pytest.param(gqa("qwen3-235b", 94, 4096, 1536, 64, 4), 4, 48_128, id="qwen3-235b-tp4"),
        pytest.param(gqa("qwen3-235b", 94, 4096, 1536, 64, 4), 8, 48_128, id="qwen3-235b-tp8"),
        pytest.param(deepseek_v3(), 1, 70_272, id="deepseek-v3-tp1"),
        pytest.param(deepseek_v3(), 8, 70_272, id="deepseek-v3-tp8"),
    ],
)
def test_cache_bytes_of_a_token_on_a_chip(model: Model, tp: int, expected: float) -> None:
    assert kv_bytes_per_token_per_chip(caches(model), 2.0, tp) == expected


def test_each_stage_keeps_the_cache_of_its_own_layers() -> None:
    # DeepSeek-V2-Lite over two stages: vLLM logged 12.13 GiB on the first and 807,792 tokens.
    mixer = mla(n_heads=16, q_lora_rank=0, d_model=2048)
    kept = tuple(replace(cache, layers=tuple(range(27))) for cache in mixer.caches)
    first, last = stages(27, 2)
    held = [kv_bytes_per_token_per_chip(kept, 2.0, 1, layers) for layers in (first, last)]
    assert round(held[0] * 807_792 / GIB, 2) == 12.13
    assert sum(held) == kv_bytes_per_token_per_chip(kept, 2.0, 1)


def test_index_keys_are_whole_on_every_rank() -> None:
    # DeepSeek-V3.2: a latent of 576 in bf16, and 128 bytes and a scale of 4 for the indexer.
    mixer = mla(index_heads=64, index_head_dim=128, index_tokens=2048)
    kept = tuple(replace(cache, layers=tuple(range(61))) for cache in mixer.caches)
    assert {kv_bytes_per_token_per_chip(kept, 2.0, tp) for tp in (1, 8)} == {78_324}


# -- stages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_layers", "pp", "counts"),
    [
        (32, 4, [8, 8, 8, 8]),
        (27, 2, [14, 13]),
        (61, 8, [7, 7, 8, 8, 8, 8, 8, 7]),
        (5, 3, [2, 2, 1]),
        (4, 3, [1, 2, 1]),
        (7, 4, [2, 2, 2, 1]),
    ],
)
def test_layers_left_over_go_to_the_last_stages_but_one(n_layers: int, pp: int, counts: list[int]) -> None:
    assert [len(stage) for stage in stages(n_layers, pp)] == counts


@given(st.integers(1, 128).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_stages_partition_the_layers_evenly(sizes: tuple[int, int]) -> None:
    n_layers, pp = sizes
    found = stages(n_layers, pp)
    assert [layer for stage in found for layer in stage] == list(range(n_layers))
    counts = [len(stage) for stage in found]
    assert len(counts) == pp
    assert max(counts) - min(counts) <= 1
    assert counts[-1] == min(counts)


def test_a_split_that_is_set_is_kept() -> None:
    assert stages(48, 2, [16, 32]) == (range(16), range(16, 48))


@pytest.mark.parametrize("split", [[16, 16], [16, 16, 16], [48, 0]])
def test_a_split_of_other_layers_is_refused(split: list[int]) -> None:
    with pytest.raises(InputError, match=r"layer split .* is not 48 layers over 2 stages; give 2 counts"):
        stages(48, 2, split)


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(InputError, match="pp 5 is more than the 4 layers; use pp 4 or less"):
        stages(4, 5)


# -- shares ----------------------------------------------------------------------------------------------------------


def shares(model: Model, **ways: int) -> dict[str, float]:
    return {tensor.name: share(tensor, Ranks(**ways)) for tensor in weight_tensors(model)}


def test_norms_and_biases_after_a_sum_are_whole_on_every_rank() -> None:
    found = shares(TINY, tp=4)
    assert {name for name, part in found.items() if part == 1} == {
        "attention_norm", "mlp_norm", "final_norm", "bo", "b_down",
    }  # fmt: skip
    cut = {"wq", "wk", "wv", "wo", "bq", "bk", "bv", "w_gate", "w_up", "w_down", "b_gate", "b_up"}
    assert {name for name, part in found.items() if part == 0.25} == cut


def test_kv_heads_are_copied_beyond_one_a_rank() -> None:
    found = shares(TINY, tp=8)
    assert found["wq"] == found["wo"] == found["w_up"] == 1 / 8
    assert found["wk"] == found["wv"] == found["bk"] == 1 / 4


def test_what_does_not_divide_counts_the_fullest_rank() -> None:
    found = shares(TINY, tp=3)
    assert found["wq"] == found["wo"] == 3 / 8
    assert found["wk"] == 2 / 4
    assert found["w_up"] == 171 / 512


def test_the_vocabulary_is_padded_then_cut() -> None:
    assert padded_vocab(1000) == 1024
    assert padded_vocab(128_256) == 128_256
    assert shares(TINY)["embedding"] == 1024 / 1000
    assert shares(TINY, tp=4)["lm_head"] == 256 / 1000


def test_the_latent_is_whole_on_every_rank_and_its_heads_are_cut() -> None:
    found = shares(deepseek_v3(), tp=8)
    assert found["wq_a"] == found["wkv_a"] == found["kv_a_norm"] == found["router"] == found["correction"] == 1
    assert found["wq_b"] == found["wkv_b"] == found["wo"] == 1 / 8
    assert found["expert_up"] == found["shared_up"] == found["w_up"] == 1 / 8


def test_an_indexer_is_whole_on_every_rank() -> None:
    mixer = mla(index_heads=64, index_head_dim=128, index_tokens=2048)
    parts = {tensor.name: share(tensor, Ranks(tp=8)) for tensor in mixer.weights if tensor.name.startswith("index")}
    assert len(parts) == 5
    assert set(parts.values()) == {1.0}


@pytest.mark.parametrize(
    ("ways", "routed", "shared"),
    [
        ({"tp": 8}, 1 / 8, 1 / 8),
        ({"tp": 8, "ep": 8}, 1 / 8, 1 / 8),
        ({"tp": 8, "ep": 2}, 1 / 8, 1 / 8),
        ({"tp": 8, "dp": 2, "ep": 16}, 1 / 16, 1 / 8),
        ({"tp": 8, "dp": 2, "ep": 4}, 1 / 16, 1 / 8),
        ({"tp": 8, "dp": 2}, 1 / 16, 1 / 8),
        ({"dp": 8, "ep": 8}, 1 / 8, 1.0),
        ({"tp": 3, "ep": 3}, 86 / 256, 683 / 2048),
    ],
)
def test_experts_are_spread_over_tensor_and_data_ranks(ways: dict[str, int], routed: float, shared: float) -> None:
    found = shares(deepseek_v3(), **ways)
    assert found["expert_gate"] == found["expert_down"] == routed
    assert found["shared_up"] == found["shared_down"] == shared


def test_biases_of_experts_are_spread_and_those_after_a_sum_not_cut() -> None:
    block = experts(d_model=64, d_ff=128, n_experts=8, n_active=2, bias=True)
    parts = {tensor.name: share(tensor, Ranks(tp=4, ep=2)) for tensor in block.weights}
    assert parts["expert_up_bias"] == 1 / 2 / 2
    assert parts["expert_down_bias"] == 1 / 2
    assert parts["router_bias"] == 1


def test_heads_of_a_recurrence_are_cut_no_further_than_one_a_rank() -> None:
    mixer = recurrence(
        form="linear",
        n_heads=4,
        head_dim=128,
        state_elements=4 * 128 * 128,
        conv_elements=1000,
        matrices=(("in_proj", [256, 1030], "attention"),),
        out=("out_proj", [512, 256], "attention"),
    )
    (state,) = mixer.caches
    in_proj, out_proj = mixer.weights
    assert (share(out_proj, Ranks(tp=2)), share(out_proj, Ranks(tp=8))) == (1 / 2, 1 / 4)
    assert share(in_proj, Ranks(tp=4)) == 258 / 1030  # columns that do not divide by the heads
    assert (cache_copies(state, 2), cache_copies(state, 4), cache_copies(state, 8)) == (1, 1, 2)


# -- ranks and stages together -----------------------------------------------------------------------------------------


def names(model: Model, ranks: Ranks, stage: int) -> set[str]:
    return {held.stored.tensor.name for held in rank_weights(uniform(model, "bf16"), model, ranks, stage)}


def test_what_is_outside_the_layers_is_on_the_first_or_the_last_stage() -> None:
    tables = (Tensor(name="positions", dims=(("n", 8), ("d", 4)), axes=("", ""), role="other"), *TINY.outside)
    model = replace(TINY, towers={"vision": 100}, outside=tables)
    ranks = Ranks(tp=2, pp=3)
    outside = {tensor.name for tensor in weight_tensors(model) if not tensor.layers}
    assert names(model, ranks, 0) & outside == {"embedding", "positions", "vision"}
    assert names(model, ranks, 1) & outside == set()
    assert names(model, ranks, 2) & outside == {"final_norm", "lm_head"}
    (vision,) = (
        held for held in rank_weights(uniform(model, "bf16"), model, ranks, 0) if held.stored.tensor.role == "tower"
    )
    assert vision.n_bytes == 200


def test_a_tied_head_needs_a_copy_of_the_embedding_on_the_last_of_several_stages() -> None:
    tied = replace(TINY, tied_embeddings=True)
    assert "embedding" in names(tied, Ranks(pp=2), 1)
    assert "embedding" not in names(TINY, Ranks(pp=2), 1)
    alone = rank_weights(uniform(tied, "bf16"), tied, Ranks(), 0)
    assert [held.stored.tensor.name for held in alone].count("embedding") == 1


def test_a_stage_holds_its_layers_of_a_kind_only() -> None:
    model = deepseek_v3()
    held = rank_weights(as_checkpoint(model), model, Ranks(pp=61), 0)
    assert not any(item.stored.tensor.n_experts for item in held)
    (up,) = (item for item in held if item.stored.tensor.name == "w_up")
    assert up.n_layers == 1
    assert up.n_bytes == 7168 * 18_432 + 56 * 144 * 4
    assert str(up) == "1 layer of w_up, 1 of each: 132,152,832 B"


def test_scales_along_the_uncut_side_are_whole_on_every_rank() -> None:
    model = replace(TINY, quantisation=CHANNELS)
    held = {item.stored.tensor.name: item for item in rank_weights(as_checkpoint(model), model, Ranks(tp=4), 0)}
    n_layers = model.n_layers
    assert held["w_up"].n_bytes == n_layers * (256 * 128 + 128 * 4)
    assert held["w_down"].n_bytes == n_layers * (128 * 256 + 256 * 4)


def test_a_split_moves_bytes_between_stages_and_loses_none() -> None:
    stored = uniform(TINY, "bf16")
    even, uneven = (weight_bytes_per_chip(stored, TINY, Ranks(pp=2), split) for split in ((), (1, 3)))
    assert uneven[0] < even[0]
    assert uneven[1] > even[1]
    assert sum(uneven) == pytest.approx(sum(even), rel=1e-12)


def test_scales_of_another_dtype_than_the_checkpoints_follow_the_elements() -> None:
    model = replace(TINY, quantisation=CHANNELS)
    (up,) = (array for array in as_checkpoint(model) if array.tensor.name == "w_up")
    foreign = replace(up, dtype="int4", scale_bytes=4000.0)
    (held,) = rank_weights([foreign], model, Ranks(tp=4), 0)
    assert held.n_bytes == (foreign.element_bytes + 4000) / 4


@st.composite
def models(draw: st.DrawFn) -> Model:
    n_kv_heads = draw(st.sampled_from([1, 2, 3, 4, 8]))
    sizes = {
        "n_layers": draw(st.integers(1, 12)),
        "d_model": draw(st.integers(1, 8)) * 32,
        "n_heads": n_kv_heads * draw(st.integers(1, 4)),
        "n_kv_heads": n_kv_heads,
    }
    model = gqa(
        "made-up",
        **sizes,
        d_ff=draw(st.integers(1, 64)) * 16,
        vocab_size=draw(st.integers(1, 4096)),
        qkv_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
        tied_embeddings=draw(st.booleans()),
        quantisation=draw(st.sampled_from([None, CHANNELS, FP8_BLOCKS])),
    )
    if draw(st.booleans()):
        routed = experts(
            d_model=sizes["d_model"], d_ff=draw(st.integers(1, 300)), n_experts=draw(st.integers(2, 20)), n_active=2
        )
        mixed = replace(model.layers[0], feed_forward=routed)
        model = replace(model, layers=(model.layers[0], *(mixed,) * (model.n_layers - 1)))
    return model


@st.composite
def divided(draw: st.DrawFn) -> tuple[Model, Ranks]:
    model = draw(models())
    tp, dp = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    ep = draw(st.sampled_from([ways for ways in range(1, tp * dp + 1) if tp * dp % ways == 0]))
    return model, Ranks(tp=tp, dp=dp, ep=ep, pp=draw(st.integers(1, model.n_layers)))


@given(divided())
def test_all_ranks_together_hold_the_model_at_least_once(case: tuple[Model, Ranks]) -> None:
    model, ranks = case
    stored = as_checkpoint(model)
    held = sum(weight_bytes_per_chip(stored, model, ranks)) * ranks.stage_chips
    assert held >= sum(array.n_bytes for array in stored) * (1 - 1e-12)


@given(models(), st.integers(1, 4))
def test_stages_of_single_ranks_hold_the_model_once(model: Model, pp: int) -> None:
    model = replace(model, vocab_size=padded_vocab(model.vocab_size), tied_embeddings=False)
    stored = as_checkpoint(model)
    held = sum(weight_bytes_per_chip(stored, model, Ranks(pp=min(pp, model.n_layers))))
    assert held == pytest.approx(sum(array.n_bytes for array in stored), rel=1e-12)


@given(models(), st.sampled_from([1, 2, 4, 8]), st.integers(1, 3), st.integers(1, 4))
def test_without_padding_only_norms_and_what_is_summed_is_copied(model: Model, tp: int, dp: int, pp: int) -> None:
    one = model.layers[0]
    model = gqa(
        "even",
        model.n_layers,
        model.d_model,
        one.feed_forward.d_ff * 8,
        one.mixer.n_heads * 8,
        one.mixer.n_kv_heads * 8,
        vocab_size=512 * model.vocab_size,
    )
    ranks = Ranks(tp=tp, dp=dp, pp=min(pp, model.n_layers))
    stored = uniform(model, "bf16")
    total = sum(array.n_bytes for array in stored)
    norms = sum(array.n_bytes for array in stored if array.tensor.role == "norm")
    held = sum(weight_bytes_per_chip(stored, model, ranks)) * tp
    assert held == pytest.approx(total + (tp - 1) * norms, rel=1e-12)


@given(divided(), st.integers(2, 5))
def test_more_tensor_ranks_never_hold_more_each(case: tuple[Model, Ranks], times: int) -> None:
    model, ranks = case
    stored = as_checkpoint(model)
    fewer = weight_bytes_per_chip(stored, model, ranks)
    more = weight_bytes_per_chip(stored, model, replace(ranks, tp=ranks.tp * times))
    assert all(after <= before * (1 + 1e-12) for before, after in zip(fewer, more, strict=True))


@given(st.integers(1, 64), st.integers(1, 128))
def test_copies_of_a_cache(n_heads: int, tp: int) -> None:
    cache = Cache(name="k and v", elements_per_token=256.0 * n_heads, n_heads=n_heads, layers=(0,))
    copies = cache_copies(cache, tp)
    assert copies >= 1
    assert (copies == 1) == (n_heads % tp == 0)
    heads_per_rank = kv_bytes_per_token_per_chip([cache], 1.0, tp) / 256
    assert heads_per_rank == pytest.approx(max(1, math.ceil(n_heads / tp)))
    assert cache_copies(replace(cache, n_heads=1), tp) == tp


# -- the degrees -----------------------------------------------------------------------------------------------------


def test_ranks_count_their_chips() -> None:
    ranks = Ranks(tp=4, pp=2, dp=3, ep=6)
    assert (ranks.n_chips, ranks.stage_chips, ranks.expert_ways) == (24, 12, 2)
    assert str(ranks) == "tp 4 × pp 2 × dp 3 × ep 6"
    assert str(Ranks()) == "tp 1"
    assert Ranks(tp=4, dp=2).expert_ways == 8


@pytest.mark.parametrize("key", ["tp", "pp", "dp", "ep"])
def test_degrees_below_one_are_refused_by_name(key: str) -> None:
    with pytest.raises(InputError, match=f"{key} is 0; it must be at least 1"):
        Ranks(**{key: 0})


def test_experts_spread_over_the_ranks_of_a_stage() -> None:
    with pytest.raises(InputError, match=r"ep 6 does not divide the 8 ranks of a stage \(tp 4 × dp 2\); use ep 2"):
        Ranks(tp=4, dp=2, ep=6)
