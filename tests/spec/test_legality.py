"""Which layouts are refused, and what each refusal says."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.hf import read_config
from slicewise.spec.arrays import vector
from slicewise.spec.feed_forward import experts
from slicewise.spec.legality import (
    BLOCK,
    CHIPS,
    EXPERTS,
    HEADS,
    KV_HEADS,
    STAGES,
    STATE_HEADS,
    VOCABULARY,
    WIDTH,
    Refusal,
    legal_layouts,
    refusals,
)
from slicewise.spec.mixers import linear_map
from slicewise.spec.model import Layer, Model, dense_model
from slicewise.spec.quantisation import Quantisation, Scheme
from slicewise.spec.ranks import Ranks, share
from slicewise.spec.recurrences import recurrence
from slicewise.spec.sparse import compressed_attention
from slicewise.spec.tensors import weight_tensors

CONFIGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "model_configs"


def fp8(*block: int) -> Quantisation:
    return Quantisation(method="fp8", rules=(("", Scheme(dtype="fp8", block=block)),))  # type: ignore[arg-type]


def dense(n_heads: int = 128, n_kv_heads: int = 8, d_ff: int = 16_384, **rest: object) -> Model:
    sizes = {"n_heads": n_heads, "n_kv_heads": n_kv_heads, "d_ff": d_ff, "vocab_size": 131_072, "head_dim": 128}
    return dense_model(name="made-up", n_layers=8, d_model=4096, **{**sizes, **rest})  # type: ignore[arg-type]


def mixture(d_ff: int, dense_d_ff: int = 16_384, n_experts: int = 128, shared_d_ff: int = 0, **rest: object) -> Model:
    model = dense(d_ff=dense_d_ff, **rest)
    routed = experts(d_model=4096, d_ff=d_ff, n_experts=n_experts, n_active=2, shared_d_ff=shared_d_ff)
    first, *others = model.layers
    return replace(model, layers=(first, *(replace(layer, feed_forward=routed) for layer in others)))


def rules(model: Model, **ways: int) -> list[str]:
    return [refusal.rule for refusal in refusals(model, Ranks(**ways))]


def detail(model: Model, **ways: int) -> str:
    (refusal,) = refusals(model, Ranks(**ways))
    return refusal.detail


QWEN_7B = dense_model(
    name="deepseek-r1-distill-qwen-7b", n_layers=28, d_model=3584, d_ff=18_944, n_heads=28, n_kv_heads=4, head_dim=128,
    vocab_size=152_064, qkv_bias=True,
)  # fmt: skip


# -- cases asked in public -------------------------------------------------------------------------------------------


def test_the_heads_alone_do_not_decide() -> None:
    legal = [tp for tp in range(1, 29) if not rules(QWEN_7B, tp=tp)]
    assert legal == [1, 2, 4]
    assert rules(QWEN_7B, tp=7) == [KV_HEADS, WIDTH, VOCABULARY]
    assert rules(QWEN_7B, tp=14) == [KV_HEADS, WIDTH, VOCABULARY]
    assert rules(QWEN_7B, tp=28) == [WIDTH, VOCABULARY]
    assert rules(QWEN_7B, tp=8) == [HEADS]


@pytest.mark.parametrize(
    ("model", "loads", "fails"),
    [
        # Errors at load in threads of vLLM, SGLang and ATOM: experts' widths over blocks of 128.
        pytest.param(mixture(1536), 4, 8, id="qwen3-235b-a22b"),
        pytest.param(mixture(768), 2, 4, id="qwen3-30b-a3b"),
        pytest.param(mixture(1536, n_experts=256), 4, 8, id="minimax-m2.7"),
        pytest.param(mixture(2048, dense_d_ff=18_432, n_experts=256, shared_d_ff=2048), 16, 32, id="deepseek-r1"),
        pytest.param(mixture(3072, n_experts=384), 8, 16, id="deepseek-v4-pro"),
    ],
)
def test_blocks_of_scales_bound_tensor_parallelism(model: Model, loads: int, fails: int) -> None:
    blocks = replace(model, quantisation=fp8(128, 128))
    assert rules(blocks, tp=loads) == []
    assert set(rules(blocks, tp=fails)) == {BLOCK}
    assert rules(model, tp=fails) == []
    assert rules(replace(model, quantisation=fp8(0, 1)), tp=fails) == []
    # Experts that are spread whole are not cut.
    assert rules(blocks, tp=loads, dp=2, ep=loads * 2) == []


@pytest.mark.skipif(not CONFIGS.is_dir(), reason=f"no published configs at {CONFIGS}")
@pytest.mark.parametrize(
    ("name", "loads", "fails"),
    [
        ("Qwen__Qwen3-235B-A22B-FP8", 4, 8),
        ("Qwen__Qwen3-30B-A3B-FP8", 2, 4),
        ("MiniMaxAI__MiniMax-M2.7", 4, 8),
        ("deepseek-ai__DeepSeek-R1", 16, 32),
        ("sgl-project__DeepSeek-V4-Pro-FP8", 8, 16),
    ],
)
def test_published_configs_are_bound_alike(name: str, loads: int, fails: int) -> None:
    model = read_config(CONFIGS / f"{name}.json")
    assert rules(model, tp=loads) == []
    assert BLOCK in rules(model, tp=fails)
    assert BLOCK not in rules(replace(model, quantisation=None), tp=fails)


def test_groups_of_inputs_bound_it_too() -> None:
    # Qwen3-30B-A3B in int4 groups of 128 ran at tp 2 and not at 4: github.com/nlzy/vllm-gfx906/issues/22.
    groups = Quantisation(method="gptq", rules=(("", Scheme(dtype="int4", block=(128, 1))),))
    model = mixture(768, quantisation=groups)
    assert rules(model, tp=2) == []
    assert rules(model, tp=4) == [BLOCK]


def test_a_width_that_does_not_divide_is_refused_once() -> None:
    assert rules(mixture(1000, quantisation=fp8(128, 128)), tp=16) == [WIDTH]
    assert rules(dense(n_heads=40, quantisation=fp8(128, 128)), tp=16) == [HEADS]


def test_kernels_pad_the_blocks_of_4_bit_floats() -> None:
    narrow = Quantisation(method="mxfp4", rules=(("", Scheme(dtype="fp4", block=(32, 1))),))
    assert rules(mixture(2880, quantisation=narrow), tp=8) == []


# -- each rule, and what it says -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "ways", "rule", "words"),
    [
        pytest.param(
            dense(n_heads=40),
            {"tp": 16},
            HEADS,
            "40 query heads do not divide over tp 16 (40 / 16 = 2.5); use tp 8",
            id="heads",
        ),
        pytest.param(
            dense(n_heads=96, n_kv_heads=12),
            {"tp": 8},
            KV_HEADS,
            "12 KV heads neither divide over tp 8 nor divide it, so no even copies can be kept; use tp 4",
            id="kv-heads",
        ),
        pytest.param(
            dense(d_ff=1000),
            {"tp": 16},
            WIDTH,
            "the dense feed-forward of 1,000 does not divide over tp 16 (1,000 / 16 = 62.5); use tp 8",
            id="dense",
        ),
        pytest.param(
            mixture(1000, shared_d_ff=2048),
            {"tp": 16},
            WIDTH,
            (
                "the experts' feed-forward of 1,000 does not divide over tp 16 (1,000 / 16 = 62.5);"
                " use tp 8, or ep 16, which spreads whole experts"
            ),
            id="experts",
        ),
        pytest.param(
            mixture(2048, shared_d_ff=1000),
            {"tp": 16, "ep": 16},
            WIDTH,
            (
                "the shared experts' feed-forward of 1,000 does not divide over tp 16 (1,000 / 16 = 62.5);"
                " use tp 8 with ep 8"
            ),
            id="shared-experts",
        ),
        pytest.param(
            mixture(100, n_experts=6),
            {"tp": 16, "ep": 2},
            WIDTH,
            (
                "the experts' feed-forward of 100 does not divide over the 8 ranks that ep 2 leaves to an expert"
                " (100 / 8 = 12.5); use tp 8"
            ),
            id="experts-cut-further",
        ),
        pytest.param(
            dense(vocab_size=32_001),
            {"tp": 128},
            VOCABULARY,
            ("the vocabulary of 32,001 padded to 32,064 does not divide over tp 128 (32,064 / 128 = 250.5); use tp 64"),
            id="padded-vocabulary",
        ),
        pytest.param(
            dense(vocab_size=64),
            {"tp": 128},
            VOCABULARY,
            "the vocabulary of 64 does not divide over tp 128 (64 / 128 = 0.5); use tp 64",
            id="vocabulary",
        ),
        pytest.param(
            mixture(1536, quantisation=fp8(128, 128)),
            {"tp": 8},
            BLOCK,
            (
                "the experts' feed-forward of 1,536 over tp 8 is 192 a rank, which cuts through the blocks of"
                " 128 that share a scale in the fp8 checkpoint; use tp 4, or ep 8, which spreads whole experts"
                " (newer versions of some engines pad instead)"
            ),
            id="blocks-of-experts",
        ),
        pytest.param(
            dense(n_heads=64, d_ff=131_072, quantisation=fp8(256, 256)),
            {"tp": 64},
            BLOCK,
            (
                "the input of wo, 8,192 over tp 64 is 128 a rank, which cuts through the blocks of 256 that"
                " share a scale in the fp8 checkpoint; use tp 32 (newer versions of some engines pad instead)"
            ),
            id="blocks-of-heads",
        ),
        pytest.param(
            mixture(2048),
            {"tp": 8, "dp": 6, "ep": 48},
            EXPERTS,
            "128 experts do not divide over ep 48; use ep 16",
            id="expert-ranks",
        ),
        pytest.param(
            dense(),
            {"tp": 2, "ep": 2},
            EXPERTS,
            "ep 2 spreads experts, and made-up has none; use ep 1",
            id="no-experts",
        ),
        pytest.param(dense(), {"pp": 9}, STAGES, "pp 9 is more than the 8 layers; use pp 8 or less", id="stages"),
    ],
)
def test_a_refusal_names_the_numbers_and_the_fix(model: Model, ways: dict[str, int], rule: str, words: str) -> None:
    assert refusals(model, Ranks(**ways)) == (Refusal(rule=rule, detail=words),)


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ({"tp": 4}, "tp 4 × pp 1 × dp 1 is 4 chips, not 8; use dp 2"),
        ({"tp": 2, "pp": 2, "dp": 4}, "tp 2 × pp 2 × dp 4 is 16 chips, not 8; use dp 2"),
        ({"pp": 3}, "tp 1 × pp 3 × dp 1 is 3 chips, not 8; use tp, pp and dp whose product is 8"),
        ({"tp": 16}, "tp 16 × pp 1 × dp 1 is 16 chips, not 8; use tp, pp and dp whose product is 8"),
    ],
)
def test_the_degrees_make_up_the_chips(ways: dict[str, int], words: str) -> None:
    assert refusals(dense(), Ranks(**ways), 8) == (Refusal(rule=CHIPS, detail=words),)
    assert refusals(dense(), Ranks(**ways)) == ()


def test_heads_of_a_recurrence_must_divide() -> None:
    mixer = recurrence(
        form="linear",
        n_heads=24,
        head_dim=128,
        state_elements=24 * 128 * 128,
        conv_elements=0,
        matrices=(("in_proj", [4096, 3072], "attention"),),
        out=("out_proj", [3072, 4096], "attention"),
    )
    model = dense()
    hybrid = replace(model, layers=(*model.layers, replace(model.layers[0], mixer=mixer)))
    assert rules(hybrid, tp=8) == []
    assert detail(hybrid, tp=16) == "24 heads of the state do not divide over tp 16 (24 / 16 = 1.5); use tp 8"
    assert rules(hybrid, tp=64) == [STATE_HEADS]  # 64 ranks would each need part of a head


def test_heads_of_each_kind_of_layer_count() -> None:
    model, other = dense(n_heads=64, n_kv_heads=8), dense(n_heads=64, n_kv_heads=16)
    both = replace(model, layers=model.layers + other.layers)
    assert rules(both, tp=64) == []
    third = dense(n_heads=36, n_kv_heads=4)
    assert rules(replace(model, layers=model.layers + third.layers), tp=8) == [HEADS]


def test_a_layer_without_attention_has_no_heads_to_divide() -> None:
    model = dense()
    plain = replace(model, layers=(*model.layers, Layer(mixer=linear_map(d_model=4096))))
    assert rules(plain, tp=8) == []


def test_a_latent_is_copied_to_any_number_of_ranks_and_its_groups_of_heads_are_cut() -> None:
    mixer = compressed_attention(
        d_model=4096, n_heads=64, head_dim=512, q_lora_rank=1024, out_groups=8, out_lora_rank=1024, window=128, ratio=4
    )
    model = dense()
    compressed = replace(model, layers=tuple(replace(layer, mixer=mixer) for layer in model.layers))
    assert rules(compressed, tp=8) == []
    assert detail(compressed, tp=16) == "8 groups of query heads do not divide over tp 16 (8 / 16 = 0.5); use tp 8"


# -- legal layouts ---------------------------------------------------------------------------------------------------


def test_legal_layouts_of_eight_chips() -> None:
    found = [(ranks.tp, ranks.pp, ranks.dp) for ranks in legal_layouts(QWEN_7B, 8)]
    assert found == [
        (4, 1, 2), (4, 2, 1), (2, 1, 4), (2, 2, 2), (2, 4, 1), (1, 1, 8), (1, 2, 4), (1, 4, 2), (1, 8, 1),
    ]  # fmt: skip


def test_no_legal_layout_has_more_stages_than_layers() -> None:
    assert {ranks.pp for ranks in legal_layouts(dense(), 16)} == {1, 2, 4, 8}
    assert legal_layouts(dense(), 16, pp=16) == ()


def test_degrees_that_are_set_are_kept() -> None:
    model = mixture(1536, quantisation=fp8(128, 128))
    assert legal_layouts(model, 8, tp=8, pp=1) == tuple(Ranks(tp=8, ep=ep) for ep in (2, 4, 8))
    assert legal_layouts(model, 8, tp=8, ep=1) == ()
    assert legal_layouts(model, 8, tp=3) == ()
    assert legal_layouts(model, 8, pp=2, dp=4) == tuple(Ranks(pp=2, dp=4, ep=ep) for ep in (1, 2, 4))


@st.composite
def models(draw: st.DrawFn) -> Model:
    n_kv_heads = draw(st.sampled_from([1, 2, 3, 4, 8]))
    sizes = {
        "n_heads": n_kv_heads * draw(st.integers(1, 8)),
        "n_kv_heads": n_kv_heads,
        "vocab_size": draw(st.sampled_from([1000, 32_000, 32_768, 151_936])),
        "quantisation": draw(st.sampled_from([None, fp8(128, 128), fp8(0, 1)])),
    }
    widths = st.sampled_from([384, 768, 1000, 1024, 1536, 2048])
    if draw(st.booleans()):
        return dense(d_ff=draw(widths), **sizes)
    return mixture(draw(widths), draw(widths), n_experts=draw(st.sampled_from([6, 8, 12])), **sizes)


@given(models(), st.sampled_from([1, 2, 4, 6]))
def test_legal_layouts_are_those_that_nothing_refuses(model: Model, n_chips: int) -> None:
    degrees = range(1, n_chips + 1)
    every = [
        Ranks(tp=tp, pp=pp, dp=dp, ep=ep)
        for tp, pp, dp, ep in itertools.product(degrees, repeat=4)
        if tp * dp % ep == 0 and not refusals(model, Ranks(tp=tp, pp=pp, dp=dp, ep=ep), n_chips)
    ]
    found = legal_layouts(model, n_chips)
    assert sorted(found, key=str) == sorted(every, key=str)


@given(models(), st.integers(1, 24))
def test_legal_layouts_cut_evenly(model: Model, n_chips: int) -> None:
    for ranks in legal_layouts(model, n_chips):
        for tensor in weight_tensors(model):
            part = share(tensor, ranks)
            if tensor.n_experts:
                assert part * ranks.ep * ranks.expert_ways == pytest.approx(1)
            elif {"heads", "ff"} & set(tensor.axes):
                assert part * ranks.tp == pytest.approx(1)


@given(models(), st.integers(1, 32), st.integers(1, 3))
def test_the_fix_of_a_refused_tp_is_legal(model: Model, tp: int, dp: int) -> None:
    for refusal in refusals(model, Ranks(tp=tp, dp=dp)):
        fix = refusal.detail.split("use tp ")[1].split(",")[0].split()
        smaller, other = int(fix[0]), dict(zip(fix[2::2], fix[3::2], strict=False)) if fix[1:2] == ["with"] else {}
        assert smaller < tp or other
        ways = {"dp": dp} | {key: int(count) for key, count in other.items() if key in ("dp", "ep")}
        assert refusals(model, Ranks(tp=smaller, **ways)) == ()


def test_arrays_that_are_no_matrices_have_no_blocks() -> None:
    model = dense(quantisation=fp8(128, 128), qkv_bias=True)
    odd = replace(model, outside=(*model.outside, vector("sinks", ("n_heads", 7), "other", "heads", units=7)))
    assert rules(odd, tp=8) == []
