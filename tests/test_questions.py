"""Questions that people ask, each with an answer that takes a line of arithmetic: what a plan must not get wrong.

Right values are worked out beside each question from the shape that the model publishes, never from what is answered.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest

import slicewise
from slicewise.cli.main import main
from slicewise.units import GB, GIB

MILLION = 1e6
HOUR_S = 3600


def memory(model: str | Path, place: str, **words: Any) -> Any:
    return slicewise.memory(model, slice=place, **{"context": 4096, **words})


def ledger(model: str | Path, place: str = "h200:8", **words: Any) -> Any:
    return memory(model, place, **words).ledger


def log(model: str | Path, place: str, **words: Any) -> Any:
    """What an engine logs; with 10 GiB of cache where no pool is said."""
    found = memory(model, place, **{"engine": "vllm", "logged_kv_gib": 10, **words})
    assert found.engine is not None
    return found.engine.log


def step(model: str, place: str, batch: int, **words: Any) -> Any:
    return slicewise.step(model, slice=place, batch=batch, **{"context": 4096, **words})


# -- the cache of one token ------------------------------------------------------------------------------------------

PER_TOKEN = [
    ("llama-3.1-8b", "bf16", 32 * 2 * 8 * 128 * 2),
    ("llama-3.1-8b", "fp8", 32 * 2 * 8 * 128),  # half of it, and no scales
    ("llama-3.1-8b", "f16", 32 * 2 * 8 * 128 * 2),  # as llama.cpp names it
    ("llama-2-7b", "bf16", 32 * 2 * 32 * 128 * 2),  # every query head has its own
    ("gemma-2b", "bf16", 18 * 2 * 1 * 256 * 2),  # one KV head for all
    ("qwen3-4b", "bf16", 36 * 2 * 8 * 128 * 2),  # heads of 128 though 2560 / 32 is 80
    ("mistral-nemo-12b", "bf16", 40 * 2 * 8 * 128 * 2),  # heads of 128 though 5120 / 32 is 160
    ("phi-3.5-mini", "bf16", 32 * 2 * 32 * 96 * 2),
    ("llama-3.2-1b", "bf16", 16 * 2 * 8 * 64 * 2),
    ("mixtral-8x22b", "bf16", 56 * 2 * 8 * 128 * 2),  # experts keep nothing
    ("qwen3-235b-a22b", "bf16", 94 * 2 * 4 * 128 * 2),
    ("gpt-oss-120b", "bf16", 36 * 2 * 8 * 64 * 2),
    ("deepseek-v2-lite", "bf16", 27 * (512 + 64) * 2),  # a latent and the rotary part, once
    ("kimi-k2", "bf16", 61 * (512 + 64) * 2),
    ("deepseek-v3.2", "bf16", 61 * (576 * 2 + 128 + 4)),  # index keys in fp8 with a float32 scale
    ("deepseek-v3.2", "fp8", 61 * (576 + 128 + 4)),  # which the dtype of the cache does not change
    ("glm-5", "bf16", 78 * (576 * 2 + 128 + 4)),
    ("qwen3-next-80b-a3b", "bf16", 12 * 2 * 2 * 256 * 2),  # a quarter of 48 layers attends
    ("nemotron-3-nano-30b-a3b", "bf16", 6 * 2 * 2 * 128 * 2),  # six layers of 52 attend
    ("mimo-v2-flash", "bf16", 9 * 4 * (192 + 128) * 2 + 39 * 8 * (192 + 128) * 2),  # keys wider than values
]


@pytest.mark.parametrize(("model", "kv", "right"), PER_TOKEN, ids=[f"{model}-{kv}" for model, kv, _ in PER_TOKEN])
def test_cache_bytes_of_a_token(model: str, kv: str, right: int) -> None:
    assert ledger(model, "b200:8", kv=kv).kv_bytes_per_token == right


PER_RANK = [
    ("deepseek-r1", "h200:8", {"tp": 8}, 61 * 576 * 2),  # the latent is whole on every rank
    ("deepseek-v3", "h200:8", {"tp": 1, "dp": 8, "ep": 8}, 61 * 576 * 2),  # and on every data-parallel one
    ("llama-3.3-70b", "h200:4", {"tp": 4}, 80 * 2 * 2 * 128 * 2),
    ("llama-3.1-405b", "h200:16", {"tp": 16}, 126 * 2 * 1 * 128 * 2),  # 8 heads: one a rank at least
    ("qwen3-235b-a22b", "h200:4", {"tp": 4}, 94 * 2 * 1 * 128 * 2),
    ("qwen3-235b-a22b", "h200:8", {"tp": 8}, 94 * 2 * 1 * 128 * 2),  # four heads over eight ranks: no less
    ("qwen3-235b-a22b", "h200:8", {"tp": 2, "dp": 4}, 94 * 2 * 2 * 128 * 2),  # by attention's ranks alone
    ("qwen3-235b-a22b", "h200:8", {"tp": 1, "dp": 8, "ep": 8}, 94 * 2 * 4 * 128 * 2),
    ("minimax-m2.5", "h200:8", {"tp": 8, "ep": 8, "kv": "bf16"}, 62 * 2 * 1 * 128 * 2),
    ("qwen3-vl-30b-a3b", "h200:1", {"tp": 1}, 48 * 2 * 4 * 128 * 2),  # the tower keeps nothing
    ("llama-3.1-8b", "h100:4", {"tp": 1, "pp": 4}, 8 * 2 * 8 * 128 * 2),  # a stage keeps its own layers
    ("deepseek-v2-lite", "h100:2", {"tp": 1, "pp": 2}, 14 * 576 * 2),  # the stage of 14 of 27 layers decides
]


@pytest.mark.parametrize(
    ("model", "place", "layout", "right"),
    PER_RANK,
    ids=[f"{model}-{'-'.join(f'{k}{v}' for k, v in layout.items())}" for model, _, layout, _ in PER_RANK],
)
def test_cache_bytes_of_a_token_on_one_chip(model: str, place: str, layout: dict[str, Any], right: int) -> None:
    assert log(model, place, **layout).marginal_bytes_per_token == right


# -- the cache of a sequence, where layers keep different things -----------------------------------------------------

SEQUENCES = [
    # 23 of 46 layers look back 4,096 tokens; 16 heads of 128.
    ("gemma-2-27b", 8192, (23 * 8192 + 23 * 4096) * 2 * 16 * 128 * 2),
    # Every sixth of 62 layers attends to all, 10 in all; the rest to 1,024.
    ("gemma-3-27b", 131072, (10 * 131072 + 52 * 1024) * 2 * 16 * 128 * 2),
    # Below the window nothing is saved.
    ("gemma-3-27b", 512, 62 * 512 * 2 * 16 * 128 * 2),
    # 30 of 36 alternating layers would be wrong: half of them look back 128.
    ("gpt-oss-120b", 131072, (18 * 131072 + 18 * 128) * 2 * 8 * 64 * 2),
    # Three of four layers attend within chunks of 8,192.
    ("llama-4-scout-17b-16e", 131072, (12 * 131072 + 36 * 8192) * 2 * 8 * 128 * 2),
    # Every layer has the window of 4,096: half a GiB, however long.
    ("mistral-7b-v0.1", 32768, 32 * 4096 * 2 * 8 * 128 * 2),
    # Its successor has none.
    ("mistral-7b-v0.3", 32768, 32 * 32768 * 2 * 8 * 128 * 2),
    # 50 layers of 16 heads of 256 look back 1,024; 10 of 4 heads of 512 keep all.
    ("google/gemma-4-31B-it", 32768, 50 * 1024 * 2 * 16 * 256 * 2 + 10 * 32768 * 2 * 4 * 512 * 2),
]


@pytest.mark.parametrize(
    ("model", "tokens", "right"), SEQUENCES, ids=[f"{m.split('/')[-1]}-{n}" for m, n, _ in SEQUENCES]
)
def test_cache_bytes_of_a_sequence(model: str, tokens: int, right: int) -> None:
    assert ledger(model, context=tokens, kv="bf16").kv_bytes_per_sequence == right


def test_states_do_not_grow_with_the_length() -> None:
    short, long = (ledger("qwen3-next-80b-a3b", context=tokens) for tokens in (4096, 262144))
    assert short.kv_state_bytes == long.kv_state_bytes > 0
    # 24,576 B a token of attention, and the same states.
    assert long.kv_bytes_per_sequence - short.kv_bytes_per_sequence == (262144 - 4096) * 24576


# -- weights ---------------------------------------------------------------------------------------------------------


def config(folder: Path, name: str, **keys: Any) -> Path:
    path = folder / name
    path.mkdir()
    (path / "config.json").write_text(json.dumps(keys), encoding="utf-8")
    return path


LLAMA_70B = {
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
LINEARS = 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672)
OUTPUTS = 80 * (2 * 8192 + 2 * 1024 + 2 * 28672 + 8192)
EMBEDDINGS, NORMS = 2 * 128256 * 8192, 161 * 8192
INT8 = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel", "dynamic": False},
            "input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True},
        }
    },
}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}


def test_eight_bit_weights_leave_embeddings_and_scales_wide(tmp_path: Path) -> None:
    """A byte a linear weight, 4 a channel for its scale, and 2 for the rest: 3 % above a byte each. The log says so."""
    path = config(tmp_path, "w8a8", **LLAMA_70B, quantization_config=INT8)
    stored = LINEARS + 2 * (EMBEDDINGS + NORMS)
    found = ledger(path, "h100:2").weight_bytes
    assert stored + 2 * OUTPUTS <= found <= stored + 4 * OUTPUTS
    assert found / 70_553_706_496 == pytest.approx(1.03, abs=0.005)


def test_four_bit_weights_keep_groups_and_embeddings(tmp_path: Path) -> None:
    """4 bits a weight, a 16-bit scale and a 4-bit zero for each 128; embeddings in 16 bits: not 4 / 16 of bf16."""
    path = config(tmp_path, "awq", **LLAMA_70B, torch_dtype="float16", quantization_config=AWQ)
    right = LINEARS * (4 + (16 + 4) / 128) / 8 + 2 * (EMBEDDINGS + NORMS)
    assert ledger(path, "h100:1").weight_bytes == pytest.approx(right, rel=1e-6)


def test_mxfp4_experts_take_four_and_a_quarter_bits() -> None:
    """128 experts of three 2880 × 2880 in 36 layers: 4 bits and 8 for each 32; everything else in 16 bits."""
    experts = 36 * 128 * 3 * 2880 * 2880
    biases = 36 * 128 * 3 * 2880
    attention = 36 * (2 * 64 * 64 * 2880 + 2 * 8 * 64 * 2880 + 64 * 64 + 2 * 8 * 64 + 2880 + 64)
    rest = 2 * 201088 * 2880 + attention + 36 * (128 * 2880 + 128) + (2 * 36 + 1) * 2880
    assert ledger("gpt-oss-120b").weight_bytes == experts * 4.25 / 8 + 2 * (biases + rest)


def test_tied_embeddings_are_held_once_and_on_both_ends_of_a_pipeline() -> None:
    """1,235,814,400 parameters, of them 128,256 × 2,048 in the embedding, which either of two stages needs."""
    embedding = 128256 * 2048
    assert ledger("llama-3.2-1b", "h100:1").n_params == 1_235_814_400
    # The last stage has the last norm, too.
    stage = (1_235_814_400 - embedding - 2048) / 2 + 2048 + embedding
    assert log("llama-3.2-1b", "h100:2", tp=1, pp=2, engine="sglang").weight_bytes_per_chip == stage * 2


def test_a_head_of_its_own_makes_the_ends_of_a_pipeline_heavy() -> None:
    """Embedding on the first of four stages, head on the last: 0.28 GiB more than a quarter."""
    layers = 8_030_261_248 - 2 * 128256 * 4096 - 4096
    right = layers / 4 + 128256 * 4096 + 4096
    assert log("llama-3.1-8b", "h100:4", tp=1, pp=4, engine="sglang").weight_bytes_per_chip == right * 2


def test_vocabulary_is_padded_before_it_is_cut(tmp_path: Path) -> None:
    """32,001 rows are padded to 32,064 and cut in four: 8,016 each, for the embedding and the head."""
    keys = {**LLAMA_70B, "vocab_size": 32001, "num_hidden_layers": 1}
    whole = log(config(tmp_path, "odd", **keys), "h100:4", tp=4, engine="sglang").weight_bytes_per_chip
    even = log(config(tmp_path, "even", **{**keys, "vocab_size": 32064}), "h100:4", tp=4, engine="sglang")
    assert whole == even.weight_bytes_per_chip


def test_every_expert_is_held_though_few_are_used() -> None:
    found = step("mixtral-8x7b", "h100:4", 1)
    # 32 layers of 8 experts of 3 * 4096 * 14336; 2 are active.
    assert found.n_params - found.n_active_params == 32 * 6 * 3 * 4096 * 14336
    assert found.n_params == 46_702_792_704


def test_a_draft_layer_is_said_to_be_left_out() -> None:
    """671 B without the layer that predicts a second token; the repository shows 685 B with it."""
    found = ledger("deepseek-v3")
    assert found.n_params == pytest.approx(671.03e9, rel=1e-4)
    assert any("num_nextn_predict_layers" in sentence for sentence in found.assumptions)


def test_spread_experts_and_replicated_attention() -> None:
    """dp 8 × ep 8: an eighth of the routed experts, and all else whole: 58 layers of 256 experts of 3 × 7168 × 2048."""
    routed = 58 * 256 * 3 * 7168 * 2048
    found = ledger("deepseek-v3", tp=1, dp=8, ep=8, weights="fp8")
    assert found.weight_bytes / 8 == pytest.approx(routed / 8 + (found.n_params - routed), rel=1e-3)


def test_towers_are_counted_and_idle() -> None:
    found = ledger("qwen3-vl-8b", "h100:1")
    # The text model alone is Qwen3-8B.
    assert found.n_params > ledger("qwen3-8b", "h100:1").n_params == 8_190_735_360
    assert any("idle in decode" in sentence for sentence in found.assumptions)


# -- what an engine logs ---------------------------------------------------------------------------------------------


def test_pool_is_cut_into_whole_blocks() -> None:
    """10 GiB of 131,072 B a token are 81,920 tokens, in blocks of 16."""
    found = log("llama-3.1-8b", "h100:1", engine="vllm-0.19", max_model_len=1000)
    assert (found.tokens, found.blocks, found.longest_request_tokens) == (81920, 5120, 81920)
    # A request of 1,000 tokens takes 63 blocks.
    assert found.max_concurrency == 5120 / 63


def test_a_request_longer_than_the_pool_stops_the_engine() -> None:
    found = log("llama-3.1-8b", "h100:1", max_model_len=100_000)
    assert any("refuses to start" in note and "81,920" in note for note in found.notes)


def test_bytes_that_one_long_request_needs() -> None:
    """Qwen3-Coder-480B, data parallel: 62 layers × 8 heads × 128 × 4 B × 262,144 tokens, on one chip."""
    found = log("qwen3-coder-480b-a35b", "h200:8", tp=1, dp=8, ep=8, max_model_len=262144)
    assert found.request_bytes == 62 * GIB


def test_windows_hold_a_batch_in_flight() -> None:
    """gpt-oss at 131,072: 8,192 blocks in each full layer, ceil((127 + 1024) / 16) + 1 = 73 in each sliding one."""
    found = log("gpt-oss-120b", "h100:1", engine="vllm-0.11", max_model_len=131072, max_num_batched_tokens=1024)
    assert found.request_bytes == (18 * 8192 + 18 * 73) * 16 * 2 * 8 * 64 * 2


def test_sglang_fraction_covers_weights_and_cache_alone() -> None:
    """0.85 × 79.1 GiB less 8,030,261,248 weights in bf16, at 131,072 B a token."""
    found = memory("llama-3.1-8b", "h100:1", engine="sglang", memory_fraction=0.85)
    assert found.engine is not None
    pool = 0.85 * 79.1 * GIB - 2 * 8_030_261_248
    assert found.engine.log.tokens == int(pool // 131072)


def test_tpu_pads_narrow_rows() -> None:
    """One head a chip is two rows; four of fp8 make a word, so it takes as much as bf16. Two heads a chip are whole."""
    one_fp8, one_bf16 = (log("llama-3.1-70b", "v6e:8", engine="tpu-inference", tp=8, kv=kv) for kv in ("fp8", "bf16"))
    assert one_fp8.marginal_bytes_per_token == one_bf16.marginal_bytes_per_token == 80 * 2 * 128 * 2
    two = log("llama-3.1-70b", "v6e:4", engine="tpu-inference", tp=4, kv="fp8")
    assert two.marginal_bytes_per_token == 80 * 2 * 2 * 128


def test_logged_pool_of_the_whole_server_is_not_meant() -> None:
    """The token count is of all ranks at once: 10 GiB a chip at 20,480 B are 524,288 tokens, not a quarter."""
    assert log("llama-3.1-70b", "h100:8", tp=8).tokens == 10 * GIB // (80 * 2 * 128 * 2) // 16 * 16


# -- which layouts are legal -----------------------------------------------------------------------------------------

REFUSED = [
    ("qwen2.5-32b", "h200:3", {"tp": 3}, "40 query heads"),
    ("qwen2.5-7b", "h100:8", {"tp": 8}, "28 query heads"),
    ("qwen2.5-7b", "h100:7", {"tp": 7}, "4 KV heads"),
    ("gemma-3-1b", "h100:8", {"tp": 8}, "4 query heads"),
    ("qwen3-235b-a22b-fp8", "h200:8", {"tp": 8, "ep": 1}, "192 a rank"),  # 1536 / 8, in blocks of 128
    ("qwen3-32b-fp8", "h100:16", {"tp": 16}, "1,600 a rank"),  # 25600 / 16 = 12.5 blocks
    ("gpt-oss-20b", "h100:6", {"tp": 1, "dp": 6, "ep": 6}, "32 experts"),
    ("llama-3.1-8b", "h100:64", {"pp": 64, "tp": 1}, "32 layers"),
    ("llama-3.1-8b", "h100:4", {"ep": 4}, "has none"),
    ("llama-3.1-8b", "h100:4", {"tp": 4, "dp": 4}, "is 16 chips, not 4"),
]


@pytest.mark.parametrize(
    ("model", "place", "layout", "why"),
    REFUSED,
    ids=[f"{model}-{'-'.join(f'{k}{v}' for k, v in layout.items())}" for model, _, layout, _ in REFUSED],
)
def test_what_does_not_divide_is_refused(model: str, place: str, layout: dict[str, int], why: str) -> None:
    with pytest.raises(slicewise.InputError) as refused:
        ledger(model, place, **layout)
    assert why in str(refused.value)


def test_degrees_left_out_are_chosen() -> None:
    """Eight query heads a rank of four, and two groups: 4 × 2 is 8."""
    assert ledger("llama-3.1-8b", "h100:8", tp=4).layout == "tp 4 × dp 2"


def test_groups_of_scales_stop_tensor_parallelism(tmp_path: Path) -> None:
    """29,568 is 231 groups of 128: no even number of ranks gets whole groups."""
    keys = {**LLAMA_70B, "model_type": "qwen2", "intermediate_size": 29568, "vocab_size": 152064}
    path = config(tmp_path, "Qwen2-72B-AWQ", **keys, quantization_config=AWQ)
    with pytest.raises(slicewise.InputError, match=r"29,568 over tp 2 is 14,784 a rank.*use tp 1"):
        ledger(path, "h100:2", tp=2)
    assert ledger(path, "h100:1", tp=1).fits


# -- experts ---------------------------------------------------------------------------------------------------------

TOUCHED = [
    ("mixtral-8x7b", "h100:4", 8, 8 * (1 - (6 / 8) ** 8)),
    ("deepseek-v3", "h200:8", 1, 8),
    ("deepseek-v3", "h200:8", 64, 256 * (1 - (248 / 256) ** 64)),
    ("qwen3-30b-a3b", "h200:1", 32, 128 * (1 - (120 / 128) ** 32)),
    ("llama-4-maverick-17b-128e", "h200:8", 16, 128 * (1 - (127 / 128) ** 16)),
]


@pytest.mark.parametrize(("model", "place", "batch", "right"), TOUCHED, ids=[f"{m}-{b}" for m, _, b, _ in TOUCHED])
def test_experts_that_a_batch_touches(model: str, place: str, batch: int, right: float) -> None:
    assert step(model, place, batch).experts_touched == pytest.approx(right)


def test_one_token_reads_the_active_experts_alone() -> None:
    """All but 120 of 128 experts in 48 layers: 2 B × (30.53 B − 48 × 120 × 3 × 2048 × 768) at 4.8 TB/s."""
    unread = 48 * 120 * 3 * 2048 * 768
    found = step("qwen3-30b-a3b", "h200:1", 1)
    assert found.param_load_s == pytest.approx(2 * (found.n_params - unread) / 4.8e12)


def test_a_pipeline_reads_its_stages_one_after_the_other() -> None:
    """Sixteen chips in two stages take the time of eight."""
    whole = step("llama-3.1-70b", "h100:8", 8, tp=8).param_load_s
    assert step("llama-3.1-70b", "h100:16", 8, tp=8, pp=2).param_load_s == pytest.approx(whole, rel=0.02)


# -- names of slices, and their memory -------------------------------------------------------------------------------

NAMES = [
    ("v5p-8", 4, 1, 4),  # TensorCores, two a chip
    ("v4-32", 16, 4, 16),
    ("v5p-128", 64, 16, 64),
    ("v6e-8", 8, 1, 8),  # chips, on one host of eight
    ("v6e-16", 16, 4, 16),
    ("v5litepod-16", 16, 4, 16),
    ("v5litepod-256", 256, 64, 256),
    ("tpu7x-16", 8, 2, 16),  # two devices a chip
    ("tpu7x:4x4x4", 64, 16, 128),
    ("h100:16", 16, 2, 16),
    ("h100:3", 3, 1, 3),
]


@pytest.mark.parametrize(("name", "chips", "hosts", "devices"), NAMES, ids=[name for name, *_ in NAMES])
def test_names_of_slices(name: str, chips: int, hosts: int, devices: int) -> None:
    found = slicewise.load_slice(name)
    assert (found.n_chips, found.n_hosts, found.n_chips * found.chip.devices_per_chip) == (chips, hosts, devices)


def test_an_80_gb_card_has_80_gib_less_a_little() -> None:
    """Engines see 79.1 GiB of it, 84.9 GB: a plan with 80e9 B at 0.9 gives 11.5 GB a node of eight away."""
    found = ledger("llama-3.1-70b", "h100:8", memory_fraction=0.9)
    assert found.hbm_bytes == pytest.approx(8 * 0.9 * 79.1 * GIB)


def test_a_v5e_has_15_75_gib() -> None:
    assert ledger("llama-3.1-8b", "v5e:2x2", memory_fraction=1).hbm_bytes == 4 * 15.75 * GIB


# -- does it fit -----------------------------------------------------------------------------------------------------

FITS = [
    ("llama-3.1-405b --slice h100:8 --weights bf16", 1),  # 811.7 GB of weights over 8 * 84.9 GB
    ("llama-3.1-405b --slice h100:8 --weights fp8", 0),
    ("llama-3.1-405b --slice h100:16 --tp 8 --pp 2", 0),
    ("llama-3.1-70b --slice h100:2 --weights bf16 --context 131072", 1),  # 42.9 GB of cache beside 141.1 GB
    ("llama-3.1-70b --slice h100:4 --weights bf16 --context 131072", 0),
    ("deepseek-v3 --slice h100:8", 1),  # 671 GB and more
    ("deepseek-v3 --slice h200:8 --engine vllm", 0),
    ("mixtral-8x7b --slice h100:1", 1),  # 93.4 GB: all experts are held
    ("gpt-oss-120b --slice h100:1 --context 8192", 0),
    ("llama-3.1-8b --slice h100:1 --hbm 16GB --context 4096", 1),  # 16.06 GB of weights
    ("llama-3.1-8b --slice h100:1 --hbm 24GB --context 4096", 0),
]


@pytest.mark.parametrize(("words", "code"), FITS, ids=[words.replace(" --", " ") for words, _ in FITS])
def test_exit_code_says_whether_it_fits(words: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["memory", *words.split(), "--json"])
    assert stop.value.code == code
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] is (code == 0)
    assert (found["reason"] is None) is (code == 0)


def test_how_many_users_at_full_context() -> None:
    """(4 × 0.9 × 79.1 GiB − 141.1 GB) / 42.9 GB of cache at 131,072 tokens: 3, less what decoding takes."""
    room = 4 * 0.9 * 79.1 * GIB - 2 * 70_553_706_496
    each = 131072 * 80 * 2 * 8 * 128 * 2 + 4 * 128256 + 2 * 2 * 28672
    found = memory("llama-3.1-70b", "h100:4", context=131072, memory_fraction=0.9)
    assert found.slices[0].max_batch == int(room // each) == 3


def test_longest_context_of_one_user() -> None:
    """What is left of 0.9 × 79.1 GiB, at 131,072 B a token; and the limit that the model states is said."""
    activations = 4 * 128256 + 2 * 2 * 14336
    room = 0.9 * 79.1 * GIB - 2 * 8_030_261_248 - activations
    found = memory("llama-3.1-8b", "h100:1", memory_fraction=0.9)
    assert found.max_context_tokens == int(room // 131072)
    beyond = ledger("llama-3.1-8b", "h100:1", context=200_000)
    assert any("200,000 tokens exceed the 131,072" in sentence for sentence in beyond.assumptions)


def test_logits_of_a_large_vocabulary() -> None:
    """256 sequences: 4 B × 262,144 of logits, and 2 × 2 B × 21,504 of gate and up."""
    assert ledger("gemma-3-27b", "h100:4", batch=256).activation_bytes == 256 * (4 * 262144 + 4 * 21504)


# -- time ------------------------------------------------------------------------------------------------------------


def test_a_step_at_batch_one_reads_every_weight() -> None:
    """141.1 GB at 8 × 3.35 TB/s, and 4,096 tokens of 327,680 B."""
    found = step("llama-3.1-70b", "h100:8", 1, view="roofline")
    rate = 8 * 3.35e12
    assert found.param_load_s == pytest.approx(2 * 70_553_706_496 / rate)
    assert found.step_s == pytest.approx((2 * 70_553_706_496 + 4096 * 327_680) / rate)
    assert found.bound == "param_load"


def test_rates_of_the_server_a_chip_and_a_user_are_told_apart() -> None:
    found = step("llama-3.1-70b", "h100:8", 64, osl=500)
    assert found.tokens_per_s == pytest.approx(64 / found.step_s)
    assert found.tokens_per_s_per_chip == pytest.approx(found.tokens_per_s / 8)
    assert found.requests_per_s_per_chip == pytest.approx(found.tokens_per_s_per_chip / 500)


def test_attention_of_a_long_prompt_is_counted() -> None:
    """2 × 69.5 B a token (the head once), and 2 × 64 × 128 × 80 × T²: 55 % of the work at 131,072."""
    tokens, head = 131072, 128256 * 8192
    found = slicewise.prefill("llama-3.1-70b", slice="h100:8", isl=tokens, mfu=0.4)
    flops = 2 * (69_501_714_432 - head) * tokens + 2 * head + 2 * 64 * 128 * 80 * tokens**2
    assert found.prefill_flops == pytest.approx(flops)
    assert found.prefill_s == pytest.approx(flops / (8 * 990e12 * 0.4))


def test_critical_batch() -> None:
    """C / W × bytes / 2: 197e12 / 820e9 on v5e, 990e12 / 3.35e12 on an H100; half of it with a byte a weight."""
    at = {
        (place, weights): slicewise.limits("llama-3.1-70b", slice=place, weights=weights).critical_batch
        for place in ("v5e:4x4", "h100:8")
        for weights in ("bf16", "int8")
    }
    assert at["v5e:4x4", "bf16"] == pytest.approx(197e12 / 820e9)
    assert at["h100:8", "bf16"] == pytest.approx(990e12 / 3.35e12)
    assert at["h100:8", "int8"] == pytest.approx(990e12 / 3.35e12 / 2)


HANDED_OVER = [
    ("llama-3.1-70b", 8192, 8192 * 327_680),
    ("deepseek-v3", 8192, 8192 * 61 * 576 * 2),
    ("gpt-oss-120b", 8192, (18 * 8192 + 18 * 128) * 2 * 8 * 64 * 2),
]


@pytest.mark.parametrize(("model", "tokens", "right"), HANDED_OVER, ids=[model for model, *_ in HANDED_OVER])
def test_bytes_from_prefill_to_decode(model: str, tokens: int, right: int) -> None:
    """One copy, windows filled; at 400 Gb/s, which is 50 GB/s."""
    found = slicewise.disaggregate(model, slice="h200:8", isl=tokens, osl=512, batch=8, kv="bf16", network="400Gb/s")
    assert found.handoff_bytes == right
    assert found.handoff_s == pytest.approx(right / 50e9)


# -- money -----------------------------------------------------------------------------------------------------------


def test_usd_of_a_million_tokens_counts_every_chip() -> None:
    """8 × $2.50 an hour over the tokens of an hour."""
    found = step("llama-3.1-70b", "h100:8", 64, price=2.5)
    right = 8 * 2.5 / (found.tokens_per_s * HOUR_S) * MILLION
    assert found.usd_per_hour == 20
    assert found.usd_per_million_output_tokens == pytest.approx(right)


MONEY = [
    # $3 * 8 / (2,400 * 3600) * 1e6
    ("usd_per_million_output_tokens", {"price": 3, "slice": "h100:8", "tokens_per_s": 2400}, 2.777778),
    # $1.80 / (60 * 3600 * 0.3) * 1e6
    ("usd_per_million_sustained_tokens", {"price": 1.8, "tokens_per_s": 60, "utilisation": 0.3}, 27.777778),
    # $9,000 a month against $0.60 a million: 15 billion tokens
    ("breakeven_tokens_per_month", {"usd_per_month": 9000, "api_price": 0.6}, 15e9),
    # $2 * 730 h against $1 a million is 1,460 million; at 1,000 tokens/s a month makes 2,628 million
    ("breakeven_utilisation", {"price": 2, "tokens_per_s": 1000, "api_price": 1}, 0.5555556),
]


@pytest.mark.parametrize(("quantity", "words", "right"), MONEY, ids=[row[0] for row in MONEY])
def test_money(quantity: str, words: dict[str, Any], right: float) -> None:
    assert getattr(slicewise.cost(**words), quantity) == pytest.approx(right)


# -- units -----------------------------------------------------------------------------------------------------------


def test_gb_and_gib_are_shown_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """70,553,706,496 × 2 B are 141.11 GB and 131.42 GiB, 7.4 % apart."""
    with pytest.raises(SystemExit):
        main(["memory", "llama-3.1-70b", "--slice", "h100:4"])
    assert "141.11 GB (131.42 GiB)" in capsys.readouterr().out
    assert math.isclose(GIB / GB, 1.073741824)
