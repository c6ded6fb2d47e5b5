"""What a logged figure implies: the reserve, and how the cache was kept."""

import json
from dataclasses import replace
from typing import Any

import pytest

from slicewise.catalog.load import load_model
from slicewise.errors import InputError
from slicewise.planner.engine_implied import Implied, implied
from slicewise.planner.engine_log import engine_log
from slicewise.planner.engine_record import EngineRun
from slicewise.planner.engines import engine_named
from slicewise.spec.latent import latent_attention
from slicewise.spec.mixers import attention
from slicewise.spec.model import Layer, Model
from slicewise.spec.ranks import Ranks
from slicewise.units import GIB

LLAMA = load_model("llama-3-8b")


def run(engine: str = "vllm-0.19", pool: float = 58.11 * GIB, **more: Any) -> EngineRun:
    return EngineRun(engine=engine_named(engine), pool_bytes_per_chip=pool, **{"max_model_len": 8192, **more})


def model_of(*mixers: Any) -> Model:
    return Model(name="made up", d_model=64, vocab_size=100, layers=tuple(Layer(mixer=mixer) for mixer in mixers))


def whats(found: Implied) -> list[str]:
    return [reading.what for reading in found.readings]


def test_a_smaller_pool_is_a_larger_reserve() -> None:
    found = implied(
        LLAMA,
        run(weight_bytes_per_chip=14.9888 * GIB),
        kv_bytes_per_chip=54.27 * GIB,
        hbm_bytes_per_chip=79.19 * GIB,
        memory_fraction=0.95,
    )
    assert found.missing_bytes_per_chip == pytest.approx(3.84 * GIB)
    assert found.reserve_bytes_per_chip == pytest.approx((0.95 * 79.19 - 14.9888 - 54.27) * GIB)
    assert found.memory_fraction == pytest.approx(0.95 - 3.84 / 79.19)
    assert (found.readings, found.bytes_per_token) == ((), None)
    assert "58.11 GiB" in found.sentences[0]
    assert "less than the predicted" in found.sentences[0]
    assert "activations, graphs and buffers, where logs show 2 to 6 GiB" in found.sentences[1]
    assert "a memory fraction of 0.902 instead of 0.95" in found.sentences[2]


def test_without_the_memory_there_is_no_reserve() -> None:
    found = implied(LLAMA, run(), kv_bytes_per_chip=60 * GIB)
    assert (found.reserve_bytes_per_chip, found.memory_fraction) == (None, None)
    assert found.missing_bytes_per_chip == pytest.approx(-1.89 * GIB)
    assert len(found.sentences) == 1
    assert "more than the predicted" in found.sentences[0]


def test_tokens_as_predicted() -> None:
    # 58.11 GiB and 476,016 tokens: llm-d-incubation/llm-d-planner#205
    found = implied(LLAMA, run(), tokens=476_016)
    assert whats(found) == ["as predicted"]
    assert found.bytes_per_token == pytest.approx(131_072, rel=1e-4)


def test_another_dtype() -> None:
    found = implied(LLAMA, run(), tokens=952_032)
    assert whats(found) == ["fp8 cache"]
    assert found.readings[0].ratio == pytest.approx(1, abs=1e-4)
    assert "rather than bf16" in found.sentences[-1]
    assert whats(implied(LLAMA, run(), tokens=238_008)) == ["fp32 cache"]


def test_heads_that_were_not_cut() -> None:
    # transformers' continuous batching before and after: 814 and 3,258 blocks. huggingface/transformers#48566
    start = run(ranks=Ranks(tp=4))
    tokens = engine_log(LLAMA, start).tokens
    assert tokens is not None
    assert whats(implied(LLAMA, start, tokens=tokens * 814 // 3258)) == ["unsharded heads"]
    both = implied(LLAMA, start, tokens=tokens // 2)
    assert whats(both) == ["fp32 cache"]
    assert whats(implied(LLAMA, replace(start, ranks=Ranks(tp=8)), tokens=tokens * 2 // 4)) == [
        "unsharded heads and fp8 cache"
    ]


def test_one_rank_that_was_charged_all_layers() -> None:
    # 16 and 32 layers, checked as 48 against one rank: vllm-project/vllm#34076
    start = run(pool=3.18 * GIB, ranks=Ranks(pp=2), layer_split=(8, 24))
    found = implied(LLAMA, start, tokens=round(3.18 * GIB / 131_072))
    assert whats(found) == ["one stage for all"]


def test_a_latent_kept_head_by_head() -> None:
    # DeepSeek-V2-Lite: 442,396 B a token, 14.2 times the latent. vllm-project/vllm#10927
    mixer = latent_attention(
        d_model=2048, n_heads=16, q_lora_rank=0, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64,
        value_dim=128,
    )  # fmt: skip
    found = implied(model_of(*[mixer] * 27), run(pool=35.42 * GIB), tokens=5373 * 16)
    assert whats(found) == ["materialised heads"]
    assert "are 442,396.4 B a token on each chip" in found.sentences[0]


def test_windows_that_were_not_freed() -> None:
    # Gemma-4-31B: 24.54 GiB held 26,800 tokens, all 60 layers as wide as the widest.
    sliding = attention(d_model=64, n_heads=32, n_kv_heads=16, head_dim=256, window=1024)
    full = attention(d_model=64, n_heads=32, n_kv_heads=4, head_dim=512)
    model = model_of(*[*[sliding] * 5, full] * 10)
    start = run("vllm-0.21", 24.54 * GIB)
    assert whats(implied(model, start, tokens=26_800)) == ["pages as wide as the widest"]
    long = replace(start, max_model_len=65_536)
    charged = engine_log(model, replace(long, windows=False)).tokens
    assert whats(implied(model, long, tokens=charged)) == ["windows charged in full"]


def test_rows_that_were_not_padded() -> None:
    # 8,676 blocks before padding, 4,338 after: vllm-project/tpu-inference#757
    model, start = load_model("llama-3-70b"), run("tpu-inference", kv_dtype="fp8", ranks=Ranks(tp=8), block_tokens=128)
    tokens = engine_log(model, start).tokens
    assert tokens is not None
    assert whats(implied(model, start, tokens=tokens * 2)) == ["unpadded rows"]


def test_another_rank_may_decide() -> None:
    # 8.69 GiB were printed and 81,536 tokens held, the cache of 7.46. vllm-project/vllm#13061
    tokens = int(7.46 * GIB / 131_072)
    found = implied(LLAMA, run(pool=8.69 * GIB), kv_bytes_per_chip=8.69 * GIB, tokens=tokens)
    assert whats(found) == ["another rank"]
    assert "7.46" in found.sentences[-1]


def test_what_nothing_explains_is_said() -> None:
    found = implied(LLAMA, run(), tokens=1000)
    assert found.readings == ()
    assert found.sentences[-1] == "no reading known here explains them: 476,032 were predicted"


def test_nothing_logged_is_refused() -> None:
    with pytest.raises(InputError, match="give the pool or the tokens"):
        implied(LLAMA, run())


def test_the_json_object_is_plain() -> None:
    data = json.loads(json.dumps(implied(LLAMA, run(), tokens=952_032).to_dict(), allow_nan=False))
    assert data["readings"][0]["what"] == "fp8 cache"
