"""What an engine will log: worked starts, its words, and what must hold of any start."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import load_model
from slicewise.errors import InputError
from slicewise.planner.engine_log import cache_dtype, engine_log
from slicewise.planner.engine_record import EngineRun
from slicewise.planner.engines import ENGINES, engine_named
from slicewise.spec.latent import latent_attention
from slicewise.spec.mixers import attention
from slicewise.spec.model import Layer, Model, dense_model
from slicewise.spec.quantisation import Quantisation, Scheme
from slicewise.spec.ranks import Ranks
from slicewise.spec.recurrences import recurrence
from slicewise.spec.sparse import compressed_attention
from slicewise.units import GIB

LLAMA = load_model("llama-3-8b")


def run(engine: str = "vllm", pool: float | tuple[float, ...] = 10 * GIB, **more: Any) -> EngineRun:
    return EngineRun(engine=engine_named(engine), pool_bytes_per_chip=pool, **{"max_model_len": 8192, **more})


def of_layers(*mixers: Any, repeat: int = 1) -> Model:
    layers = tuple(Layer(mixer=mixer) for mixer in mixers) * repeat
    return Model(name="made up", d_model=64, vocab_size=100, layers=layers)


FULL = attention(d_model=64, n_heads=8, n_kv_heads=8, head_dim=16)
SLIDES = attention(d_model=64, n_heads=8, n_kv_heads=8, head_dim=16, window=128)
LATENT = latent_attention(
    d_model=64, n_heads=8, q_lora_rank=16, kv_lora_rank=32, qk_nope_head_dim=8, qk_rope_head_dim=8, value_dim=8
)
DELTA = recurrence(
    form="linear", n_heads=8, head_dim=16, state_elements=8 * 16 * 16, conv_elements=3 * 256, matrices=[],
    out=["out_proj", [64, 64], "state_space"],
)  # fmt: skip


# --- Worked starts ----------------------------------------------------------------------------------------------------


def test_lines_of_vllm() -> None:
    log = engine_log(LLAMA, run("vllm-0.19", 58.11 * GIB, max_model_len=131_072, weight_bytes_per_chip=14.9888 * GIB))
    assert log.lines == (
        "Model loading took 14.99 GiB memory",
        "Available KV cache memory: 58.11 GiB",
        "GPU KV cache size: 476,032 tokens",
        "Maximum concurrency for 131,072 tokens per request: 3.63x",
    )
    assert log.tokens_are_capacity
    assert log.notes == ()
    assert log.starts


def test_lines_of_old_versions() -> None:
    log = engine_log(LLAMA, run("vllm-0.6", 3.8126 * GIB, max_model_len=20_000, weight_bytes_per_chip=14.9888 * GIB))
    assert log.lines == (
        "Loading model weights took 14.9888 GB",
        "Available KV cache memory: 3.81 GiB",
        "# GPU blocks: 1952",
        "Maximum concurrency for 20000 tokens per request: 1.56x",
    )


def test_lines_of_sglang() -> None:
    log = engine_log(LLAMA, run("sglang", 54.05 * GIB, weight_bytes_per_chip=15.11 * GIB))
    assert log.lines == (
        "Load weight end. mem usage=15.11 GB.",
        "KV Cache is allocated. #tokens: 442777, K size: 27.02 GB, V size: 27.02 GB",
    )
    assert (log.block_tokens, log.blocks, log.max_concurrency) == (1, None, 442_777 / 8192)


def test_latents_of_sglang_have_one_size() -> None:
    log = engine_log(of_layers(LATENT), run("sglang", 8000.0))
    assert log.lines == ("KV Cache is allocated. #tokens: 100, KV size: 0.00 GB",)
    assert (log.key_bytes_per_chip, log.kv_bytes_per_chip) == (None, 8000.0)


def test_windows_of_sglang_have_a_pool() -> None:
    log = engine_log(of_layers(FULL, SLIDES), run("sglang", 512.0 * 1000 * 1.8 + 1, max_model_len=2000))
    assert (log.tokens, log.window_tokens) == (1000, 800)
    assert log.lines == ("SWAKVPool mem usage: 0.00 GB, swa size: 800, full size: 1000",)
    assert log.max_concurrency == 0.5
    assert not log.tokens_are_capacity
    only = engine_log(of_layers(SLIDES), run("sglang", 512.0 * 1000))
    assert (only.tokens, only.window_tokens, only.longest_request_tokens) == (1000, 1000, None)
    assert only.max_concurrency == 1000 / 128


def test_states_of_sglang_have_slots() -> None:
    model = of_layers(DELTA, FULL)
    state = 8 * 16 * 16 * 4 + 3 * 256 * 2
    log = engine_log(model, run("sglang", 512.0 * 100, state_slots=8))
    assert (log.tokens, log.tokens_are_capacity, log.state_pool_bytes) == (100, True, 9 * state)
    assert log.lines[0].startswith("Mamba Cache is allocated. ")
    unknown = engine_log(model, run("sglang", 512.0 * 100))
    assert unknown.state_pool_bytes is None
    assert "give its slots" in unknown.notes[0]
    with pytest.raises(InputError, match="no layer keeps tokens"):
        engine_log(of_layers(DELTA), run("sglang"))


def test_lines_of_a_hybrid() -> None:
    log = engine_log(of_layers(DELTA, DELTA, DELTA, FULL, FULL), run("vllm-0.19", 1e9, max_model_len=1000))
    assert log.lines == (
        "Setting attention block size to 32 tokens",
        "Available KV cache memory: 0.93 GiB",
        "Add 1 padding layers, may waste at most 33.33% KV cache memory",
        "GPU KV cache size: 325,504 tokens",
        "Maximum concurrency for 1,000 tokens per request: 897.56x",
    )
    assert "is no capacity" in log.notes[0]
    assert (log.fixed_bytes, log.marginal_bytes_per_token) == (2 * 2 * 32 * 512, 2 * 512)


def test_a_length_that_does_not_fit_is_said() -> None:
    log = engine_log(LLAMA, run(pool=GIB, max_model_len=131_072))
    assert not log.starts
    assert log.notes[0].startswith("the engine refuses to start: one request of 131,072 tokens needs ")
    assert log.notes[0].endswith("the longest that fits is 8,192 tokens")
    empty = engine_log(LLAMA, run(pool=-GIB))
    assert (empty.blocks, empty.tokens, empty.max_concurrency, empty.starts) == (0, 0, 0.0, False)


def test_the_poorest_stage_decides() -> None:
    model = of_layers(LATENT, repeat=27)
    block = 16 * 40 * 2
    start = run("vllm-0.10", (14 * block * 50.5, 13 * block * 51.5), ranks=Ranks(pp=2), max_model_len=100)
    log = engine_log(model, start)
    assert (log.blocks, log.kv_bytes_per_chip) == (50, 14 * block * 50.5)
    assert "the poorest of 2 pipeline stages decides" in log.notes[0]
    log = engine_log(model, replace(start, pool_bytes_per_chip=(14 * block * 52.5, 13 * block * 51.5)))
    assert (log.blocks, log.kv_bytes_per_chip) == (51, 13 * block * 51.5)
    split = engine_log(model, replace(start, pool_bytes_per_chip=17 * block * 10.0, layer_split=(10, 17)))
    assert split.blocks == 10


def test_stages_without_a_cache_decide_nothing() -> None:
    model = of_layers(FULL, None)
    assert engine_log(model, run(pool=16 * 512 * 7.0, ranks=Ranks(pp=2))).blocks == 7
    assert engine_log(model, run("sglang", pool=512 * 7.0, ranks=Ranks(pp=2))).tokens == 7


def test_replicas_and_copies_are_said() -> None:
    notes = engine_log(LLAMA, run(ranks=Ranks(tp=16, dp=2))).notes
    assert notes[0].startswith("each of 2 replicas logs this")
    assert notes[1].startswith("8 KV heads are replicated over tp 16")
    (note,) = engine_log(of_layers(LATENT), run(ranks=Ranks(tp=8))).notes
    assert note.startswith("a cache that all heads share (MLA, one KV head) is replicated over tp 8")


def test_pages_that_are_not_described_give_bytes_alone() -> None:
    mixer = compressed_attention(
        d_model=64, n_heads=8, head_dim=16, q_lora_rank=16, out_groups=2, out_lora_rank=8, window=32, ratio=4
    )
    log = engine_log(of_layers(mixer), run("vllm-0.24"))
    assert (log.blocks, log.tokens, log.max_concurrency, log.request_bytes) == (None, None, None, None)
    assert log.starts
    assert log.marginal_bytes_per_token == 16 / 4 * 2
    assert log.fixed_bytes == 32 * 16 * 2 + 1 * 4 * 2 * 16 * 4
    assert log.lines == ("Available KV cache memory: 10.00 GiB",)
    assert "not described here" in log.notes[0]


def test_tpus_pad_what_is_narrow() -> None:
    # fp8 with one head a chip takes the bytes of bf16: vllm-project/tpu-inference#757
    model = load_model("llama-3-70b")
    narrow, wide = (engine_log(model, run("tpu-inference", kv_dtype=kv, ranks=Ranks(tp=8))) for kv in ("fp8", "bf16"))
    assert narrow.blocks == wide.blocks
    two = engine_log(model, run("tpu-inference", kv_dtype="fp8", ranks=Ranks(tp=4)))
    assert two.marginal_bytes_per_token == narrow.marginal_bytes_per_token == 80 * 2 * 128 * 2


def test_the_dtype_of_the_cache() -> None:
    assert cache_dtype(LLAMA, "auto") == "bf16"
    assert cache_dtype(LLAMA, "fp8_e5m2") == "fp8"
    half = dense_model(
        name="half", n_layers=1, d_model=8, d_ff=8, n_heads=1, n_kv_heads=1, head_dim=8, vocab_size=8,
        checkpoint_dtype="fp16",
    )  # fmt: skip
    assert cache_dtype(half, "auto") == "fp16"
    asked = Quantisation(method="nvfp4", rules=(("", Scheme(dtype="fp4")),), kv_dtype="fp8")
    assert cache_dtype(replace(LLAMA, quantisation=asked), "auto") == "fp8"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"max_model_len": 0}, "max_model_len is 0; it must be at least 1"),
        ({"max_num_batched_tokens": 0}, "max_num_batched_tokens is 0"),
        ({"block_tokens": 0}, "block_tokens is 0"),
        ({"pool": (1.0, 2.0)}, "2 pools for pp 1; give one, or one for each pipeline stage"),
        ({"kv_dtype": "fp7"}, "kv dtype fp7 is not known"),
        ({"ranks": Ranks(tp=3)}, "8 KV heads neither divide over tp 3"),
        ({"ranks": Ranks(pp=33)}, "pp 33 is more than the 32 layers"),
    ],
)
def test_starts_that_cannot_be_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        engine_log(LLAMA, run(**more))


def test_a_model_without_a_cache_is_refused() -> None:
    with pytest.raises(InputError, match="made up keeps no cache"):
        engine_log(of_layers(None), run())


def test_the_json_object_is_plain() -> None:
    log = engine_log(of_layers(DELTA, DELTA, DELTA, FULL, FULL), run("vllm-0.19", 1e9))
    data = json.loads(json.dumps(log.to_dict(), allow_nan=False))
    assert data["padding"] == [[1, pytest.approx(1 / 3)]]
    assert data["lines"] == list(log.lines)


# --- Any start --------------------------------------------------------------------------------------------------------

MODELS = st.sampled_from(
    [
        of_layers(FULL, repeat=4),
        of_layers(LATENT, repeat=4),
        of_layers(SLIDES, FULL, SLIDES, repeat=2),
        of_layers(DELTA, DELTA, DELTA, FULL, repeat=2),
    ]
)
STARTS = st.builds(
    lambda engine, pool, tp, pp, length, batched: run(
        engine, pool, ranks=Ranks(tp=tp, pp=pp), max_model_len=length, max_num_batched_tokens=batched
    ),
    engine=st.sampled_from([*ENGINES, "vllm-0.10"]),
    pool=st.integers(10**6, 10**10).map(float),
    tp=st.sampled_from([1, 2, 8]),
    pp=st.sampled_from([1, 2]),
    length=st.integers(1, 10**6),
    batched=st.integers(1, 10**5),
)


@given(MODELS, STARTS)
def test_more_memory_never_holds_less(model: Model, start: EngineRun) -> None:
    log, more = engine_log(model, start), engine_log(model, replace(start, pool_bytes_per_chip=start.pools[0] * 2))
    assert log.tokens is not None
    assert more.tokens is not None
    assert log.max_concurrency is not None
    assert more.max_concurrency is not None
    assert more.tokens >= log.tokens
    assert more.max_concurrency >= log.max_concurrency


@given(MODELS, STARTS)
def test_narrower_caches_never_hold_less(model: Model, start: EngineRun) -> None:
    wide, narrow = engine_log(model, start), engine_log(model, replace(start, kv_dtype="fp8"))
    assert narrow.marginal_bytes_per_token <= wide.marginal_bytes_per_token
    if wide.tokens_are_capacity:
        assert narrow.tokens is not None
        assert wide.tokens is not None
        # Lengths that are no whole blocks make the newer count differ by less than a block a request.
        assert narrow.tokens >= wide.tokens * (1 - 1e-9) - 1


@given(MODELS, STARTS)
def test_a_request_takes_what_it_needs(model: Model, start: EngineRun) -> None:
    log = engine_log(model, start)
    assert log.request_bytes is not None
    assert log.max_concurrency is not None
    if start.engine.pages:
        assert log.block_bytes is not None
        assert log.blocks is not None
        assert log.request_bytes * log.max_concurrency == pytest.approx(log.blocks * log.block_bytes)
        assert log.blocks * log.block_bytes <= log.kv_bytes_per_chip < (log.blocks + 1) * log.block_bytes
    else:
        assert log.kv_bytes_per_chip <= start.pools[0]


@given(MODELS, STARTS)
def test_the_longest_request_is_the_longest(model: Model, start: EngineRun) -> None:
    longest = engine_log(model, start).longest_request_tokens
    if longest is None or not start.engine.pages:
        return
    block = start.block_tokens or engine_log(model, start).block_tokens
    fixed = replace(start, block_tokens=block)
    longest = engine_log(model, fixed).longest_request_tokens
    if longest:
        assert engine_log(model, replace(fixed, max_model_len=longest)).starts
        assert not engine_log(model, replace(fixed, max_model_len=longest + 1)).starts


@given(STARTS, st.integers(1, 40))
def test_full_attention_is_a_capacity(start: EngineRun, layers: int) -> None:
    log = engine_log(of_layers(FULL, repeat=layers), replace(start, ranks=Ranks(), kv_dtype="bf16"))
    assert log.tokens_are_capacity
    assert log.fixed_bytes == 0
    assert log.tokens is not None
    assert log.tokens * log.marginal_bytes_per_token <= start.pools[0] * (1 + 1e-12)
    assert math.isclose(log.marginal_bytes_per_token, layers * 512 * (8 if start.engine.name == "tpu-inference" else 1))
